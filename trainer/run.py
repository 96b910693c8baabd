"""A run's folder: its configuration, metrics, TensorBoard files and checkpoints.

runs/<utc>-<name>/config.toml, metrics.jsonl, events.out.tfevents.*, checkpoints/step-*/
"""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec
from torch.utils.tensorboard import SummaryWriter

from snakekit.trainer import checkpoint as store
from snakekit.trainer.checkpoint import Checkpoint

CHECKPOINTS = "checkpoints"


def source_commit() -> str:
    """Return the commit of the checkout that this package runs from, or `unknown`.

    A work tree with changes gives the commit with `-dirty` appended.
    """
    here = Path(__file__).resolve().parent
    try:
        found = subprocess.run(
            ["git", "-C", str(here), "describe", "--always", "--dirty", "--abbrev=40"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return found.stdout.strip() or "unknown"


def _toml_value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_toml_value(item) for item in value) + "]"
    # JSON's strings, numbers and booleans are also TOML's.
    return json.dumps(value, ensure_ascii=False)


def to_toml(config: msgspec.Struct) -> str:
    """Return a flat configuration as TOML text; fields that are None are left out."""
    fields = msgspec.structs.asdict(config)
    lines = (f"{k} = {_toml_value(v)}" for k, v in fields.items() if v is not None)
    return "\n".join(lines) + "\n"


class RunFolder:
    """Where a run writes. Use it as a context manager, so that the files are closed."""

    def __init__(self, path: Path) -> None:
        """Open the folder `path`, which `create` made; metrics are appended."""
        self.path = path
        self._metrics = (path / "metrics.jsonl").open("a", encoding="utf-8")
        self._board = SummaryWriter(str(path))

    @classmethod
    def create(cls, parent: Path, name: str, config: msgspec.Struct) -> "RunFolder":
        """Make `parent/<utc>-<name>` and write `config` into it."""
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        path = parent / f"{stamp}-{name}"
        number = 1
        while path.exists():
            number += 1
            path = parent / f"{stamp}-{name}-{number}"
        path.mkdir(parents=True)
        (path / "config.toml").write_text(to_toml(config), encoding="utf-8")
        return cls(path)

    def __enter__(self) -> Self:
        """Return this folder."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the files."""
        self._metrics.close()
        self._board.close()

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Append `figures` at training step `step` to metrics.jsonl and to TensorBoard."""
        self._metrics.write(json.dumps({"step": step, **figures}) + "\n")
        self._metrics.flush()
        for key, value in figures.items():
            self._board.add_scalar(key, value, step)

    def save(self, checkpoint: Checkpoint, *, keep: int) -> Path:
        """Save a checkpoint and return its folder; only the last `keep` (at least 1) stay."""
        folder = self.path / CHECKPOINTS
        path = folder / f"step-{checkpoint.card.step:09d}"
        store.save(path, checkpoint)
        for old in sorted(folder.glob("step-*"))[: -max(keep, 1)]:
            shutil.rmtree(old, ignore_errors=True)
        return path

    def shown(self) -> str:
        """Return the path as a user would type it here."""
        return os.path.relpath(self.path)
