"""The official request format, and how the official engine reads an answer.

Everything a server sees is built here: the `game` object, boards, snakes and `you`.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from snakekit.core import MOVES, Settings, State
from snakekit.runtime import wire
from snakekit.runtime.wire import Customization, Seat

__all__ = ["Answer", "Customization", "Json", "Kind", "Seat", "Turn", "game_object", "read_answer"]

MAX_SHOUT = 256
Json = dict[str, Any]


class Kind(Enum):
    """How one `/move` request ended, as the official engine sees it."""

    OK = "ok"
    TIMEOUT = "timeout"
    HTTP_ERROR = "http error"
    BAD_ANSWER = "bad answer"
    ILLEGAL_WORD = "illegal word"


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of one `/move` request; `move` is None unless `kind` is OK."""

    kind: Kind
    move: int | None = None
    shout: str = ""
    latency_ms: float = 0.0
    detail: str = ""


def game_object(
    *, game_id: str, ruleset: str, map_name: str, timeout_ms: int, settings: Settings
) -> Json:
    """Return the `game` object of every request of one game. `timeout_ms` in milliseconds."""
    return _json(
        wire.game_object(
            game_id=game_id,
            ruleset=ruleset,
            map_name=map_name,
            timeout_ms=timeout_ms,
            settings=settings,
        )
    )


def _json(value: msgspec.Struct) -> Json:
    found: Json = msgspec.to_builtins(value)
    return found


class Turn:
    """The request objects of one turn of one game, built once and shared by all players."""

    def __init__(self, game: Json, state: State, seats: list[Seat], *, turn: int | None = None):
        """Build them; `turn` replaces the state's own turn (the engine's `/end` is one later)."""
        snakes = state.snakes()
        objects = [wire.snake_object(s, seat) for s, seat in zip(snakes, seats, strict=True)]
        self._objects = [_json(o) for o in objects]
        self._game = game
        self._turn = state.turn if turn is None else turn
        self._board = _json(wire.board_object(state, (objects[i] for i in state.living())))

    def request(self, you: int) -> Json:
        """Return the whole request for the snake in seat `you`, alive or not."""
        return {
            "game": self._game,
            "turn": self._turn,
            "board": self._board,
            "you": self._objects[you],
        }

    def recorded(self) -> Json:
        """Return the request that a game file keeps: `you` is the first snake still alive."""
        living: list[Json] = self._board["snakes"]
        return self.request(self._objects.index(living[0]) if living else 0)


def read_answer(status: int, body: bytes, latency_ms: float) -> Answer:
    """Judge an HTTP answer to `/move` as the engine does.

    Anything but status 200, a JSON object, text (or nothing) as `shout` and one of the four words
    as `move` is worthless to the engine, and the kind says why.
    """
    if status != 200:
        return Answer(Kind.HTTP_ERROR, latency_ms=latency_ms, detail=f"status {status}")
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Answer(Kind.BAD_ANSWER, latency_ms=latency_ms, detail="not JSON")
    if not isinstance(found, dict):
        return Answer(Kind.BAD_ANSWER, latency_ms=latency_ms, detail="not a JSON object")
    shout = found.get("shout")
    if shout is not None and not isinstance(shout, str):
        return Answer(Kind.BAD_ANSWER, latency_ms=latency_ms, detail="shout is not text")
    word = found.get("move")
    if word is not None and not isinstance(word, str):
        return Answer(Kind.BAD_ANSWER, latency_ms=latency_ms, detail="move is not text")
    if word not in MOVES:
        detail = "no move" if word is None else f"move {word[:20]!r}"
        return Answer(Kind.ILLEGAL_WORD, latency_ms=latency_ms, detail=detail)
    return Answer(Kind.OK, MOVES.index(word), (shout or "")[:MAX_SHOUT], latency_ms)
