"""The most recent positions, kept by board shape so that every batch has one shape.

A method's positions are a dataclass of arrays that share their first axis, one of them `obs`
(uint8 `[N, planes, rows, cols]`).
"""

import dataclasses
import zlib
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, int, int]


class Examples(Protocol):
    """Positions with what a net should answer."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def obs(self) -> NDArray[np.uint8]:
        """`[N, planes, rows, cols]`."""
        ...

    def __len__(self) -> int:
        """Return the number of positions."""
        ...


E = TypeVar("E", bound=Examples)


class Ring(Generic[E]):
    """The last positions of one shape, as many as there is room for."""

    def __init__(self, room: E) -> None:
        """Use the arrays of `room`, whatever is in them."""
        self.room = room
        self.size = 0
        self.next = 0

    def add(self, new: E) -> None:
        """Add positions, overwriting the oldest."""
        capacity = len(self.room)
        kept = min(len(new), capacity)
        places = (self.next + np.arange(kept)) % capacity
        for name, mine in vars(self.room).items():
            mine[places] = getattr(new, name)[len(new) - kept :]
        self.next = int((self.next + kept) % capacity)
        self.size = min(capacity, self.size + kept)

    def sample(self, count: int, generator: np.random.Generator) -> E:
        """Draw `count` positions with replacement."""
        index = generator.integers(self.size, size=count)
        drawn = {name: array[index] for name, array in vars(self.room).items()}
        return dataclasses.replace(self.room, **drawn)

    def pack(self) -> dict[str, NDArray[Any]]:
        """Return everything as named arrays; observations are deflated (about a tenth is left)."""
        held = {name: array[: self.size].copy() for name, array in vars(self.room).items()}
        held["obs"] = np.frombuffer(zlib.compress(held["obs"].tobytes(), 1), np.uint8)
        return {**held, "size": np.array([self.size]), "next": np.array([self.next])}

    def unpack(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Put what `pack` returned back; raises ValueError for other shapes or too little room."""
        size = int(arrays["size"][0])
        if size > len(self.room):
            raise ValueError("the saved replay is larger than this one")
        for name, mine in vars(self.room).items():
            found = arrays[name]
            if name == "obs":
                raw = zlib.decompress(found.tobytes())
                found = np.frombuffer(raw, np.uint8).reshape(size, *mine.shape[1:])
            if found.shape != (size, *mine.shape[1:]):
                raise ValueError("the saved replay is for other games")
            mine[:size] = found
        self.size, self.next = size, int(arrays["next"][0])


class Replay(Generic[E]):
    """Rings by board shape with uniform sampling over everything they hold."""

    def __init__(self, room: Callable[[int, Shape], E], capacities: Mapping[Shape, int]) -> None:
        """Create a ring for each (planes, rows, cols).

        Args:
            room: makes arrays for a number of positions of a shape.
            capacities: how many positions of each shape are kept.
        """
        self.rings = {shape: Ring(room(n, shape)) for shape, n in sorted(capacities.items())}

    def __len__(self) -> int:
        """Return the number of positions held."""
        return sum(ring.size for ring in self.rings.values())

    def add(self, examples: E) -> None:
        """Add positions to the ring of their shape; they replace the oldest there."""
        planes, rows, cols = examples.obs.shape[1:]
        self.rings[planes, rows, cols].add(examples)

    def sample(self, count: int, generator: np.random.Generator) -> E:
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
        return ring.sample(count, generator)

    def pack(self) -> dict[str, NDArray[Any]]:
        """Return everything as named arrays."""
        return {
            f"{_name(shape)}{name}": array
            for shape, ring in self.rings.items()
            for name, array in ring.pack().items()
        }

    def unpack(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Put what `pack` returned back.

        Raises:
            ValueError: other shapes or more positions than this replay has room for.
        """
        held = {key.rpartition("/")[0] + "/" for key in arrays if key.startswith(_FOLDER)}
        if held != {_name(shape) for shape in self.rings}:
            raise ValueError("the saved replay is for other boards")
        for shape, ring in self.rings.items():
            start = _name(shape)
            parts = {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}
            ring.unpack(parts)


_FOLDER = "replay/"


def _name(shape: Shape) -> str:
    """Return what the names of a ring's arrays begin with."""
    return f"{_FOLDER}{'x'.join(map(str, shape))}/"
