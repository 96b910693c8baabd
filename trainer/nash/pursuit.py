"""A tiny game whose equilibrium is known exactly: the test bed of the trainer.

A runner (seat 0) wants to last some turns on a small grid; a hunter (seat 1) catches it by coming
next to it. Both move at once, so both have to be unpredictable: most states have mixed equilibria.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snakekit import core
from snakekit.trainer.nash.game import Floats

STEPS = ((0, 1), (0, -1), (-1, 0), (1, 0), (0, 0))
RUNNER, HUNTER = 0, 1


def _near(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return abs(a[0] - b[0]) + abs(a[1] - b[1]) <= 1


class Place(NamedTuple):
    """Cells (x, y) of both, and the turns left."""

    runner: tuple[int, int]
    hunter: tuple[int, int]
    left: int
    caught: bool = False


@dataclass(frozen=True)
class Pursuit:
    """The rules; see `SimultaneousGame`."""

    cols: int = 3
    rows: int = 3
    limit: int = 6
    """Turns until the runner has won."""
    seats: int = 2
    actions: int = len(STEPS)

    def start(self, generator: np.random.Generator) -> Place:
        """Return a random start, apart from each other, with 1 to `limit` turns left."""
        left = 1 + int(generator.integers(self.limit))
        while True:
            pair = generator.choice(self.cols * self.rows, 2, replace=False).tolist()
            runner, hunter = self._cell(pair[0]), self._cell(pair[1])
            if not _near(runner, hunter):
                return Place(runner, hunter, left)

    def _cell(self, number: int) -> tuple[int, int]:
        return number % self.cols, number // self.cols

    def living(self, state: Place) -> Sequence[int]:
        """Return both seats."""
        return (RUNNER, HUNTER)

    def outcome(self, state: Place) -> Floats | None:
        """Return who has won, or None."""
        if state.caught:
            return np.array([0, 1, 0], np.float32)
        return np.array([1, 0, 0], np.float32) if state.left == 0 else None

    def candidates(self, state: Place, seat: int) -> Sequence[int]:
        """Return the steps that stay on the grid; staying in place is one of them."""
        x, y = state.runner if seat == RUNNER else state.hunter
        return [
            action
            for action, (dx, dy) in enumerate(STEPS)
            if 0 <= x + dx < self.cols and 0 <= y + dy < self.rows
        ]

    def step(self, state: Place, joint: Sequence[int]) -> Place:
        """Move both at once."""
        (rx, ry), (hx, hy) = state.runner, state.hunter
        (rdx, rdy), (hdx, hdy) = STEPS[joint[0]], STEPS[joint[1]]
        runner, hunter = (rx + rdx, ry + rdy), (hx + hdx, hy + hdy)
        return Place(runner, hunter, state.left - 1, _near(runner, hunter))

    def chance(self, state: Place, generator: np.random.Generator) -> Place:
        """Return `state`: there is no luck."""
        return state

    def place(self, action: int) -> int:
        """Return the action itself."""
        return action

    def modify(self, state: Place, seat: int, action: int, generator: np.random.Generator) -> int:
        """Return another step."""
        others = [a for a in self.candidates(state, seat) if a != action]
        return others[int(generator.integers(len(others)))] if others else action

    def features(self, states: Sequence[Place]) -> NDArray[np.uint8]:
        """Return planes: the grid, the runner, the hunter, turns left."""
        out = np.zeros((len(states), 4, self.rows, self.cols), np.uint8)
        out[:, 0] = 1
        for i, state in enumerate(states):
            out[i, 1, state.runner[1], state.runner[0]] = 1
            out[i, 2, state.hunter[1], state.hunter[0]] = 1
            out[i, 3] = state.left
        return out

    def pack(self, states: Sequence[Place]) -> NDArray[np.int64]:
        """Return rows of both cells, the turns left, and whether the runner is caught."""
        return np.array([(*s.runner, *s.hunter, s.left, s.caught) for s in states], np.int64)

    def unpack(self, rows: NDArray[np.int64]) -> list[Place]:
        """Return the states of such rows; raises ValueError for rows of another game."""
        found = [Place((a, b), (c, d), e, bool(f)) for a, b, c, d, e, f in rows.tolist()]
        for runner, hunter, left, _ in found:
            inside = all(0 <= x < self.cols and 0 <= y < self.rows for x, y in (runner, hunter))
            if not inside or not 0 <= left <= self.limit:
                raise ValueError("the saved games are of another kind")
        return found

    def states(self) -> Iterator[Place]:
        """Yield every open state, those with fewer turns left first."""
        cells = [self._cell(number) for number in range(self.cols * self.rows)]
        for left in range(1, self.limit + 1):
            for runner in cells:
                for hunter in cells:
                    if not _near(runner, hunter):
                        yield Place(runner, hunter, left)


def nash_values(game: Pursuit) -> dict[Place, float]:
    """Return the runner's exact chance to win from every open state under optimal play.

    Value iteration: each state's game of one turn is solved as a linear program over the values of
    its successors, which have fewer turns left and are known by then.
    """
    values: dict[Place, float] = {}
    for state in game.states():
        own = [game.candidates(state, seat) for seat in (RUNNER, HUNTER)]
        matrix = np.empty((len(own[0]), len(own[1])))
        for i, a in enumerate(own[0]):
            for j, b in enumerate(own[1]):
                after = game.step(state, (a, b))
                end = game.outcome(after)
                matrix[i, j] = values[after] if end is None else end[0]
        values[state] = core.solve_zero_sum(matrix)[2]
    return values
