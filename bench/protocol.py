"""The official request format, and how the official engine reads an answer.

Everything a server sees is built here: the `game` object, boards, snakes and `you`.
"""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import msgspec

from snakekit.core import MOVES, Settings, Snake, State

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


@dataclass(frozen=True, slots=True)
class Customization:
    """How a player wants to look, from its `GET /`."""

    color: str = "#888888"
    head: str = "default"
    tail: str = "default"

    def as_json(self) -> Json:
        """Return the object as it stands in a request."""
        return {"color": self.color, "head": self.head, "tail": self.tail}


@dataclass(slots=True)
class Seat:
    """What a request says about one snake beyond the board: names, looks, last answer."""

    id: str
    name: str
    looks: Customization = field(default_factory=Customization)
    latency: str = "0"
    shout: str = ""


def game_object(
    *, game_id: str, ruleset: str, map_name: str, timeout_ms: int, settings: Settings
) -> Json:
    """Return the `game` object of every request of one game. `timeout_ms` in milliseconds."""
    return {
        "id": game_id,
        "ruleset": {
            "name": ruleset,
            "version": "snakekit",
            "settings": {
                "foodSpawnChance": settings.food_spawn_chance,
                "minimumFood": settings.minimum_food,
                "hazardDamagePerTurn": settings.hazard_damage,
                "hazardMap": "",
                "hazardMapAuthor": "",
                "royale": {"shrinkEveryNTurns": settings.shrink_every},
                "squad": {
                    "allowBodyCollisions": False,
                    "sharedElimination": False,
                    "sharedHealth": False,
                    "sharedLength": False,
                },
            },
        },
        "map": map_name,
        "timeout": timeout_ms,
        "source": "custom",
    }


def _points(cells: list[tuple[int, int]]) -> list[dict[str, int]]:
    return [{"x": x, "y": y} for x, y in cells]


def snake_object(snake: Snake, seat: Seat) -> Json:
    """Return one snake as it stands in `board.snakes` and `you`."""
    body = _points(snake.body)
    return {
        "id": seat.id,
        "name": seat.name,
        "latency": seat.latency,
        "health": snake.health,
        "body": body,
        "head": body[0],
        "length": len(body),
        "shout": seat.shout,
        "squad": "",
        "customizations": seat.looks.as_json(),
    }


class Turn:
    """The request objects of one turn of one game, built once and shared by all players."""

    def __init__(self, game: Json, state: State, seats: list[Seat], *, turn: int | None = None):
        """Build them; `turn` replaces the state's own turn (the engine's `/end` is one later)."""
        snakes = state.snakes()
        self._objects = [snake_object(s, seat) for s, seat in zip(snakes, seats, strict=True)]
        self._game = game
        self._turn = state.turn if turn is None else turn
        self._board: Json = {
            "height": state.height,
            "width": state.width,
            "snakes": [
                o for o, s in zip(self._objects, snakes, strict=True) if not s.eliminated_cause
            ],
            "food": _points(state.food()),
            "hazards": _points(state.hazards()),
        }

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
    except (msgspec.DecodeError, UnicodeDecodeError):
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
