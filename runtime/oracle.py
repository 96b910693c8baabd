"""Double oracle: equilibria of games with too many actions to list, from a few that matter.

One seat after the other looks for an action that would pay more against the others' present
mixture (its best response), in a pool that is either drawn at random or made from its present
actions by small changes. A find joins the candidates and the equilibrium is solved again. This is
the paper's procedure (arXiv 2110.02924, sections 3.2 and D.1): one seat at a time, the others'
joint actions cut to the likeliest, a limited number of rounds.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from snakekit import core

Plays = NDArray[np.int8]
"""Actions as rows of numbers, `[n, size]`."""
Floats = NDArray[np.float32]
Pool = Literal["none", "uniform", "local"]


class Payoffs(Protocol):
    """One state's game, as far as the oracle needs to know it."""

    seats: int

    def utility(self, joint: NDArray[np.int8]) -> Floats:
        """Return utilities `[n, seats]` of joint actions `[n, seats, size]`."""
        ...

    def sample(self, seat: int, count: int, generator: np.random.Generator) -> Plays:
        """Return random legal actions of a seat, `[count, size]`."""
        ...

    def modify(self, seat: int, plays: Plays, generator: np.random.Generator) -> Plays:
        """Return legal actions that each differ a little from those given, `[n, size]`."""
        ...


@dataclass(frozen=True)
class OracleRules:
    """How hard to look."""

    pool: Pool = "local"
    """Where new actions come from."""
    rounds: int = 8
    """Looks of one seat, in turn."""
    size: int = 32
    """Actions in a pool."""
    bases: int = 8
    """Actions drawn from the seat's mixture that a local pool is made of."""
    opponents: int = 6
    """Likeliest joint actions of the others that a pool is tried against."""
    gain: float = 0.02
    """A find must pay so much more than the seat's best candidate."""
    iterations: int = 256
    """Of regret matching."""


@dataclass(frozen=True)
class Found:
    """An equilibrium over candidates."""

    actions: tuple[Plays, ...]
    """Candidates by seat."""
    policy: tuple[Floats, ...]
    """Their probabilities."""
    value: Floats
    """Utilities `[seats]`."""
    gap: float
    """NashConv among the candidates."""
    added: int
    """Actions that the oracle found."""
    evaluations: int
    """Joint actions whose utility was asked for."""


class DoubleOracle:
    """The candidates of one state, their payoffs and their equilibrium."""

    def __init__(self, game: Payoffs, start: Sequence[Plays], rules: OracleRules) -> None:
        """Begin with the distinct actions of `start`, at least one a seat."""
        self._game, self._rules = game, rules
        self.actions = [np.unique(plays, axis=0) for plays in start]
        self.evaluations = self.added = 0
        self._utility = self._table(self.actions)
        self._solve()

    def _ask(self, joint: NDArray[np.int8]) -> Floats:
        self.evaluations += len(joint)
        return self._game.utility(joint)

    def _table(self, actions: Sequence[Plays]) -> Floats:
        """Return the payoffs of all joint actions, `[actions of seat 0, ..., seats]`."""
        index = list(itertools.product(*(range(len(plays)) for plays in actions)))
        joint = np.stack(
            [np.stack([actions[s][i] for s, i in enumerate(each)]) for each in index]
        ).astype(np.int8)
        shape = [len(plays) for plays in actions]
        return self._ask(joint).reshape(*shape, self._game.seats)

    def _solve(self) -> None:
        found = core.solve_stage(self._utility, iterations=self._rules.iterations)
        self.policy, self.value, self.gap = found

    def _others(self, seat: int) -> tuple[NDArray[np.int8], Floats, float]:
        """Return the likeliest joint actions of the others, their weights, and the best so far.

        The joint actions are `[k, seats, size]` with the seat's own place free; the last number is
        what its best candidate gets against them.
        """
        ranges = [range(1) if s == seat else range(len(p)) for s, p in enumerate(self.policy)]
        index = np.array(list(itertools.product(*ranges)))
        weight = np.ones(len(index), np.float32)
        for s, p in enumerate(self.policy):
            weight *= 1 if s == seat else p[index[:, s]]
        kept = np.argsort(-weight, kind="stable")[: self._rules.opponents]
        joint = np.stack([self.actions[s][index[kept, s]] for s in range(self._game.seats)], 1)
        share = weight[kept] / weight[kept].sum()
        own = np.moveaxis(self._utility[..., seat], seat, -1)
        places = tuple(index[kept, s] for s in range(self._game.seats) if s != seat)
        return joint, share, float((share @ own[places]).max())

    def _pool(self, seat: int, generator: np.random.Generator) -> Plays:
        rules = self._rules
        if rules.pool == "uniform":
            pool = self._game.sample(seat, rules.size, generator)
        else:
            chances = self.policy[seat].astype(np.float64)
            drawn = generator.choice(len(chances), rules.bases, p=chances / chances.sum())
            bases = self.actions[seat][np.resize(drawn, rules.size)]
            pool = self._game.modify(seat, bases, generator)
        pool = np.unique(pool, axis=0)
        known = (pool[:, None] == self.actions[seat][None]).all(2).any(1)
        return np.asarray(pool[~known], np.int8)

    def improve(self, seat: int, generator: np.random.Generator) -> bool:
        """Look for a better action of one seat; return whether one was added."""
        pool = self._pool(seat, generator)
        if not len(pool):
            return False
        others, weight, floor = self._others(seat)
        joint = np.repeat(others[None], len(pool), 0)
        joint[:, :, seat] = pool[:, None]
        flat = joint.reshape(-1, *joint.shape[2:])
        worth = self._ask(flat)[:, seat].reshape(len(pool), len(weight)) @ weight
        best = int(worth.argmax())
        if worth[best] - floor <= self._rules.gain:
            return False
        self._add(seat, pool[best])
        return True

    def _add(self, seat: int, play: NDArray[np.int8]) -> None:
        only = [play[None] if s == seat else plays for s, plays in enumerate(self.actions)]
        self._utility = np.concatenate((self._utility, self._table(only)), seat)
        self.actions[seat] = np.concatenate((self.actions[seat], play[None]))
        self.added += 1
        self._solve()

    def run(self, generator: np.random.Generator) -> Found:
        """Let the seats look in turn until all fail one after the other or the rounds are over."""
        failed = 0
        for turn in range(self._rules.rounds if self._rules.pool != "none" else 0):
            failed = 0 if self.improve(turn % self._game.seats, generator) else failed + 1
            if failed == self._game.seats:
                break
        return Found(
            tuple(self.actions),
            tuple(self.policy),
            self.value,
            float(self.gap),
            self.added,
            self.evaluations,
        )
