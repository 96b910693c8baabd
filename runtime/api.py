"""Battlesnake requests: bytes in, checked `core.State` out. Lenient where real engines differ.

What may be absent or odd, and what it then means:

- `ruleset` or its name absent, null or unknown: standard. `map` and everything cosmetic is unread.
- `settings` or one of them absent or null: the engine's defaults.
- `timeout` absent, null or 0: 500 ms.
- `turn` absent: 0. `latency` is anything; see `deadline.latency_ms`.
- `food`, `hazards`, `snakes` null: empty (Go writes null for an empty list).
- hazards up to one board's height above it: pending ones of the map snail_mode.
- a food listed twice: once.
- `you` not among `board.snakes`: added if it fits on the board, else there is no state.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from snakekit import core

T = TypeVar("T")

DEFAULT_TIMEOUT_MS = 500
MAX_LIVING = 8
_LONGEST = 200

Coordinate = Annotated[int, Meta(ge=-1000, le=1000)]
Identity = Annotated[str, Meta(max_length=256)]
Setting = Annotated[int, Meta(ge=-10_000, le=10_000)]


class RequestError(ValueError):
    """A request that cannot be answered: HTTP status, cause for the metric, one sentence."""

    def __init__(self, status: int, cause: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.cause = cause


class _Point(msgspec.Struct, gc=False):
    x: Coordinate
    y: Coordinate


class _Snake(msgspec.Struct):
    id: Identity
    body: Annotated[list[_Point], Meta(max_length=2000)]
    health: Annotated[int, Meta(ge=-1000, le=1000)] = 100
    latency: Any = None


class _Royale(msgspec.Struct):
    shrink_every: Setting | None = msgspec.field(default=None, name="shrinkEveryNTurns")


class _Settings(msgspec.Struct, rename="camel"):
    food_spawn_chance: Setting | None = None
    minimum_food: Setting | None = None
    hazard_damage_per_turn: Setting | None = None
    royale: _Royale | None = None


class _Ruleset(msgspec.Struct):
    name: Identity | None = None
    settings: _Settings | None = None


class _Game(msgspec.Struct):
    id: Identity
    ruleset: _Ruleset | None = None
    timeout: Annotated[float, Meta(ge=0, le=3_600_000)] | None = None


Side = Annotated[int, Meta(ge=3, le=25)]
Points = Annotated[list[_Point], Meta(max_length=10_000)]


class _Board(msgspec.Struct):
    width: Side
    height: Side
    snakes: Annotated[list[_Snake], Meta(max_length=core.MAX_SNAKES)] | None
    food: Points | None = None
    hazards: Points | None = None


class Request(msgspec.Struct):
    """A decoded request of `/start`, `/move` or `/end`; only what is used is kept."""

    game: _Game
    board: _Board
    you: _Snake
    turn: Annotated[int, Meta(ge=0, le=10_000_000)] = 0

    @property
    def timeout_ms(self) -> float:
        """The time that the engine allows."""
        return self.game.timeout or DEFAULT_TIMEOUT_MS

    @property
    def result(self) -> str:
        """What an `/end` means for `you`: won, lost, draw or unfinished."""
        snakes = self.board.snakes or []
        if not snakes:
            return "draw"
        if all(snake.id != self.you.id for snake in snakes):
            return "lost"
        return "won" if len(snakes) == 1 else "unfinished"


class Position(NamedTuple):
    """A board and which of its snakes is ours."""

    state: core.State
    seat: int


_decoder = msgspec.json.Decoder(Request)


def parse(body: bytes) -> Request:
    """Decode a request.

    Raises:
        RequestError: 400 for what is not JSON, 422 for what is not a request.
    """
    return decode(_decoder, body)


def decode(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """Decode `body`, with every failure as a RequestError that begins with the field's path."""
    if not body or body.isspace():
        raise RequestError(400, "not_json", "body: empty, expected a JSON object")
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise RequestError(422, "invalid", _sentence(str(error))) from None
    except RecursionError:
        raise RequestError(
            400, "too_deep", "body: nested too deeply, expected a Battlesnake request"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        text = str(error).removeprefix("JSON is malformed: ")
        raise RequestError(400, "not_json", f"body: not JSON ({text})") from None


def _sentence(text: str) -> str:
    """Turn msgspec's `Expected X - at `$.a.b`` into `a.b: expected X`, short and on one line."""
    what, _, where = text.rpartition(" - at `$") if " - at `$" in text else (text, "", "")
    field = where.rstrip("`").lstrip(".") or "body"
    # Names of unknown fields stand in it, as long and as odd as the sender likes.
    what = "".join(c if c.isprintable() else "?" for c in what[:_LONGEST].replace("`", ""))
    if what.startswith("Object missing required field "):
        name = what.removeprefix("Object missing required field ")
        return f"{name if field == 'body' else f'{field}.{name}'}: missing, expected a value"
    return f"{field}: {what[:1].lower()}{what[1:]}"


def position(request: Request) -> Position | None:
    """Build the board, or return None where `you` cannot be put on it.

    Raises:
        RequestError: 422 with the field's path, for a board that no engine sends.
    """
    board = request.board
    listed = board.snakes or ()
    if len(listed) > MAX_LIVING:
        raise RequestError(
            422, "invalid", f"board.snakes: {len(listed)} snakes, expected at most {MAX_LIVING}"
        )
    check_ids("board.snakes", [snake.id for snake in listed])
    you = request.you
    snakes = [_snake(snake) for snake in listed]
    seat = next((i for i, snake in enumerate(listed) if snake.id == you.id), None)
    try:
        if seat is not None:
            return Position(_state(request, snakes), seat)
        _state(request, snakes)
    except core.StateError as error:
        raise RequestError(422, "invalid", state_sentence(str(error))) from None
    try:
        return Position(_state(request, [*snakes, _snake(you)]), len(snakes))
    except core.StateError:
        return None


def check_ids(field: str, ids: Sequence[str]) -> None:
    """Refuse an id that is listed twice.

    The core refuses it too, but cuts a long id off between bytes, which need not be text.
    """
    for i, identity in enumerate(ids):
        if identity in ids[:i]:
            text = f"{field}[{i}].id: {identity[:60]!r} is listed twice"
            raise RequestError(422, "invalid", text)


def _snake(snake: _Snake) -> core.Snake:
    return core.Snake(snake.id, snake.health, [(p.x, p.y) for p in snake.body])


def _state(request: Request, snakes: list[core.Snake]) -> core.State:
    board = request.board
    return core.State(
        board.width,
        board.height,
        snakes,
        list({(p.x, p.y): None for p in board.food or ()}),
        [(p.x, p.y) for p in board.hazards or ()],
        turn=request.turn,
        settings=_settings(request.game.ruleset),
    )


def state_sentence(text: str) -> str:
    """Return the core's sentence with the field's path from the root of the request."""
    return text if text.startswith("turn") else f"board.{text.removeprefix('board.')}"


# The names of rulesets and their settings repeat from turn to turn and cost more to build
# than to look up; the bound keeps hostile requests from filling memory.
_CACHE_LIMIT = 256
_cache: dict[tuple[object, ...], core.Settings] = {}


def _settings(ruleset: _Ruleset | None) -> core.Settings:
    given = ruleset.settings if ruleset is not None else None
    name = (ruleset.name if ruleset is not None else None) or "standard"
    key: tuple[object, ...] = (name,)
    if given is not None:
        shrink = given.royale.shrink_every if given.royale is not None else None
        key = (
            name,
            given.food_spawn_chance,
            given.minimum_food,
            given.hazard_damage_per_turn,
            shrink,
        )
    found = _cache.get(key)
    if found is None:
        names = ("ruleset", "food_spawn_chance", "minimum_food", "hazard_damage", "shrink_every")
        chosen: dict[str, Any] = {
            n: value for n, value in zip(names, key, strict=False) if value is not None
        }
        try:
            found = core.Settings(**chosen, solo=name == "solo")
        except ValueError as error:
            text = f"game.ruleset.settings: {error}"
            raise RequestError(422, "invalid", text) from None
        if len(_cache) >= _CACHE_LIMIT:
            _cache.clear()
        _cache[key] = found
    return found
