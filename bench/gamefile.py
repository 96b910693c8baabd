"""Game files: JSON Lines in the form that the official command line tool writes.

The first line is the `game` object of the requests, then one line for each turn in the form of a
request (with one of the snakes as `you`), then `{"winnerId", "winnerName", "isDraw"}`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from snakekit.bench.protocol import Json
from snakekit.runtime import boardjson
from snakekit.runtime.wire import Result

_decoder = msgspec.json.Decoder(dict[str, Any])


class GameFileError(ValueError):
    """A game file that cannot be read; the message names the file and the line."""


class GameWriter:
    """Writes one game; the file has its final name only once the game has ended."""

    def __init__(self, folder: Path, stem: str, game: Json) -> None:
        """Open `<stem>.jsonl.part` in `folder` (made if missing) and write the first line."""
        folder.mkdir(parents=True, exist_ok=True)
        self._base = folder / stem
        self._part = self._base.with_name(f"{stem}.jsonl.part")
        # A line at a time is on disk if the process is killed: the part file stays readable.
        self._file = self._part.open("w", encoding="utf-8", buffering=1)
        self._line(game)

    def _line(self, value: Json | Result) -> None:
        self._file.write(msgspec.json.encode(value).decode() + "\n")

    def turn(self, request: Json) -> None:
        """Add one turn."""
        self._line(request)

    def finish(self, winner_id: str, winner_name: str, *, is_draw: bool) -> Path:
        """Add the result, close the file and return its final name."""
        self._line(Result(winner_id=winner_id, winner_name=winner_name, is_draw=is_draw))
        return self._close(".jsonl")

    def abort(self) -> Path:
        """Close a game that did not end; it is kept as `<stem>.aborted.jsonl`, without a result."""
        return self._close(".aborted.jsonl")

    def _close(self, ending: str) -> Path:
        self._file.close()
        final = self._base.with_name(self._base.name + ending)
        self._part.replace(final)
        return final


@dataclass(frozen=True)
class GameRecord:
    """A game file read back; `result` is None for a game that did not end."""

    game: Json
    turns: list[Json]
    result: Json | None


def read_game(path: Path) -> GameRecord:
    """Read a game file, of snakekit or of the official tool, whatever its turns say.

    `boardjson.read_game` is the strict reader.

    Raises:
        GameFileError: unreadable, not JSON Lines, or without a game on its first line.
    """
    try:
        first, lines, last = boardjson.split_game(path.read_bytes())
        game = boardjson.decode(_decoder, first[1])
        turns = [boardjson.decode(_decoder, line) for _, line in lines]
        result = boardjson.decode(_decoder, last[1]) if last is not None else None
    except OSError as error:
        raise GameFileError(f"{path}: cannot be read ({error.strerror})") from None
    except boardjson.BoardError as error:
        raise GameFileError(f"{path}, {error}") from None
    for (number, _), turn in zip(lines, turns, strict=True):
        if "board" not in turn:
            raise GameFileError(f"{path}, line {number}: expected a board")
    return GameRecord(game, turns, result)
