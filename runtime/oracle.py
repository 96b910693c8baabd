"""Double oracle: equilibria of games with too many actions to list, from a few that matter.

One seat after the other looks for an action that would pay more against the others' present
mixture (its best response), in a pool that is either drawn at random or made from its present
actions by small changes. A find joins the candidates and the equilibrium is solved again. This is
the paper's procedure (arXiv 2110.02924, sections 3.2 and D.1): one seat at a time, the others'
joint actions cut to some of them, a limited number of rounds.

A search asks for values instead of calling a network, so that many can share its batches.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from snakekit import core

Plays = NDArray[np.int32]
"""Actions as rows of numbers, `[n, size]`."""
Floats = NDArray[np.float32]
Rows = NDArray[np.uint8]
Pool = Literal["none", "uniform", "local"]
SPARE = 2
"""So many times a pool's size is made, since some of it is known or made twice."""


class Payoffs(Protocol):
    """One state's game, as far as the oracle needs to know it."""

    seats: int

    def expand(self, joint: Plays) -> Rows:
        """Try joint actions `[n, seats, size]`; return features of the states that need judging."""
        ...

    def values(self, outcomes: Floats) -> tuple[Floats, Floats]:
        """Return what the joint actions just tried are worth.

        Args:
            outcomes: logits for the features.

        Returns:
            Chances to win by seat and of a draw `[n, seats + 1]`, and utilities `[n, seats]`.
        """
        ...

    def sample(self, seat: int, count: int, generator: np.random.Generator) -> Plays:
        """Return random legal actions of a seat, `[count, size]`."""
        ...

    def modify(
        self, seat: int, plays: Plays, expected: Plays, generator: np.random.Generator
    ) -> Plays:
        """Return legal actions that each differ a little from `plays`, `[n, size]`.

        Args:
            seat: whose.
            plays: its actions.
            expected: the likeliest action of every seat, `[seats, size]`.
            generator: of all draws.
        """
        ...


@dataclass(frozen=True)
class OracleRules:
    """How hard to look."""

    pool: Pool = "local"
    """Where new actions come from."""
    rounds: int = 8
    """Looks of one seat, in turn."""
    patience: int = 2
    """The search ends when every seat has failed so many times in a row: pools are random."""
    size: int = 32
    """Actions in a pool."""
    bases: int = 8
    """Actions drawn from the seat's mixture that a local pool is made of."""
    opponents: int = 6
    """Joint actions of the others that a pool is tried against."""
    drawn: bool = False
    """Those are drawn from the others' mixtures instead of being the likeliest."""
    gain: float = 0.02
    """A find must pay so much more than the seat's best candidate."""
    most: int = 1024
    """Joint candidates kept: beyond it the least likely action makes room for a find."""
    iterations: int = 256
    """Of regret matching."""


@dataclass(frozen=True)
class Found:
    """An equilibrium over candidates."""

    actions: tuple[Plays, ...]
    """Candidates by seat."""
    policy: tuple[Floats, ...]
    """Their probabilities."""
    outcome: Floats
    """Expected chances to win by seat and of a draw `[seats + 1]`."""
    value: Floats
    """Utilities `[seats]`."""
    gap: float
    """NashConv among the candidates."""
    rounds: int
    """Looks that were completed."""
    added: int
    """Actions that the oracle found."""
    evaluations: int
    """Joint actions that were tried."""
    leaves: int
    """States that had to be judged."""


class DoubleOracle:
    """The candidates of one state, their payoffs and their equilibrium."""

    def __init__(self, game: Payoffs, start: Sequence[Plays], rules: OracleRules) -> None:
        """Begin with the distinct actions of `start`, at least one a seat, the best ones first.

        More than `rules.most` joint actions drop the last ones of the seats with most actions.
        """
        self._game, self._rules = game, rules
        self.actions = [_distinct(plays) for plays in start]
        while np.prod([len(plays) for plays in self.actions]) > rules.most:
            most = max(range(game.seats), key=lambda s: len(self.actions[s]))
            self.actions[most] = self.actions[most][:-1]
        self.evaluations = self.leaves = self.added = self.rounds = 0
        self.ready = False
        """Whether there is an equilibrium already."""

    def search(self, generator: np.random.Generator) -> Generator[Rows, Floats, None]:
        """Yield features, to be sent the outcome logits for them, until the search is over.

        It may be left off wherever it is: `found` tells what there is once it is `ready`.
        """
        self._outcome, self._utility = yield from self._table(self.actions)
        self._solve()
        failed = 0
        for turn in range(self._rules.rounds if self._rules.pool != "none" else 0):
            found = yield from self._improve(turn % self._game.seats, generator)
            self.rounds += 1
            failed = 0 if found else failed + 1
            if failed == self._game.seats * self._rules.patience:
                return

    def found(self) -> Found:
        """Return the present equilibrium."""
        joint = np.ones(1, np.float32)
        for chances in self.policy:
            joint = np.multiply.outer(joint, chances).ravel()
        return Found(
            tuple(self.actions),
            tuple(self.policy),
            joint @ self._outcome.reshape(len(joint), -1),
            self.value,
            float(self.gap),
            self.rounds,
            self.added,
            self.evaluations,
            self.leaves,
        )

    def _ask(self, joint: Plays) -> Generator[Rows, Floats, tuple[Floats, Floats]]:
        rows = self._game.expand(joint)
        self.evaluations += len(joint)
        self.leaves += len(rows)
        outcomes = yield rows
        return self._game.values(outcomes)

    def _table(self, actions: Sequence[Plays]) -> Generator[Rows, Floats, tuple[Floats, Floats]]:
        """Ask for all joint actions: outcomes and utilities `[actions of seat 0, ..., last]`."""
        shape = [len(plays) for plays in actions]
        index = np.indices(shape).reshape(len(shape), -1)
        joint = np.stack([plays[i] for plays, i in zip(actions, index, strict=True)], 1)
        outcome, utility = yield from self._ask(joint)
        return outcome.reshape(*shape, -1), utility.reshape(*shape, -1)

    def _solve(self) -> None:
        found = core.solve_stage(self._utility, iterations=self._rules.iterations, method="full")
        self.policy, self.value, self.gap = found
        self.ready = True

    def _expected(self) -> Plays:
        likeliest = zip(self.actions, self.policy, strict=True)
        return np.stack([plays[int(chances.argmax())] for plays, chances in likeliest])

    def _others(self, seat: int, generator: np.random.Generator) -> tuple[Plays, Floats, float]:
        """Return joint actions of the others, their weights, and the seat's best so far.

        The joint actions are `[k, seats, size]` with the seat's own place free; the last number is
        what its best candidate gets against them.
        """
        shape = [1 if s == seat else len(p) for s, p in enumerate(self.policy)]
        index = np.indices(shape).reshape(len(shape), -1)
        weight = np.ones(index.shape[1])
        for s, chances in enumerate(self.policy):
            weight *= 1 if s == seat else chances[index[s]]
        if self._rules.drawn:
            draws = generator.multinomial(self._rules.opponents, weight / weight.sum())
            kept = np.flatnonzero(draws)
            weight = draws.astype(np.float64)
        else:
            kept = np.argsort(-weight, kind="stable")[: self._rules.opponents]
        joint = np.stack([plays[index[s, kept]] for s, plays in enumerate(self.actions)], 1)
        share = (weight[kept] / weight[kept].sum()).astype(np.float32)
        own = np.moveaxis(self._utility[..., seat], seat, -1)
        places = tuple(index[s, kept] for s in range(self._game.seats) if s != seat)
        return joint, share, float((share @ own[places]).max())

    def _pool(self, seat: int, generator: np.random.Generator) -> Plays:
        rules = self._rules
        if rules.pool == "uniform":
            pool = self._game.sample(seat, SPARE * rules.size, generator)
        else:
            chances = self.policy[seat].astype(np.float64)
            drawn = generator.choice(len(chances), rules.bases, p=chances / chances.sum())
            bases = self.actions[seat][np.resize(drawn, SPARE * rules.size)]
            pool = self._game.modify(seat, bases, self._expected(), generator)
        pool = _distinct(pool)
        known = (pool[:, None] == self.actions[seat][None]).all(2).any(1)
        return np.asarray(pool[~known][: rules.size], np.int32)

    def _improve(self, seat: int, generator: np.random.Generator) -> Generator[Rows, Floats, bool]:
        """Look for a better action of one seat; return whether one was added."""
        pool = self._pool(seat, generator)
        if not len(pool):
            return False
        others, weight, floor = self._others(seat, generator)
        joint = np.repeat(others[None], len(pool), 0)
        joint[:, :, seat] = pool[:, None]
        _, utility = yield from self._ask(joint.reshape(-1, *joint.shape[2:]))
        worth = utility[:, seat].reshape(len(pool), len(weight)) @ weight
        best = int(worth.argmax())
        if worth[best] - floor <= self._rules.gain:
            return False
        yield from self._add(seat, pool[best])
        return True

    def _add(self, seat: int, play: Plays) -> Generator[Rows, Floats, None]:
        actions, outcome, utility = self._room(seat)
        only = [play[None] if s == seat else plays for s, plays in enumerate(actions)]
        new_outcome, new_utility = yield from self._table(only)
        # Only now, so that a search that is left off in between has lost nothing.
        self._outcome = np.concatenate((outcome, new_outcome), seat)
        self._utility = np.concatenate((utility, new_utility), seat)
        actions[seat] = np.concatenate((actions[seat], play[None]))
        self.actions = actions
        self.added += 1
        self._solve()

    def _room(self, seat: int) -> tuple[list[Plays], Floats, Floats]:
        """Return candidates and payoffs without those that have to go for one more of `seat`."""
        actions, outcome, utility = list(self.actions), self._outcome, self._utility
        chances = [p.copy() for p in self.policy]
        while True:
            sizes = [len(plays) + (s == seat) for s, plays in enumerate(actions)]
            if np.prod(sizes) <= self._rules.most or max(map(len, actions)) == 1:
                return actions, outcome, utility
            rare = min(
                (s for s in range(len(sizes)) if len(actions[s]) > 1),
                key=lambda s: float(chances[s].min()),
            )
            gone = int(chances[rare].argmin())
            actions[rare] = np.delete(actions[rare], gone, 0)
            chances[rare] = np.delete(chances[rare], gone)
            outcome, utility = np.delete(outcome, gone, rare), np.delete(utility, gone, rare)


def _distinct(plays: Plays) -> Plays:
    """Return the distinct rows, in the order of their first places."""
    rows = np.ascontiguousarray(plays, np.int32)
    first: dict[bytes, int] = {}
    for index, row in enumerate(rows):
        first.setdefault(row.tobytes(), index)
    return rows[list(first.values())]


def search_together(
    oracles: Sequence[DoubleOracle],
    evaluate: Callable[[Rows], Floats],
    generators: Sequence[np.random.Generator],
    may_ask: Callable[[int], bool] = lambda rows: True,
) -> None:
    """Let searches run side by side, their questions in common batches.

    Args:
        oracles: not yet begun.
        evaluate: maps features to outcome logits.
        generators: one for each search, so that none depends on the others.
        may_ask: asked before every batch, with its size; the searches stop where it says no.
    """
    waiting = [o.search(g) for o, g in zip(oracles, generators, strict=True)]
    asked = [next(search) for search in waiting]
    while waiting:
        sizes = [len(rows) for rows in asked]
        if not may_ask(sum(sizes)):
            return
        answers = np.split(evaluate(np.concatenate(asked)), np.cumsum(sizes)[:-1])
        going: list[Generator[Rows, Floats, None]] = []
        asked = []
        for search, answer in zip(waiting, answers, strict=True):
            try:
                asked.append(search.send(answer))
            except StopIteration:
                continue
            going.append(search)
        waiting = going
