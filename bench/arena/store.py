"""The folder of an arena: `arena.json` says what is played, `games.jsonl` what has been."""

import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from snakekit.bench.arena.bout import BoutRecord

FORMAT = 1
PLAN = "arena.json"
GAMES = "games.jsonl"
REPLAYS = "games"


class StoreError(ValueError):
    """A folder that cannot be used; the message is one sentence for the user."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What decides every game of an arena. `games` alone may change when it is resumed."""

    format: int = FORMAT
    players: list[str]
    fingerprints: dict[str, str]
    """Hash of the weights of each player that has a model, by name."""
    options: dict[str, Any]
    """Board, rules, seed and the like."""


def read_plan(folder: Path) -> Plan:
    """Read the plan of the arena in `folder`.

    Raises:
        StoreError: none there, or of another version.
    """
    path = folder / PLAN
    try:
        plan = msgspec.json.decode(path.read_bytes(), type=Plan)
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error.strerror})") from None
    except msgspec.MsgspecError as error:
        raise StoreError(f"{path}: not an arena's plan: {error}") from None
    if plan.format != FORMAT:
        raise StoreError(f"{path}: format {plan.format}, this version reads {FORMAT}")
    return plan


def check_same(old: Plan, new: Plan) -> None:
    """Refuse to go on with another arena than the one that was begun.

    Raises:
        StoreError: names the first difference.
    """
    if old.players != new.players:
        raise StoreError(
            f"resume: the arena was begun with the players {' '.join(old.players)}, "
            f"found {' '.join(new.players)}"
        )
    for name, fingerprint in old.fingerprints.items():
        if new.fingerprints.get(name) != fingerprint:
            raise StoreError(f"resume: the model of player {name} has changed since")
    for key in sorted(set(old.options) | set(new.options)):
        if old.options.get(key) != new.options.get(key):
            raise StoreError(
                f"resume: {key} was {old.options.get(key)!r} when the arena was begun, "
                f"found {new.options.get(key)!r}"
            )


class Store:
    """Finished games on disk, a line each, as soon as they end."""

    def __init__(self, folder: Path, plan: Plan, *, resume: bool) -> None:
        """Open `folder`, new or to be resumed.

        Raises:
            StoreError: it holds an arena already, or another one, or damaged games.
        """
        self.folder = folder
        self.records: list[BoutRecord] = []
        path = folder / GAMES
        if resume:
            check_same(read_plan(folder), plan)
            self.records = read_games(path, repair=True)
        elif path.exists() or (folder / PLAN).exists():
            raise StoreError(
                f"out: {folder} holds an arena already; add --resume to go on with it, "
                "or give another folder"
            )
        folder.mkdir(parents=True, exist_ok=True)
        _write_whole(folder / PLAN, msgspec.json.format(msgspec.json.encode(plan), indent=2))
        self._file = path.open("ab")

    def add(self, record: BoutRecord) -> None:
        """Keep a finished game."""
        self.records.append(record)
        self._file.write(msgspec.json.encode(record) + b"\n")
        self._file.flush()

    def __enter__(self) -> Self:
        """Return this store."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the file."""
        self._file.close()


def read_games(path: Path, *, repair: bool = False) -> list[BoutRecord]:
    """Return the games in `path`, none if there is no such file.

    A last line that was cut short by a crash is left out; `repair` removes it from the file.

    Raises:
        StoreError: another line is not a game, or a game is there twice.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"{path}: cannot be read ({error.strerror})") from None
    whole = data.rfind(b"\n") + 1
    decoder = msgspec.json.Decoder(BoutRecord)
    records: list[BoutRecord] = []
    seen: set[int] = set()
    for number, line in enumerate(data[:whole].splitlines(), 1):
        try:
            record = decoder.decode(line)
        except msgspec.MsgspecError as error:
            raise StoreError(f"{path}, line {number}: not a game: {error}") from None
        if record.game in seen:
            raise StoreError(f"{path}, line {number}: game {record.game} is there twice")
        seen.add(record.game)
        records.append(record)
    if repair and whole < len(data):
        os.truncate(path, whole)
    return records


def _write_whole(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_bytes(data + b"\n")
    temporary.replace(path)
