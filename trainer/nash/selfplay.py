"""Self-play by equilibrium, and the targets that come of it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snakekit.trainer.generate import Cancelled
from snakekit.trainer.nash.examples import Examples
from snakekit.trainer.nash.figures import happened
from snakekit.trainer.nash.game import Ends, Evaluate, Floats, Solved, Table
from snakekit.trainer.nash.planning import PlanFigures, PlanTeacher, shown

USUAL = 0.1
"""Moves of at least this probability tell about the equilibrium however they were chosen."""


@dataclass(frozen=True)
class Recipe:
    """How to play and label."""

    turns: int
    """Turns played in each game."""
    iterations: int
    """Of regret matching."""
    explore: float
    """Probability that a seat makes a random candidate move, each seat and turn by itself."""
    opening_explore: float
    """The same in a game's first turns."""
    opening_turns: int
    trust: float
    """Lambda: share of the target that comes from what followed; the equilibrium has the rest."""
    discount: float = 1.0
    """Of each turn: the rest of a target is an even chance for all who live. Makes wins urgent."""


def follow_up(
    expected: Floats,
    explored: NDArray[np.bool_],
    over: NDArray[np.bool_],
    cut: NDArray[np.bool_],
    final: Floats,
    trust: float,
    even: Floats | None = None,
    discount: float = 1.0,
) -> Floats:
    """Return value targets: equilibrium outcomes mixed with what followed, TD(lambda) style.

    The mixture stops at explored moves, which tell nothing about the equilibrium, at games that
    were cut off, and at the last turn: there the equilibrium's own outcome stands.

    Args:
        expected: equilibrium outcomes by seat `[turns, games, seats + 1]`.
        explored: whether any seat explored `[turns, games]`.
        over: whether the turn decided the game `[turns, games]`.
        cut: whether the game was given up after the turn `[turns, games]`.
        final: outcomes of decided games `[turns, games, seats + 1]`.
        trust: lambda, 0 to 1.
        even: an even chance for all who live `[turns, games, seats + 1]`; with a discount only.
        discount: share of the target that is not `even`, each turn anew.
    """
    out = np.empty_like(expected)
    for turn in range(len(expected) - 1, -1, -1):
        last = turn == len(expected) - 1
        open_end = expected[turn] if last else out[turn + 1]
        after = np.where(over[turn, :, None], final[turn], open_end)
        kept = explored[turn] | cut[turn] | (last & ~over[turn])
        share = np.where(kept, 0.0, trust)[:, None].astype(np.float32)
        out[turn] = (1 - share) * expected[turn] + share * after
        if even is not None:
            out[turn] += (1 - discount) * (even[turn] - out[turn])
    return out


def by_seat(outcome: Floats, seats: NDArray[np.int8], count: int) -> Floats:
    """Return outcomes of slots `[games, slots + 1]` as those of seats `[games, count + 1]`."""
    found = np.zeros((len(outcome), count + 1), np.float32)
    rows, slots = np.nonzero(seats >= 0)
    found[rows, seats[rows, slots]] = outcome[rows, slots]
    found[:, -1] = outcome[:, -1]
    return found


def by_slot(outcome: Floats, seats: NDArray[np.int8]) -> Floats:
    """Return outcomes of seats `[games, seats + 1]` as those of slots `[games, slots + 1]`."""
    found = np.zeros((len(outcome), seats.shape[1] + 1), np.float32)
    rows, slots = np.nonzero(seats >= 0)
    found[rows, slots] = outcome[rows, seats[rows, slots]]
    found[:, -1] = outcome[:, -1]
    return found


def even_chances(seats: NDArray[np.int8], count: int) -> Floats:
    """Return outcomes `[games, count + 1]` that are as good for all who live."""
    living = (seats >= 0).astype(np.float32)
    shares = living / np.maximum(living.sum(1, keepdims=True), 1)
    return by_seat(np.pad(shares, ((0, 0), (0, 1))), seats, count)


def choose(
    solved: Solved, explore: NDArray[np.float64], generator: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return actions `[games, slots]` and whether any living seat of a game explored `[games]`.

    A random move that the equilibrium itself makes often enough is no exploration.

    Args:
        solved: the equilibria.
        explore: probability of a random candidate by game.
        generator: of all draws.
    """
    shape = solved.policy.shape[:2]
    dare = (generator.random(shape) < explore[:, None]) & (solved.seats >= 0)
    if solved.kept is not None:
        dare &= ~solved.kept
    weights = np.where(dare[..., None], solved.allowed, solved.policy).astype(np.float64)
    edges = weights.cumsum(2)
    points = generator.random(shape) * edges[..., -1]
    # Never an action without weight, whatever the last sum was rounded to.
    chosen = np.minimum((edges <= points[..., None]).sum(2), weights.shape[2] - 1)
    usual = np.take_along_axis(solved.policy, chosen[..., None], 2)[..., 0] >= USUAL
    return chosen.astype(np.intp), np.asarray((dare & ~usual).any(1))


class _Record:
    """What every turn leaves behind."""

    def __init__(self) -> None:
        self.obs: list[NDArray[np.uint8]] = []
        self.solved: list[Solved] = []
        self.explored: list[NDArray[np.bool_]] = []
        self.ends: list[Ends] = []

    def examples(self, seats: int, recipe: Recipe) -> Examples:
        expected = np.stack([by_seat(s.outcome, s.seats, seats) for s in self.solved])
        target = follow_up(
            expected,
            np.stack(self.explored),
            np.stack([e.over for e in self.ends]),
            np.stack([e.cut for e in self.ends]),
            np.stack([e.outcome for e in self.ends]),
            recipe.trust,
            np.stack([even_chances(s.seats, seats) for s in self.solved]),
            recipe.discount,
        )
        slots = [by_slot(t, s.seats) for t, s in zip(target, self.solved, strict=True)]
        policies = [s.policy for s in self.solved]
        return Examples(np.concatenate(self.obs), np.concatenate(policies), np.concatenate(slots))

    def figures(self, seats: int) -> dict[str, float]:
        return happened(
            self.solved,
            self.ends,
            np.stack(self.explored),
            np.stack([by_seat(s.outcome, s.seats, seats) for s in self.solved]),
        )


def play(
    table: Table,
    evaluate: Evaluate,
    recipe: Recipe,
    generator: np.random.Generator,
    cancelled: Callable[[], bool] = lambda: False,
    teacher: PlanTeacher | None = None,
) -> tuple[Examples, dict[str, float]]:
    """Play some turns of every game; return their positions with targets, and figures.

    Args:
        table: the games; they go on from where they are.
        evaluate: the value net.
        recipe: how to play and label.
        generator: of all random choices but those of the games.
        cancelled: asked every turn.
        teacher: replaces some equilibria of one turn by those over plans.

    Raises:
        Cancelled: `cancelled()` was true.
    """
    record = _Record()
    taught: list[PlanFigures] = []
    leaves = 0
    for _ in range(recipe.turns):
        if cancelled():
            raise Cancelled
        record.obs.append(table.features())
        successors = table.expand()
        if teacher is not None and table.cut().any():
            successors = table.expand(teacher.priors(record.obs[-1]))
        leaves += len(successors)
        solved = table.solve(evaluate(successors), recipe.iterations)
        if teacher is not None:
            solved, found = teacher.teach(table, solved, generator)
            taught.append(found)
        early = table.turns() < recipe.opening_turns
        rate = np.where(early, recipe.opening_explore, recipe.explore)
        actions, explored = choose(solved, rate, generator)
        record.solved.append(solved)
        record.explored.append(explored)
        record.ends.append(table.play(actions))
    figures = record.figures(table.seats)
    figures["leaves_per_position"] = leaves / max(figures["positions"], 1)
    if teacher is not None:
        figures |= shown(taught)
    return record.examples(table.seats, recipe), figures
