"""Positions with their targets, the most recent ones, and the symmetries of all-seat features."""

import zlib
from collections.abc import Mapping
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
        """Return everything as named arrays; observations are deflated."""
        held = {name: array[: self.size] for name, array in vars(self.examples).items()}
        blob = zlib.compress(held["obs"].tobytes(), 1)
        held["obs"] = np.frombuffer(blob, np.uint8)
        return {**held, "next": np.array([self.next])}

    def unpack(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Put what `pack` returned back; raises ValueError for other shapes."""
        mine = self.examples
        size = len(arrays["outcome"])
        fits = size <= len(mine) and arrays["policy"].shape[1:] == mine.policy.shape[1:]
        raw = np.frombuffer(zlib.decompress(arrays["obs"].tobytes()), np.uint8)
        if not fits or raw.size != size * mine.obs[0].size:
            raise ValueError("the saved replay is for other games, or larger than this one")
        mine.obs[:size] = raw.reshape(size, *mine.obs.shape[1:])
        mine.policy[:size], mine.outcome[:size] = arrays["policy"], arrays["outcome"]
        self.size, self.next = size, int(arrays["next"][0])


class Replay:
    """Rings by board shape, drawn from in proportion to what they hold."""

    def __init__(
        self, capacities: Mapping[tuple[int, int, int], int], slots: int, actions: int
    ) -> None:
        """Create a ring of the given capacity for each (planes, rows, cols)."""
        self.rings = {s: Ring(n, s, slots, actions) for s, n in sorted(capacities.items())}

    def __len__(self) -> int:
        """Return the number of positions held."""
        return sum(ring.size for ring in self.rings.values())

    def add(self, new: Examples) -> None:
        """Add positions to the ring of their shape."""
        planes, rows, cols = new.obs.shape[1:]
        self.rings[planes, rows, cols].add(new)

    def sample(self, count: int, generator: np.random.Generator) -> Examples:
        """Draw `count` positions of one shape, with replacement."""
        rings = list(self.rings.values())
        edges = np.cumsum([ring.size for ring in rings])
        ring = rings[int(np.searchsorted(edges, generator.integers(edges[-1]), side="right"))]
        return ring.sample(count, generator)

    def pack(self) -> dict[str, NDArray[Any]]:
        """Return everything as named arrays."""
        return {
            f"replay/{'x'.join(map(str, shape))}/{name}": array
            for shape, ring in self.rings.items()
            for name, array in ring.pack().items()
        }

    def unpack(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Put what `pack` returned back; raises ValueError or KeyError for other boards."""
        for shape, ring in self.rings.items():
            name = f"replay/{'x'.join(map(str, shape))}/"
            ring.unpack({k.removeprefix(name): v for k, v in arrays.items() if k.startswith(name)})


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
