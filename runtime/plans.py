"""Battlesnake with plans as actions: a seat's moves of the next few turns, judged at their end.

Nobody follows a plan into certain death: what came to stand in the way is avoided by the reflex
move. Without that an equilibrium over plans is full of victories over snakes that do not look.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from snakekit import core
from snakekit.runtime.contract import ModelCard
from snakekit.runtime.oracle import Floats, Found, OracleRules, Plays, Rows

CHUNK = 64
WINDOW = 3
"""Most turns in a row of a plan that a local modification draws anew."""
TAIL = 0.5
"""Chance that it draws all later turns anew as well: they were made for another place."""
KEPT = 32
"""Joint moves that a game of one turn with too many of them begins with."""
CROWDED = OracleRules(
    rounds=3 * core.MAX_SLOTS, patience=1, size=4, bases=1, opponents=8, gain=0.003, most=2 * KEPT
)
"""How the moves that matter are added there; pools are all moves of a seat."""


class PlanGame:
    """The plans of one board's living seats; see `Payoffs`. Seats are slots here."""

    def __init__(
        self, state: core.State, slots: int, turns: int, *, draw_worth: float = 1.0
    ) -> None:
        """Play `turns` turns from `state`; the model has `slots` slots."""
        self.state, self.turns = state, turns
        self.seats = len(state.living())
        self._slots, self._draw_worth = slots, draw_worth
        self._lines: core.PlanLines | None = None

    def expand(self, joint: Plays) -> Rows:
        """See `Payoffs`."""
        self._lines = core.PlanLines(self.state, joint, slots=self._slots, reflexes=True)
        return self._lines.encode()

    def values(self, outcomes: Floats) -> tuple[Floats, Floats]:
        """See `Payoffs`."""
        if self._lines is None:
            raise RuntimeError("values come after expand")
        outcome, utility = self._lines.values(outcomes, draw_worth=self._draw_worth)
        return outcome[:, [*range(self.seats), -1]], utility[:, : self.seats]

    def sample(self, seat: int, count: int, generator: np.random.Generator) -> Plays:
        """See `Payoffs`: random moves that are not certain death."""
        free = np.full((count, self.turns), -1, np.int8)
        return self._completed(seat, free, None, generator)

    def modify(
        self, seat: int, plays: Plays, expected: Plays, generator: np.random.Generator
    ) -> Plays:
        """See `Payoffs`: some turns are drawn anew, what follows too or kept if legal.

        With plans of one turn there is nothing to be near to: all moves are returned.
        """
        if self.turns == 1:
            every = np.arange(len(core.MOVES), dtype=np.int8)[:, None]
            return self._completed(seat, every, expected, generator)
        changed = plays.copy()
        width = 1 + generator.integers(min(WINDOW, self.turns), size=len(plays))
        first = generator.integers(self.turns - width + 1)
        end = np.where(generator.random(len(plays)) < TAIL, self.turns, first + width)
        turn = np.arange(self.turns)
        changed[(turn >= first[:, None]) & (turn < end[:, None])] = -1
        return self._completed(seat, changed, expected, generator)

    def _completed(
        self,
        seat: int,
        plays: NDArray[np.signedinteger],
        expected: Plays | None,
        generator: np.random.Generator,
    ) -> Plays:
        seed = int(generator.integers(2**63))
        made = core.complete_plans(self.state, seat, plays, expected=expected, seed=seed)
        return made.astype(np.int32)


class Walk(Protocol):
    """Plans of one state that grow turn by turn; see `core.PlanWalk`."""

    @property
    def open(self) -> int:
        """Copies of the game that go on."""
        ...

    @property
    def plans(self) -> NDArray[np.signedinteger]:
        """Plans `[living seats, count, turns]`."""
        ...

    def encode(self) -> Rows:
        """Return the open copies' features."""
        ...

    def step(self, logits: Floats, seed: int) -> None:
        """Draw and play a move of every seat from policy logits `[open, slots, moves]`."""
        ...


def propose(
    walks: Sequence[Walk],
    policies: Callable[[Rows], Floats],
    generators: Sequence[np.random.Generator],
    may_ask: Callable[[int], bool] = lambda rows: True,
) -> bool:
    """Complete all walks by a policy, in common batches; return whether there was time for it.

    Args:
        walks: just begun.
        policies: maps features to policy logits.
        generators: one for each walk.
        may_ask: asked before every batch, with its size.
    """
    pairs = list(zip(walks, generators, strict=True))
    while pairs := [pair for pair in pairs if pair[0].open]:
        rows = [walk.encode() for walk, _ in pairs]
        sizes = [len(part) for part in rows]
        if not may_ask(sum(sizes)):
            return False
        logits = np.split(policies(np.concatenate(rows)), np.cumsum(sizes)[:-1])
        for (walk, generator), part in zip(pairs, logits, strict=True):
            walk.step(part, int(generator.integers(2**63)))
    return True


def starts(plans: NDArray[np.signedinteger], rules: OracleRules) -> list[Plays]:
    """Return the plans of each seat, the most frequent first, fewer where seats are many."""
    most = max(int(rules.most ** (1 / len(plans)) + 1e-9), 2)
    out = []
    for own in plans:
        distinct, times = np.unique(own, axis=0, return_counts=True)
        out.append(distinct[np.argsort(-times, kind="stable")][:most].astype(np.int32))
    return out


def kept_actions(rows: Iterable[tuple[Floats, NDArray[np.bool_]]]) -> list[Plays]:
    """Return one-turn actions of each slot that has any, the likeliest first.

    Args:
        rows: policy and candidates of every slot, `[actions]` each.
    """
    return [
        np.flatnonzero(allowed)[np.argsort(-chances[allowed], kind="stable")][:, None].astype(
            np.int32
        )
        for chances, allowed in rows
        if allowed.any()
    ]


def slots_of(card: ModelCard) -> int:
    """Return how many seats a model answers for; raises ValueError where it is for one alone."""
    if not card.slots:
        raise ValueError(f"model {card.name}: answers for one seat, not for all")
    return card.slots


def first_moves(found: Found, moves: int) -> Floats:
    """Return the probabilities of each seat's first move, `[seats, moves]`."""
    out = np.zeros((len(found.actions), moves), np.float32)
    for seat, (plays, chances) in enumerate(zip(found.actions, found.policy, strict=True)):
        np.add.at(out[seat], plays[:, 0], chances)
    return out
