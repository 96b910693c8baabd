"""A running game on disk, and how it becomes a game file and a file of decisions.

A journal is `<stem>.part`: one JSON object a line, appended as moves are answered. What a crash
leaves of it is whole up to the last line. `finish` turns it into

- `<stem>.jsonl`, the official tool's form (`<stem>.aborted.jsonl` for a game without an end),
- `<stem>.parquet`, our decisions,

each written under another name, synced and renamed, so that a file that has its name is whole.
Doing it again, after a crash in between, gives the same files.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from snakekit.runtime.decided import Decided
from snakekit.runtime.recording import columns
from snakekit.runtime.recording.event import Event
from snakekit.runtime.wire import Result

PART, TEMPORARY = ".part", ".tmp"
GAME, ABORTED, DECISIONS = ".jsonl", ".aborted.jsonl", ".parquet"
_PRIVATE = 0o600
_LONGEST_LINE = 1 << 20


class JournalLine(msgspec.Struct, frozen=True, kw_only=True):
    """One answered request."""

    kind: Literal["move", "end"]
    turn: int
    request: msgspec.Raw
    decided: Decided | None = None


class _Named(msgspec.Struct):
    id: str
    name: str = ""


class _Board(msgspec.Struct):
    snakes: list[_Named] | None = None


class _Request(msgspec.Struct):
    """What of a request decides how a game ended."""

    game: msgspec.Raw
    board: _Board
    you: _Named


class _Placed(msgspec.Struct):
    id: str
    health: msgspec.Raw
    body: msgspec.Raw


class _Squares(msgspec.Struct):
    snakes: list[_Placed] | None = None
    food: msgspec.Raw = msgspec.Raw()
    hazards: msgspec.Raw = msgspec.Raw()


class _Position(msgspec.Struct):
    """What of a request is the position; names, latencies and shouts are not."""

    board: _Squares


_line_decoder = msgspec.json.Decoder(JournalLine)
_request_decoder = msgspec.json.Decoder(_Request)
_fields_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
_position_decoder = msgspec.json.Decoder(_Position)


class Journal:
    """Appends to one file, which never keeps half a line that the disk refused."""

    def __init__(self, path: Path, seen_at: float) -> None:
        """Begin `path`, or go on with it."""
        self.path = path
        self.size = path.stat().st_size if path.exists() else 0
        self.seen_at = seen_at

    def append(self, event: Event) -> None:
        """Add one request.

        Raises:
            OSError: the disk refuses; the file is as before.
        """
        request = msgspec.json.format(event.body, indent=-1)
        line = msgspec.json.encode(
            JournalLine(
                kind=event.kind,
                turn=event.turn,
                request=msgspec.Raw(request),
                decided=event.decided,
            )
        )
        line += b"\n"
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _PRIVATE)
        try:
            _write_all(handle, line)
        except OSError:
            os.ftruncate(handle, self.size)
            raise
        finally:
            os.close(handle)
        self.size += len(line)


def has_end(part: Path) -> bool:
    """Return whether a journal's last line is the end of its game: it only waits to be finished."""
    with part.open("rb") as file:
        file.seek(max(0, part.stat().st_size - _LONGEST_LINE))
        lines = file.read().splitlines()
    try:
        return bool(lines) and _line_decoder.decode(lines[-1]).kind == "end"
    except msgspec.MsgspecError:
        return False


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def finish(part: Path) -> int:
    """Turn a journal into its two files and remove it; return their size in bytes.

    Raises:
        OSError: the disk refuses; the journal is still there.
    """
    lines = list(_read(part))
    moves = _by_turn(line for line in lines if line.kind == "move")
    end = next((line for line in reversed(lines) if line.kind == "end"), None)
    size = 0
    if moves or end is not None:
        result = _result(moves, end) if end is not None else None
        stem = part.with_suffix("")
        size = _publish(stem, ABORTED if result is None else GAME, _game_lines(moves, end, result))
        # The last answer to a turn is the one that counted.
        rows = {line.turn: line.decided for line in lines if line.decided is not None}
        size += _publish_rows(stem, [rows[turn] for turn in sorted(rows)])
        _sync_folder(part.parent)
    part.unlink()
    return size


def _read(part: Path) -> Iterator[JournalLine]:
    for line in part.read_bytes().splitlines():
        try:
            yield _line_decoder.decode(line)
        except msgspec.MsgspecError:
            # A crash while it was written.
            continue


def _by_turn(lines: Iterator[JournalLine]) -> list[JournalLine]:
    first: dict[int, JournalLine] = {}
    for line in lines:
        first.setdefault(line.turn, line)
    return [first[turn] for turn in sorted(first)]


def _game_lines(
    moves: Sequence[JournalLine], end: JournalLine | None, result: Result | None
) -> list[bytes]:
    lines = [bytes(line.request) for line in moves]
    last = moves[-1] if moves else None
    if end is not None and (last is None or _position(last) != _position(end)):
        # The engine's `/end` says one turn more than its board.
        turn = max(end.turn - 1, last.turn + 1 if last is not None else 0)
        request = _fields_decoder.decode(end.request)
        request["turn"] = msgspec.Raw(b"%d" % turn)
        lines.append(msgspec.json.encode(request))
    game = bytes(_request_decoder.decode(lines[0]).game)
    return [game, *lines, *([msgspec.json.encode(result)] if result is not None else [])]


def _position(line: JournalLine) -> _Position:
    return _position_decoder.decode(line.request)


def _result(moves: Sequence[JournalLine], end: JournalLine) -> Result | None:
    """Return how a game ended, None where its `/end` still shows more than one snake."""
    last = _request_decoder.decode(end.request)
    left = last.board.snakes or []
    if len(left) > 1:
        return None
    first = _request_decoder.decode(moves[0].request) if moves else last
    alone = len(first.board.snakes or []) == 1
    winner = left[0] if left else last.you if alone else None
    return Result(
        winner_id=winner.id if winner is not None else "",
        winner_name=winner.name if winner is not None else "",
        is_draw=winner is None,
    )


def _publish(stem: Path, ending: str, lines: Sequence[bytes]) -> int:
    temporary = _beside(stem, ending + TEMPORARY)
    data = b"\n".join(lines) + b"\n"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE)
    try:
        _write_all(handle, data)
        os.fsync(handle)
    finally:
        os.close(handle)
    temporary.replace(_beside(stem, ending))
    return len(data)


def _publish_rows(stem: Path, rows: Sequence[Decided]) -> int:
    if not rows:
        return 0
    temporary = _beside(stem, DECISIONS + TEMPORARY)
    # Made before, so that it is private from the first byte on.
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE))
    columns.write(rows, temporary)
    handle = os.open(temporary, os.O_RDONLY)
    try:
        os.fsync(handle)
        size = os.fstat(handle).st_size
    finally:
        os.close(handle)
    temporary.replace(_beside(stem, DECISIONS))
    return size


def _beside(stem: Path, ending: str) -> Path:
    return stem.with_name(stem.name + ending)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
