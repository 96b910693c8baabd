"""The most recent positions, kept by board shape so that every batch has one shape."""

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snakekit.trainer.generate import Examples


class Ring:
    """The last `capacity` positions of one board shape."""

    def __init__(self, capacity: int, shape: tuple[int, int, int]) -> None:
        """Reserve room for `capacity` observations of `shape` (planes, rows, cols)."""
        self.obs = np.zeros((capacity, *shape), np.uint8)
        self.policy = np.zeros((capacity, 4), np.float32)
        self.value = np.zeros(capacity, np.float32)
        self.size = 0
        self.next = 0

    def add(self, examples: Examples) -> None:
        """Add positions, overwriting the oldest."""
        capacity = len(self.value)
        kept = min(len(examples), capacity)
        places = (self.next + np.arange(kept)) % capacity
        self.obs[places] = examples.obs[-kept:]
        self.policy[places] = examples.policy[-kept:]
        self.value[places] = examples.value[-kept:]
        self.next = int((self.next + kept) % capacity)
        self.size = min(capacity, self.size + kept)


class Replay:
    """Rings by board shape with uniform sampling over everything they hold."""

    def __init__(self, capacities: Mapping[tuple[int, int, int], int]) -> None:
        """Create a ring of the given capacity for each (planes, rows, cols)."""
        self.rings = {shape: Ring(n, shape) for shape, n in sorted(capacities.items())}

    def __len__(self) -> int:
        """Return the number of positions held."""
        return sum(ring.size for ring in self.rings.values())

    def add(self, examples: Examples) -> None:
        """Add positions to the ring of their shape; they replace the oldest there."""
        planes, rows, cols = examples.obs.shape[1:]
        self.rings[planes, rows, cols].add(examples)

    def sample(self, count: int, generator: np.random.Generator) -> Examples:
        """Draw `count` positions of one shape, with replacement.

        A shape is drawn in proportion to what its ring holds.

        Raises:
            ValueError: nothing has been added.
        """
        rings = list(self.rings.values())
        edges = np.cumsum([ring.size for ring in rings])
        if edges[-1] == 0:
            raise ValueError("the replay holds no positions")
        ring = rings[int(np.searchsorted(edges, generator.integers(edges[-1]), side="right"))]
        index = generator.integers(ring.size, size=count)
        return Examples(ring.obs[index], ring.policy[index], ring.value[index])

    def pack(self) -> dict[str, NDArray[Any]]:
        """Return everything as named arrays; observations are deflated (about a tenth is left)."""
        arrays: dict[str, NDArray[Any]] = {}
        for shape, ring in self.rings.items():
            name = "x".join(map(str, shape))
            blob = zlib.compress(ring.obs[: ring.size].tobytes(), 1)
            arrays[f"{name}/obs"] = np.frombuffer(blob, np.uint8)
            arrays[f"{name}/policy"] = ring.policy[: ring.size].copy()
            arrays[f"{name}/value"] = ring.value[: ring.size].copy()
            arrays[f"{name}/next"] = np.array([ring.next])
        return arrays

    def unpack(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Put what `pack` returned back.

        Raises:
            ValueError: other shapes or more positions than this replay has room for.
        """
        expected = {f"{'x'.join(map(str, shape))}/next" for shape in self.rings}
        if {key for key in arrays if key.endswith("/next")} != expected:
            raise ValueError("the saved replay is for other boards")
        for shape, ring in self.rings.items():
            name = "x".join(map(str, shape))
            size = len(arrays[f"{name}/value"])
            if size > len(ring.value):
                raise ValueError("the saved replay is larger than this one")
            raw = zlib.decompress(arrays[f"{name}/obs"].tobytes())
            ring.obs[:size] = np.frombuffer(raw, np.uint8).reshape(size, *shape)
            ring.policy[:size] = arrays[f"{name}/policy"]
            ring.value[:size] = arrays[f"{name}/value"]
            ring.size, ring.next = size, int(arrays[f"{name}/next"][0])
