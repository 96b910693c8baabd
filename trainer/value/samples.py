"""Positions labelled by searches, in files of some games each that an interrupted run keeps."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from snakekit.core import WEIGHTS, LearnedValue, label_positions
from snakekit.trainer.value.config import ValueConfig

FOLDER = "samples"
CHUNK = 64
"""Games a file."""


@dataclass(frozen=True)
class Samples:
    """Labelled positions, one a row."""

    rows: NDArray[np.uint16]
    """`[n, features]`: rows of the network that the position picks."""
    score: NDArray[np.int32]
    """`[n]`: of the labelling search."""
    result: NDArray[np.float32]
    """`[n]`: 1 where the seat won the game, 0.5 for a draw."""
    played: NDArray[np.uint8]
    """`[n]`: whether the game came through the position."""
    game: NDArray[np.int64]
    """`[n]`: number of the game."""

    @classmethod
    def load(cls, paths: list[Path]) -> Self:
        """Return the positions of several files.

        Raises:
            ValueError: a file is damaged; names it.
        """
        parts: dict[str, list[NDArray[np.generic]]] = {name: [] for name in cls.__annotations__}
        for path in paths:
            try:
                with np.load(path, allow_pickle=False) as found:
                    for name, part in parts.items():
                        part.append(found[name])
            except (KeyError, ValueError, OSError) as error:
                raise ValueError(f"{path}: damaged ({error}); delete it and resume") from None
        return cls(**{name: np.concatenate(part) for name, part in parts.items()})


def read_teacher(name: str) -> LearnedValue | None:
    """Return the learned value that a teacher's name means, None for `shipped` and `weights`.

    Raises:
        ValueError: not such a file.
        OSError: cannot be read.
    """
    if name in ("shipped", "weights"):
        return None
    try:
        return LearnedValue(Path(name).read_bytes())
    except ValueError as error:
        raise ValueError(f"teacher: {name}: {error}") from None


def files(folder: Path, config: ValueConfig) -> list[Path]:
    """Return where the files of a run are or will be."""
    chunks = -(-config.games // CHUNK)
    return [folder / FOLDER / f"{chunk:06d}.npz" for chunk in range(chunks)]


def sample(
    folder: Path,
    config: ValueConfig,
    *,
    stop: Callable[[], bool],
    on_games: Callable[[int], None],
) -> bool:
    """Write those of a run's files that are not there yet; return whether all are there.

    Args:
        folder: the run's.
        config: its options.
        stop: asked between files.
        on_games: told how many games are there.
    """
    learned = read_teacher(config.teacher)
    weights = WEIGHTS if config.teacher == "weights" else None
    (folder / FOLDER).mkdir(exist_ok=True)
    for chunk, path in enumerate(files(folder, config)):
        if stop():
            return False
        first = CHUNK * chunk
        games = min(CHUNK, config.games - first)
        if not path.exists():
            found = label_positions(
                first=first,
                games=games,
                share=config.share,
                wander=config.wander,
                label_nodes=config.label_nodes,
                random_percent=config.random_percent,
                width=config.width,
                height=config.height,
                max_nodes=config.play_nodes,
                seed=config.seed,
                threads=config.threads,
                weights=weights,
                learned=learned,
            )
            part = path.with_suffix(".part")
            with part.open("wb") as file:
                np.savez(file, allow_pickle=False, **found)
            os.replace(part, path)
        on_games(first + games)
    return True
