"""Boards as JSON, strictly and without loss: requests, game files and viewer frames.

`api` reads what real engines send and is lenient; here anything that could not be written back is
refused. What is accepted comes back with the same values: absent optional fields stay absent,
only the order of hazards is the board's own. `frames` has the engine's event stream.

- A request shows the living snakes. Rules that a request cannot tell (`solo` under another name)
  are refused when written.
- A game file has one request a line between the game and its result. As the official tool does,
  the first line's board decides `solo`: it is a game that begins with one snake.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from snakekit import core
from snakekit.runtime import api
from snakekit.runtime.wire import (
    Game,
    RequestObject,
    Result,
    Seat,
    SnakeObject,
    board_object,
    cells,
    snake_object,
)

T = TypeVar("T")
Line = tuple[int, bytes]


class BoardError(ValueError):
    """Impossible or unreadable input; the message begins with the path of the field."""


@dataclass
class BoardRecord:
    """A request: the board, what else it says, and which seat is `you`.

    `you` is a whole snake where it is no longer on the board, as in `/end` or in a game file.
    """

    game: Game
    state: core.State
    seats: list[Seat]
    you: int | SnakeObject


@dataclass
class GameFile:
    """A game file; `result` is None for a game that did not end."""

    game: Game
    turns: list[BoardRecord]
    result: Result | None


def decode(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """Decode, with every failure as a BoardError."""
    try:
        return api.decode(decoder, body)
    except api.RequestError as error:
        raise BoardError(str(error)) from None


_request_decoder = msgspec.json.Decoder(RequestObject)
_game_decoder = msgspec.json.Decoder(Game)
_result_decoder = msgspec.json.Decoder(Result)
_keys_decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])


def read_request(body: bytes) -> BoardRecord:
    """Read the body of a `/move`.

    Raises:
        BoardError: not a request, an impossible board, or `you` is not on it.
    """
    record = _record(decode(_request_decoder, body), solo=False)
    if isinstance(record.you, SnakeObject):
        raise BoardError(f"you.id: {record.you.id[:60]!r} is not in board.snakes")
    return record


def write_request(record: BoardRecord) -> bytes:
    """Return the body of a request; dead snakes are left out, as the engine does.

    Raises:
        BoardError: `record.game` tells other rules than the board's.
    """
    return msgspec.json.encode(_request(record, solo=False))


def _record(request: RequestObject, *, solo: bool) -> BoardRecord:
    board, you = request.board, request.you
    ids = [snake.id for snake in board.snakes]
    settings = _settings(request.game, solo=solo)
    try:
        api.check_ids("board.snakes", ids)
        snakes = [core.Snake(s.id, s.health, cells(s.body)) for s in board.snakes]
        state = _state(request, snakes, settings)
    except (core.StateError, api.RequestError) as error:
        raise BoardError(api.state_sentence(str(error))) from None
    for i, snake in enumerate(board.snakes):
        _check_snake(f"board.snakes[{i}]", snake)
    seats = [
        Seat(s.id, s.name, s.customizations, s.latency, s.shout, s.squad) for s in board.snakes
    ]
    if you.id not in ids:
        try:
            # Only the dead may be off the board; the cause plays no part.
            _state(request, [core.Snake("", you.health, cells(you.body), "hazard")], settings)
        except core.StateError as error:
            raise BoardError(str(error).replace("snakes[0]", "you", 1)) from None
        _check_snake("you", you)
        return BoardRecord(request.game, state, seats, you)
    seat = ids.index(you.id)
    for field in SnakeObject.__struct_fields__:
        if getattr(you, field) != getattr(board.snakes[seat], field):
            raise BoardError(f"you.{field}: differs from board.snakes[{seat}].{field}")
    return BoardRecord(request.game, state, seats, seat)


def _state(request: RequestObject, snakes: list[core.Snake], settings: core.Settings) -> core.State:
    board = request.board
    return core.State(
        board.width,
        board.height,
        snakes,
        cells(board.food),
        cells(board.hazards),
        turn=request.turn,
        settings=settings,
    )


def _check_snake(field: str, snake: SnakeObject) -> None:
    if snake.head != snake.body[0]:
        raise BoardError(f"{field}.head: is not the first segment of the body")
    if snake.length != len(snake.body):
        raise BoardError(f"{field}.length: {snake.length}, the body has {len(snake.body)}")


_SETTING_NAMES = {
    "food_spawn_chance": "foodSpawnChance",
    "minimum_food": "minimumFood",
    "hazard_damage": "hazardDamagePerTurn",
    "shrink_every": "royale.shrinkEveryNTurns",
}


def _settings(game: Game, *, solo: bool) -> core.Settings:
    name, given = game.ruleset.name, game.ruleset.settings
    try:
        return core.Settings(
            ruleset=name,
            solo=solo or name == "solo",
            map="standard" if game.map is UNSET else game.map,
            food_spawn_chance=given.food_spawn_chance,
            minimum_food=given.minimum_food,
            hazard_damage=given.hazard_damage_per_turn,
            shrink_every=given.royale.shrink_every,
        )
    except core.StateError as error:
        field, _, what = str(error).removeprefix("settings.").partition(": ")
        where = f"game.ruleset.settings.{_SETTING_NAMES[field]}"
        raise BoardError(f"{where}: {what}") from None


def _request(record: BoardRecord, *, solo: bool) -> RequestObject:
    state = record.state
    if _rules(_settings(record.game, solo=solo)) != _rules(state.settings):
        raise BoardError("game.ruleset: tells other rules than the board's")
    snakes = state.snakes()
    if [seat.id for seat in record.seats] != [snake.id for snake in snakes]:
        raise BoardError("board.snakes: other ids than the seats'")
    objects = [snake_object(s, seat) for s, seat in zip(snakes, record.seats, strict=True)]
    living = [objects[i] for i in state.living()]
    if isinstance(record.you, SnakeObject):
        you = record.you
    elif 0 <= record.you < len(objects):
        you = objects[record.you]
    else:
        raise BoardError(f"you: there is no seat {record.you}")
    return RequestObject(
        game=record.game, turn=state.turn, board=board_object(state, living), you=you
    )


def _rules(settings: core.Settings) -> tuple[object, ...]:
    return (
        settings.ruleset,
        settings.solo or settings.ruleset == "solo",
        settings.map,
        settings.food_spawn_chance,
        settings.minimum_food,
        settings.hazard_damage,
        settings.shrink_every,
    )


@contextmanager
def _at_line(number: int) -> Iterator[None]:
    try:
        yield
    except BoardError as error:
        raise BoardError(f"line {number}, {error}") from None


def _line(decoder: msgspec.json.Decoder[T], line: Line) -> T:
    number, text = line
    with _at_line(number):
        return decode(decoder, text)


def split_game(data: bytes) -> tuple[Line, list[Line], Line | None]:
    """Return a game file's game, turns and result (if any) as lines with their numbers.

    Raises:
        BoardError: a line is not a JSON object, or there is no game on the first one.
    """
    lines = [(n, line) for n, line in enumerate(data.splitlines(), start=1) if line.strip()]
    keys = [_line(_keys_decoder, line) for line in lines]
    if not keys or "ruleset" not in keys[0]:
        raise BoardError("line 1: expected a game with its ruleset")
    result = lines.pop() if len(lines) > 1 and "isDraw" in keys[-1] else None
    return lines[0], lines[1:], result


def read_game(data: bytes) -> GameFile:
    """Read a game file.

    Raises:
        BoardError: the message begins with the number of the line.
    """
    first, lines, last = split_game(data)
    game = _line(_game_decoder, first)
    requests = [(line, _line(_request_decoder, line)) for line in lines]
    solo = bool(requests) and len(requests[0][1].board.snakes) == 1
    turns: list[BoardRecord] = []
    for (number, _), request in requests:
        with _at_line(number):
            turns.append(_record(request, solo=solo))
    result = _line(_result_decoder, last) if last is not None else None
    return GameFile(game, turns, result)


def write_game(file: GameFile) -> bytes:
    """Return a game file.

    Raises:
        BoardError: a turn's `game` tells other rules than its board's.
    """
    solo = bool(file.turns) and len(file.turns[0].state.living()) == 1
    lines: list[Any] = [file.game]
    for number, record in enumerate(file.turns, start=2):
        with _at_line(number):
            lines.append(_request(record, solo=solo))
    lines += [file.result] if file.result is not None else []
    return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)


def moves_by_id(
    state: core.State, moves: Mapping[str, str] | Iterable[tuple[str, str]]
) -> list[int]:
    """Return a move per seat for `State.step`; seats without a move or a known word go on.

    Raises:
        BoardError: an id that no snake has, or two moves for one snake.
    """
    seats = {snake.id: seat for seat, snake in enumerate(state.snakes())}
    found = [-1] * len(seats)
    seen: set[str] = set()
    for identity, word in moves.items() if isinstance(moves, Mapping) else moves:
        if identity not in seats:
            raise BoardError(f"moves[{identity!r:.60}]: no snake has this id")
        if identity in seen:
            raise BoardError(f"moves[{identity!r:.60}]: two moves for one snake")
        seen.add(identity)
        if word in core.MOVES:
            found[seats[identity]] = core.MOVES.index(word)
    return found
