"""Positions with their targets, the most recent ones, and the symmetries of all-seat features."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snakekit import core
from snakekit.trainer.nash.game import Floats
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


class Ring:
    """The last `capacity` positions of one shape."""

    def __init__(
        self, capacity: int, shape: tuple[int, int, int], slots: int, actions: int
    ) -> None:
        """Reserve room."""
        self.examples = Examples(
            np.zeros((capacity, *shape), np.uint8),
            np.zeros((capacity, slots, actions), np.float32),
            np.zeros((capacity, slots + 1), np.float32),
        )
        self.size = 0
        self.next = 0

    def add(self, new: Examples) -> None:
        """Add positions, overwriting the oldest."""
        capacity = len(self.examples)
        kept = min(len(new), capacity)
        places = (self.next + np.arange(kept)) % capacity
        for mine, theirs in zip(vars(self.examples).values(), vars(new).values(), strict=True):
            mine[places] = theirs[-kept:]
        self.next = int((self.next + kept) % capacity)
        self.size = min(capacity, self.size + kept)

    def sample(self, count: int, generator: np.random.Generator) -> Examples:
        """Draw `count` positions with replacement."""
        index = generator.integers(self.size, size=count)
        return Examples(*(array[index] for array in vars(self.examples).values()))

    def pack(self) -> dict[str, NDArray[Any]]:
        """Return everything as named arrays."""
        held = {name: array[: self.size] for name, array in vars(self.examples).items()}
        return {**held, "next": np.array([self.next])}

    def unpack(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Put what `pack` returned back; raises ValueError for other shapes."""
        for name, array in vars(self.examples).items():
            found = arrays[name]
            if found.shape[1:] != array.shape[1:] or len(found) > len(array):
                raise ValueError("the saved replay is for other games or larger than this one")
            array[: len(found)] = found
            self.size = len(found)
        self.next = int(arrays["next"][0])


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
