"""Where the tuner looks: weights as points of a space in which all terms count alike."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from snakekit.bench.weights import MAX_WEIGHT
from snakekit.core import TERMS, WEIGHTS, sample_positions

Vector = NDArray[np.float64]

_UNIT = 2000.0
"""What one step of a coordinate changes a usual position's evaluation by, 16 to a point."""
_LEAST_SPREAD = 0.05
_GAMES = 30
_NODES = 60


class Space:
    """Coordinates of some weights of one table around given ones."""

    def __init__(self, table: str, names: Sequence[str], start: dict[str, int], seed: int) -> None:
        """Measure how much the terms vary in games.

        Args:
            table: `duel` or `many`.
            names: terms whose weights may change, empty for all that vary.
            start: the weights at the origin, all of them.
            seed: of the games.
        """
        snakes = 2 if table == "duel" else 4
        terms, living, _, _ = sample_positions(
            start, snakes=snakes, games=_GAMES, max_nodes=_NODES, seed=seed, every=5
        )
        spread = terms[(living > 2) == (table == "many")].std(axis=0)
        found = {name: float(s) for name, s in zip(TERMS, spread, strict=True)}
        self.names = [n for n in TERMS if (n in names if names else found[n] > 0)]
        self.start = dict(start)
        self._keys = [f"{table}.{name}" for name in self.names]
        self._scale = np.array([_UNIT / max(found[n], _LEAST_SPREAD) for n in self.names])
        self._origin = np.array([start[key] for key in self._keys], dtype=np.float64)

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return len(self.names)

    def weights(self, point: Vector) -> dict[str, int]:
        """Return all weights at a point."""
        values = np.clip(np.rint(self._origin + self._scale * point), -MAX_WEIGHT, MAX_WEIGHT)
        return self.start | {k: int(v) for k, v in zip(self._keys, values, strict=True)}


def all_weights(given: dict[str, int]) -> dict[str, int]:
    """Return the built-in weights with `given` in their place."""
    return {**WEIGHTS, **given}
