"""Frames of the engine's event stream, which the board viewer and the exporter read.

A frame shows all snakes, dead ones with cause, turn and killer, but neither the board's size nor
its rules: those come from the game. Engines differ in what they add to a snake; what is absent
stays absent.
"""

import re
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from snakekit import core
from snakekit.runtime import api
from snakekit.runtime.boardjson import BoardError, decode
from snakekit.runtime.wire import Flag, Int32, Text


def _key(name: str) -> str:
    special = {"id": "ID", "url": "URL", "api_version": "APIVersion"}
    return special.get(name) or name.title().replace("_", "")


class FramePoint(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, gc=False, rename=_key):
    """A square of a frame."""

    x: Int32
    y: Int32


class Death(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename=_key):
    """How and when a snake left the game."""

    cause: str
    turn: Int32
    eliminated_by: str


class FrameSeat(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename=_key):
    """What a frame says about one snake beyond the board."""

    id: str
    name: Text = UNSET
    url: Text = UNSET
    color: Text = UNSET
    head_type: Text = UNSET
    tail_type: Text = UNSET
    latency: Text = UNSET
    shout: Text = UNSET
    squad: Text = UNSET
    api_version: Text = UNSET
    author: Text = UNSET
    status_code: Int32 | UnsetType = UNSET
    error: Text = UNSET
    is_bot: Flag = UNSET
    is_environment: Flag = UNSET


class FrameSnake(FrameSeat, kw_only=True, rename=_key):
    """One snake of a frame."""

    body: list[FramePoint]
    health: Int32
    death: Death | None


class FrameData(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename=_key):
    """One turn."""

    turn: Int32
    snakes: list[FrameSnake]
    food: list[FramePoint]
    hazards: list[FramePoint]


class FrameEvent(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename=_key):
    """An event of the stream that carries a frame."""

    type: Literal["frame"] = "frame"
    data: FrameData


@dataclass
class FrameRecord:
    """A frame: the board with its dead, and what else is known of each seat."""

    state: core.State
    seats: list[FrameSeat]


class _Typed(msgspec.Struct, rename=_key):
    type: str


_event_decoder = msgspec.json.Decoder(FrameEvent)
_typed_decoder = msgspec.json.Decoder(_Typed)


def is_frame(body: bytes) -> bool:
    """Tell whether an event of the stream is a frame; the other ones end or describe the game.

    Raises:
        BoardError: not an event.
    """
    return decode(_typed_decoder, body).type == "frame"


def read_frame(
    body: bytes, width: int, height: int, settings: core.Settings | None = None
) -> FrameRecord:
    """Read one frame event of a game of that size and those rules (standard unless given).

    Raises:
        BoardError: not a frame, or an impossible board.
    """
    data = decode(_event_decoder, body).data
    for i, snake in enumerate(data.snakes):
        if snake.death is not None and snake.death.cause not in core.CAUSES[1:]:
            cause = snake.death.cause[:40]
            raise BoardError(f"Data.Snakes[{i}].Death.Cause: {cause!r} is unknown")
    try:
        api.check_ids("snakes", [snake.id for snake in data.snakes])
        state = core.State(
            width,
            height,
            [_snake(snake) for snake in data.snakes],
            _cells(data.food),
            _cells(data.hazards),
            turn=data.turn,
            settings=settings if settings is not None else core.Settings(),
        )
    except (core.StateError, api.RequestError) as error:
        raise BoardError(_sentence(str(error))) from None
    return FrameRecord(state, [_seat(snake) for snake in data.snakes])


def write_frame(record: FrameRecord) -> bytes:
    """Return the event that shows a board.

    Raises:
        BoardError: the seats are other snakes, or a living snake has a killer or a turn of death.
    """
    state = record.state
    snakes = state.snakes()
    if [seat.id for seat in record.seats] != [snake.id for snake in snakes]:
        raise BoardError("Data.Snakes: other ids than the seats'")
    data = FrameData(
        turn=state.turn,
        snakes=[_object(i, *pair) for i, pair in enumerate(zip(snakes, record.seats, strict=True))],
        food=_points(state.food()),
        hazards=_points(state.hazards()),
    )
    return msgspec.json.encode(FrameEvent(data=data))


def _snake(snake: FrameSnake) -> core.Snake:
    death, body = snake.death, _cells(snake.body)
    if death is None:
        return core.Snake(snake.id, snake.health, body)
    return core.Snake(snake.id, snake.health, body, death.cause, death.eliminated_by, death.turn)


def _fields(seat: FrameSeat) -> dict[str, Any]:
    return {field: getattr(seat, field) for field in FrameSeat.__struct_fields__}


def _seat(snake: FrameSnake) -> FrameSeat:
    return FrameSeat(**_fields(snake))


def _object(index: int, snake: core.Snake, seat: FrameSeat) -> FrameSnake:
    death = None
    if snake.eliminated_cause:
        death = Death(
            cause=snake.eliminated_cause,
            turn=snake.eliminated_on_turn,
            eliminated_by=snake.eliminated_by,
        )
    elif snake.eliminated_by or snake.eliminated_on_turn:
        raise BoardError(f"Data.Snakes[{index}].Death: without a cause")
    return FrameSnake(**_fields(seat), body=_points(snake.body), health=snake.health, death=death)


def _points(cells: list[tuple[int, int]]) -> list[FramePoint]:
    return [FramePoint(x=x, y=y) for x, y in cells]


def _cells(points: list[FramePoint]) -> list[tuple[int, int]]:
    return [(p.x, p.y) for p in points]


def _sentence(text: str) -> str:
    """Return the core's sentence with the field's path in the frame; the size is the caller's."""
    path, _, what = text.partition(": ")
    if path in ("width", "height"):
        return text
    path = path.replace("eliminated_cause", "death.cause")
    return f"Data.{re.sub('[a-z]+', lambda name: _key(name[0]), path)}: {what}"
