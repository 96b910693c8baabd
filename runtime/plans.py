"""Battlesnake with plans as actions: a seat's moves of the next few turns, judged at their end."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snakekit import core
from snakekit.runtime.backends import Backend
from snakekit.runtime.contract import ModelCard
from snakekit.runtime.oracle import DoubleOracle, Floats, Found, OracleRules, Plays

CHUNK = 64
WINDOW = 2
"""Most turns of a plan that a local modification draws anew."""

Outcomes = Callable[[NDArray[np.uint8]], Floats]
"""Maps observations v3 to outcome logits `[N, slots + 1]`."""
Answers = Callable[[NDArray[np.uint8]], tuple[Floats, Floats]]
"""Maps observations v3 to policy logits `[N, slots, 4]` and outcome logits."""


class PlanGame:
    """The plans of one board's living seats; see `Payoffs`. Seats are slots here."""

    def __init__(self, state: core.State, slots: int, turns: int, outcomes: Outcomes) -> None:
        """Play `turns` turns from `state` and ask `outcomes` about the boards reached."""
        self.state, self.turns = state, turns
        self.living = state.living()
        self.seats = len(self.living)
        self._slots, self._outcomes = slots, outcomes
        self._endless = _endless(state)
        self.expected: NDArray[np.int8] | None = None
        """What the others are thought to do while a plan is made legal, `[seats, turns]`."""

    def utility(self, joint: NDArray[np.int8]) -> Floats:
        """See `Payoffs`."""
        lines = core.PlanLines(self.state, joint, slots=self._slots)
        found = lines.values(self._outcomes(lines.encode()))[1]
        return found[:, : self.seats]

    def sample(self, seat: int, count: int, generator: np.random.Generator) -> Plays:
        """See `Payoffs`: random moves that are not certain death."""
        free = np.full((count, self.turns), -1, np.int8)
        return self._legal(seat, free, generator)

    def modify(self, seat: int, plays: Plays, generator: np.random.Generator) -> Plays:
        """See `Payoffs`: one or two turns are drawn anew, what follows is kept if legal."""
        changed = plays.copy()
        for row in changed:
            width = 1 + int(generator.integers(min(WINDOW, self.turns)))
            first = int(generator.integers(self.turns - width + 1))
            row[first : first + width] = -1
        return self._legal(seat, changed, generator)

    def _legal(self, seat: int, plays: Plays, generator: np.random.Generator) -> Plays:
        """Replace moves that are -1 or certain death by random ones that are not.

        The others make their expected moves, or the reflex's; the board goes on without them.
        """
        out = plays.copy()
        own = self.living[seat]
        for row in out:
            board = self._endless.copy()
            for turn in range(self.turns):
                if not board.alive(own):
                    row[turn:] = np.maximum(row[turn:], 0)
                    break
                mask = board.safe_mask(own) or board.legal_mask(own) or 1
                if row[turn] < 0 or not mask >> int(row[turn]) & 1:
                    free = [m for m in range(4) if mask >> m & 1]
                    row[turn] = free[int(generator.integers(len(free)))]
                moves = [-1] * board.num_snakes
                for slot, other in enumerate(self.living):
                    if self.expected is not None:
                        moves[other] = int(self.expected[slot, turn])
                    elif board.alive(other):
                        moves[other] = core.reflex_move(board, other)
                moves[own] = int(row[turn])
                board.step(moves)
        return out


def _endless(state: core.State) -> core.State:
    """Return the board under rules by which a game lasts until nobody is left."""
    s = state.settings
    settings = core.Settings(
        ruleset=s.ruleset,
        solo=True,
        food_spawn_chance=s.food_spawn_chance,
        minimum_food=s.minimum_food,
        hazard_damage=s.hazard_damage,
        shrink_every=s.shrink_every,
        map=s.map,
    )
    return core.State(
        state.width,
        state.height,
        state.snakes(),
        state.food(),
        state.hazards(),
        turn=state.turn,
        settings=settings,
    )


def proposals(
    game: PlanGame, slots: int, count: int, answers: Answers, generator: np.random.Generator
) -> list[Plays]:
    """Return `count` plans for each seat, drawn turn by turn from the model's policy.

    All seats move by the policy together, so that plans are made for likely futures; moves that
    are certain death are left out.
    """
    boards = [game.state.copy() for _ in range(count)]
    plans = np.zeros((game.seats, count, game.turns), np.int8)
    for turn in range(game.turns):
        going = [i for i, board in enumerate(boards) if not board.game_over()]
        if not going:
            break
        logits = answers(core.encode_all([boards[i] for i in going], slots=slots))[0]
        for row, i in enumerate(going):
            board = boards[i]
            moves = [-1] * board.num_snakes
            for slot, seat in enumerate(board.living()):
                move = _drawn(logits[row, slot], board.safe_mask(seat), generator)
                moves[seat] = move
                plans[game.living.index(seat), i, turn] = move
            board.step(moves)
    return list(plans)


def _drawn(logits: Floats, mask: int, generator: np.random.Generator) -> int:
    allowed = np.array([mask >> m & 1 for m in range(4)], bool) | (mask == 0)
    weights = np.where(allowed, np.exp((logits - logits.max()).astype(np.float64)), 0.0) + 1e-9
    weights *= allowed
    edges = weights.cumsum()
    return int(np.searchsorted(edges, generator.random() * edges[-1], side="right"))


class PlanAnswer(NamedTuple):
    """First moves that an equilibrium over plans makes."""

    policy: Floats
    """Probabilities `[slots that live, 4]`."""
    found: Found


class Planner:
    """Solves boards over plans with one model for all seats. Not for several threads at once."""

    def __init__(
        self,
        backend: Backend,
        card: ModelCard,
        *,
        turns: int = 4,
        candidates: int = 8,
        rules: OracleRules | None = None,
    ) -> None:
        """Use a model that answers for all seats.

        Args:
            backend: runs it.
            card: the model's.
            turns: length of a plan.
            candidates: most plans a seat that the policy proposes; fewer with many snakes.
            rules: of the double oracle.

        Raises:
            ValueError: the model answers for one seat.
        """
        if not card.slots:
            raise ValueError(f"model {card.name}: answers for one seat, not for all")
        self._backend, self._slots = backend, card.slots
        self._turns, self._candidates = turns, candidates
        self._rules = rules if rules is not None else OracleRules()

    def _answers(self, obs: NDArray[np.uint8]) -> tuple[Floats, Floats]:
        if not len(obs):
            return np.zeros((0, self._slots, 4), np.float32), np.zeros(
                (0, self._slots + 1), np.float32
            )
        parts = [self._backend.infer(obs[i : i + CHUNK]) for i in range(0, len(obs), CHUNK)]
        return np.concatenate([p for p, _ in parts]), np.concatenate([v for _, v in parts])

    def solve(self, state: core.State, seed: int) -> PlanAnswer:
        """Return the equilibrium over plans; a pure function of board and seed."""
        generator = np.random.default_rng(seed)
        game = PlanGame(state, self._slots, self._turns, lambda obs: self._answers(obs)[1])
        most = int(core.FULL_INFORMATION ** (1 / game.seats) + 1e-9)
        count = min(self._candidates, max(most, 2))
        start = proposals(game, self._slots, count, self._answers, generator)
        oracle = DoubleOracle(game, start, self._rules)
        game.expected = np.stack(
            [oracle.actions[s][int(oracle.policy[s].argmax())] for s in range(game.seats)]
        )
        found = oracle.run(generator)
        return PlanAnswer(first_moves(found.actions, found.policy), found)


def first_moves(actions: Sequence[Plays], policy: Sequence[Floats]) -> Floats:
    """Return the probabilities of each seat's first move, `[seats, 4]`."""
    out = np.zeros((len(actions), 4), np.float32)
    for seat, (plays, chances) in enumerate(zip(actions, policy, strict=True)):
        np.add.at(out[seat], plays[:, 0], chances)
    return out
