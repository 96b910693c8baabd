"""The league: the best player so far and those before it, as opponents in training.

A seat of a training game belongs to the learner (`LEARNER`) or to one opponent, for the whole
game. Opponents are earlier weights, numbered from 1 in the order of their promotion, or built-in
players, numbered from -1 downwards. Weights are copies under their hash: nothing that the learner
does can reach them. Each is written once, as `league/<sha256>.safetensors` beside the
checkpoints, which name it.
"""

import json
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from snakekit.trainer.agents import parse_agent
from snakekit.trainer.checkpoint import CHECKPOINTS, STATE_FILE, CheckpointError, hash_weights
from snakekit.trainer.contest import BUILTIN

LEARNER = 0
FOLDER = "league"

Weights = dict[str, NDArray[Any]]


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One promoted player."""

    number: int
    """1, 2, ... in the order of promotion; never used again."""
    sha256: str
    """Hash of the weights, see `trainer/checkpoint.py`."""
    iteration: int
    """When it was promoted."""


class LeagueRules(msgspec.Struct, frozen=True):
    """How opponents are drawn."""

    best_share: float = 0.8
    """Probability of the current best; otherwise one of the earlier ones, uniformly."""
    size: int = 16
    """Most recent entries that are drawn."""
    builtins: tuple[str, ...] = ()
    """Built-in players in the pool."""
    builtin_share: float = 0.0
    """Probability that an opponent is a built-in player."""
    selfplay_share: float = 0.0
    """Probability that a game has the learner in every seat."""
    learner_seats: int = 1
    """Seats of the learner in the other games; the rest are opponents."""


class League:
    """Entries, their weights, and the draw of opponents."""

    def __init__(self, rules: LeagueRules, first: Weights) -> None:
        """Begin with `first` as the current best."""
        self.rules = rules
        self.entries: list[Entry] = []
        self.weights: dict[int, Weights] = {}
        self.promote(first, 0)

    @property
    def best(self) -> Entry:
        """The current best."""
        return self.entries[-1]

    @property
    def drawn(self) -> list[Entry]:
        """The entries that can be drawn, the current best last."""
        return self.entries[-self.rules.size :]

    def promote(self, weights: Mapping[str, NDArray[Any]], iteration: int) -> Entry:
        """Make a copy of `weights` the current best."""
        copied = {name: np.array(value, copy=True) for name, value in weights.items()}
        for value in copied.values():
            value.flags.writeable = False
        number = self.entries[-1].number + 1 if self.entries else 1
        entry = Entry(number, hash_weights(copied), iteration)
        self.entries.append(entry)
        self.weights[number] = copied
        return entry

    def release(self, in_use: Collection[int]) -> None:
        """Forget weights that are neither drawn nor in `in_use`, the numbers of running games."""
        kept = {entry.number for entry in self.drawn} | set(in_use)
        self.entries = [entry for entry in self.entries if entry.number in kept]
        self.weights = {number: w for number, w in self.weights.items() if number in kept}

    def opponent(self, generator: np.random.Generator) -> int:
        """Draw the number of one opponent."""
        rules, pool = self.rules, self.drawn
        if rules.builtins and generator.random() < rules.builtin_share:
            return -1 - int(generator.integers(len(rules.builtins)))
        if len(pool) == 1 or generator.random() < rules.best_share:
            return pool[-1].number
        return pool[int(generator.integers(len(pool) - 1))].number

    def cast(self, snakes: int, generator: np.random.Generator) -> NDArray[np.int32]:
        """Draw who has each of the `snakes` seats of a new game, for the whole of it."""
        seats = np.full(snakes, LEARNER, np.int32)
        rules = self.rules
        if rules.selfplay_share >= 1 or generator.random() < rules.selfplay_share:
            return seats
        others = generator.permutation(snakes)[min(rules.learner_seats, snakes) :]
        for seat in sorted(others.tolist()):
            seats[seat] = self.opponent(generator)
        return seats

    def bare(self) -> "League":
        """Return a copy that can draw but holds no weights."""
        copied = League.__new__(League)
        copied.rules, copied.entries, copied.weights = self.rules, list(self.entries), {}
        return copied

    def name(self, number: int) -> str:
        """Return what an opponent is called in figures."""
        return self.rules.builtins[-1 - number] if number < 0 else f"best-{number}"

    def table(self) -> list[dict[str, Any]]:
        """Return the entries as JSON values for a checkpoint."""
        return [msgspec.to_builtins(entry) for entry in self.entries]

    def save(self, run: Path) -> None:
        """Write weights that are not in the run's folder yet, each whole or not at all.

        Raises:
            CheckpointError: the disk refuses.
        """
        for entry in self.entries:
            path = run / FOLDER / f"{entry.sha256}.safetensors"
            if path.exists():
                continue
            temporary = path.with_suffix(f".tmp-{os.getpid()}")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with temporary.open("wb") as file:
                    file.write(save_tensors(dict(self.weights[entry.number])))
                    file.flush()
                    os.fsync(file.fileno())
                temporary.rename(path)
            except OSError as error:
                temporary.unlink(missing_ok=True)
                raise CheckpointError(f"{path}: cannot be written: {error.strerror}") from error

    @classmethod
    def load(cls, rules: LeagueRules, run: Path, table: Sequence[Mapping[str, Any]]) -> "League":
        """Read back what `table` names from the run's folder.

        Raises:
            CheckpointError: an entry is odd, missing, damaged or not the one that is named.
        """
        league = cls.__new__(cls)
        league.rules = rules
        try:
            league.entries = [msgspec.convert(dict(row), Entry) for row in table]
        except (msgspec.ValidationError, TypeError, ValueError) as error:
            raise CheckpointError(f"{run}: the league's table is odd: {error}") from None
        if not league.entries:
            raise CheckpointError(f"{run}: the league's table is empty")
        league.weights = {e.number: _read(run / FOLDER, e.sha256) for e in league.entries}
        return league


def _read(folder: Path, sha256: str) -> Weights:
    path = folder / f"{sha256}.safetensors"
    try:
        weights: Weights = load_tensors(path.read_bytes())
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from None
    except (SafetensorError, ValueError) as error:
        raise CheckpointError(f"{path}: not a safetensors file: {error}") from None
    if hash_weights(weights) != sha256:
        raise CheckpointError(f"{path}: the weights are not those that its name says")
    return weights


def prune(run: Path, named: Collection[str]) -> None:
    """Delete league files of `run` whose hash is not in `named`."""
    for path in (run / FOLDER).glob("*.safetensors"):
        if path.stem not in named:
            path.unlink(missing_ok=True)


def prune_unnamed(run: Path) -> None:
    """Delete the league files of `run` that none of its checkpoints names."""
    named: set[str] = set()
    for path in (run / CHECKPOINTS).glob(f"step-*/{STATE_FILE}"):
        counters = json.loads(path.read_bytes())["counters"]
        named |= {row["sha256"] for row in counters.get(FOLDER, [])}
    prune(run, named)


def check_builtins(names: Sequence[str]) -> None:
    """Raise ValueError for a name that is neither a built-in player nor an agent's text."""
    for name in names:
        if ":" in name:
            parse_agent(name)
        elif name not in BUILTIN:
            raise ValueError(f"builtins: unknown player {name!r}; known: {', '.join(BUILTIN)}")
