"""A run's folder: its configuration, metrics, TensorBoard files and checkpoints.

runs/<utc>-<name>/config.toml, metrics.jsonl, events.jsonl, events.out.tfevents.*,
checkpoints/step-*/
"""

import json
import math
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
from snakekit.trainer.checkpoint import CHECKPOINTS, Checkpoint

METRICS = "metrics.jsonl"
EVENTS = "events.jsonl"
GATES = ("gate", "promotion")
"""Kinds of events that tell of a gate."""


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


def write_config(path: Path, config: msgspec.Struct) -> None:
    """Write `config.toml` into the run's folder `path`."""
    (path / "config.toml").write_text(to_toml(config), encoding="utf-8")


def _cut(path: Path, last_step: int) -> None:
    """Drop the lines of `path` that were written after step `last_step`, and a torn last one.

    A gate at that step belongs to what comes after it, and is played again.
    """
    if not path.exists():
        return
    lines = [line for line in read_lines(path) if line["step"] <= last_step]
    kept = [line for line in lines if line["step"] < last_step or line.get("kind") not in GATES]
    temporary = path.with_suffix(".tmp")
    temporary.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
    temporary.replace(path)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON Lines file; a line torn by a kill ends it."""
    found: list[dict[str, Any]] = []
    if not path.exists():
        return found
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            break
    return found


def new_path(parent: Path, name: str) -> Path:
    """Return a path `parent/<utc>-<name>` that does not exist yet."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    path = parent / f"{stamp}-{name}"
    number = 1
    while path.exists():
        number += 1
        path = parent / f"{stamp}-{name}-{number}"
    return path


def make_folder(path: Path, config: msgspec.Struct) -> None:
    """Make the folder `path` of a new run and write `config` into it.

    Raises:
        FileExistsError: there is something in it already.
    """
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(f"{path}: not empty; add --resume to continue the run in it")
    path.mkdir(parents=True, exist_ok=True)
    write_config(path, config)


class RunFolder:
    """Where a run writes. Use it as a context manager, so that the files are closed."""

    def __init__(self, path: Path, *, resumed_at: int | None = None) -> None:
        """Open the folder `path`, which `create` or `make` made; metrics are appended.

        Args:
            path: the folder.
            resumed_at: step of the checkpoint that a resumed run begins with; what was written
                after it is dropped, as the run writes it again.
        """
        self.path = path
        if resumed_at is not None:
            _cut(path / METRICS, resumed_at)
            _cut(path / EVENTS, resumed_at)
        self._metrics = (path / METRICS).open("a", encoding="utf-8")
        self._events = (path / EVENTS).open("a", encoding="utf-8")
        purge = None if resumed_at is None else resumed_at + 1
        self._board = SummaryWriter(str(path), purge_step=purge)

    @classmethod
    def create(cls, parent: Path, name: str, config: msgspec.Struct) -> "RunFolder":
        """Make `parent/<utc>-<name>` and write `config` into it."""
        return cls.make(new_path(parent, name), config)

    @classmethod
    def make(cls, path: Path, config: msgspec.Struct) -> "RunFolder":
        """As `make_folder`, and open it."""
        make_folder(path, config)
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
        self._events.close()
        self._board.close()

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Append `figures` at training step `step` to metrics.jsonl and to TensorBoard."""
        # JSON knows no NaN.
        plain = {k: v if math.isfinite(v) else None for k, v in figures.items()}
        self._metrics.write(json.dumps({"step": step, **plain}) + "\n")
        self._metrics.flush()
        for key, value in figures.items():
            self._board.add_scalar(key, value, step)

    def note(self, step: int, kind: str, text: str, **facts: Any) -> None:
        """Append an event, such as an alarm or a promotion, to events.jsonl."""
        self._events.write(json.dumps({"step": step, "kind": kind, "text": text, **facts}) + "\n")
        self._events.flush()

    def metrics(self) -> list[dict[str, Any]]:
        """Return what `log` wrote so far, one dictionary a call."""
        return read_lines(self.path / METRICS)

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
