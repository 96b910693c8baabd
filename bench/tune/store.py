"""A tuner's folder: what is tuned, the scores so far, and the weights found."""

import os
from pathlib import Path
from typing import Any

import msgspec

PLAN, LOG, WEIGHTS = "tune.json", "scores.jsonl", "weights.json"


class TuneError(ValueError):
    """A folder that cannot be used; the message is one sentence for the user."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What decides the candidates; `start` holds all weights at the beginning."""

    options: dict[str, Any]
    start: dict[str, int]


class Folder:
    """Keeps a run so that a killed one goes on."""

    def __init__(self, path: Path, plan: Plan, *, resume: bool) -> None:
        """Open the folder, new or to go on with.

        Raises:
            TuneError: it holds a run already, holds none, or another one than `plan`.
        """
        self.path = path
        written = path / PLAN
        if not resume:
            if written.exists():
                raise TuneError(f"out: {path} holds a run already; add --resume or name another")
            path.mkdir(parents=True, exist_ok=True)
            _replace(written, msgspec.json.format(msgspec.json.encode(plan), indent=2))
            return
        try:
            old = msgspec.json.decode(written.read_bytes(), type=Plan)
        except OSError:
            raise TuneError(f"out: {path} holds no run to go on with") from None
        except msgspec.DecodeError as error:
            raise TuneError(f"{written}: {error}") from None
        new = msgspec.json.decode(msgspec.json.encode(plan), type=Plan)
        for name in sorted(new.options):
            if old.options.get(name) != new.options[name]:
                raise TuneError(
                    f"resume: {name} was {old.options.get(name)!r} when the run was begun, "
                    f"found {new.options[name]!r}"
                )
        if old.start != new.start:
            raise TuneError("resume: the weights to begin with have changed since")

    def scores(self) -> list[list[float]]:
        """Return the scores of the finished generations.

        Raises:
            TuneError: the log is broken before its last line.
        """
        try:
            lines = (self.path / LOG).read_bytes().splitlines(keepends=True)
        except OSError:
            return []
        # A line that was being written when the run was killed is played again.
        whole = [line for line in lines if line.endswith(b"\n")]
        try:
            return [msgspec.json.decode(line, type=list[float]) for line in whole]
        except msgspec.DecodeError as error:
            raise TuneError(f"{self.path / LOG}: {error}") from None

    def keep(self, generations: list[list[float]], weights: dict[str, int]) -> None:
        """Write all scores and the weights found so far."""
        lines = b"".join(msgspec.json.encode(scores) + b"\n" for scores in generations)
        _replace(self.path / LOG, lines)
        self.write_weights({"weights": weights})

    def write_weights(self, content: dict[str, Any]) -> None:
        """Write the file that `search:MS,weights=FILE` reads."""
        _replace(self.path / WEIGHTS, msgspec.json.format(msgspec.json.encode(content), indent=2))


def _replace(path: Path, data: bytes) -> None:
    fresh = path.with_suffix(".tmp")
    fresh.write_bytes(data)
    os.replace(fresh, path)
