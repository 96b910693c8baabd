"""Positions with their targets, and the symmetries of all-seat features."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snakekit import core
from snakekit.trainer.nash.game import Floats
from snakekit.trainer.replay import Shape
from snakekit.trainer.symmetry import shape_keeping, transform_obs, transform_policy


@dataclass(frozen=True)
class Examples:
    """Positions and what the net should answer; all arrays share their first axis."""

    obs: NDArray[np.uint8]
    """`[N, planes, rows, cols]`."""
    policy: Floats
    """`[N, slots, actions]`; all zero for slots without a living seat."""
    outcome: Floats
    """`[N, slots + 1]`, a distribution."""

    def __len__(self) -> int:
        """Return the number of positions."""
        return len(self.obs)


def room(slots: int, actions: int) -> Callable[[int, Shape], Examples]:
    """Return what makes arrays for positions of games of so many slots and actions."""

    def make(count: int, shape: Shape) -> Examples:
        return Examples(
            np.zeros((count, *shape), np.uint8),
            np.zeros((count, slots, actions), np.float32),
            np.zeros((count, slots + 1), np.float32),
        )

    return make


def exchange_slots(batch: Examples, order: NDArray[np.intp]) -> Examples:
    """Return a batch of Battlesnake positions with new slot k holding what was in `order[k]`."""
    slots = len(order)
    common, block = core.ALL_SEAT_COMMON, core.ALL_SEAT_BLOCK
    planes = [np.arange(common)]
    planes += [common + block * slot + np.arange(block) for slot in order]
    return Examples(
        batch.obs[:, np.concatenate(planes)],
        batch.policy[:, order],
        batch.outcome[:, [*order, slots]],
    )


def augment(batch: Examples, generator: np.random.Generator) -> Examples:
    """Return a batch of Battlesnake positions spread over the symmetries of board and seats.

    Each of the board's symmetries that keep the shape gets an equal part of the batch, with an
    order of the slots of its own.
    """
    kept = shape_keeping(batch.obs.shape[-2], batch.obs.shape[-1])
    first = int(generator.integers(len(kept)))
    out = Examples(*(np.empty_like(array) for array in vars(batch).values()))
    for offset in range(len(kept)):
        rows = slice(offset, None, len(kept))
        part = Examples(*(array[rows] for array in vars(batch).values()))
        part = exchange_slots(part, generator.permutation(batch.policy.shape[1]))
        symmetry = (first + offset) % len(kept)
        out.obs[rows] = transform_obs(part.obs, symmetry)
        out.policy[rows] = transform_policy(part.policy, symmetry)
        out.outcome[rows] = part.outcome
    return out
