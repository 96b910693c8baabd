"""Requests, game files and frames: the same values back, and refusals by the field's path."""

import json
import random
import re
from collections.abc import Callable
from typing import Any

import pytest
from board_games import (
    LONG,
    Json,
    change,
    duel,
    game_of,
    games,
    living_only,
    many,
    random_settings,
    start,
    turns,
)

from snakekit.core import Settings, Snake, State
from snakekit.runtime import wire
from snakekit.runtime.boardjson import (
    BoardError,
    BoardRecord,
    GameFile,
    moves_by_id,
    read_game,
    read_request,
    write_game,
    write_request,
)


@games
@many
def test_requests_come_back(seed: int, ruleset: str, count: int, text: str) -> None:
    dice = random.Random(seed)
    settings = random_settings(dice, ruleset, solo=ruleset == "solo")
    state = living_only(turns(dice, start(dice, settings, count), 40)[-1])
    looks = wire.Looks(color=text, head=text, tail="t")
    seats = [wire.Seat(s.id, text, looks, text, text, text) for s in state.snakes()]
    if not seats:
        return
    record = BoardRecord(game_of(settings), state, seats, dice.randrange(len(seats)))
    body = write_request(record)
    assert read_request(body) == record
    assert write_request(read_request(body)) == body


@games
@many
def test_game_files_come_back(seed: int, ruleset: str, count: int, text: str) -> None:
    dice = random.Random(seed)
    settings = random_settings(dice, ruleset, solo=count == 1 or ruleset == "solo")
    boards = turns(dice, start(dice, settings, count), 30)
    game = game_of(settings)
    records = []
    for state in boards:
        seats = [wire.Seat(s.id, text, shout=text) for s in state.snakes()]
        records.append(BoardRecord(game, state, seats, dice.randrange(count)))
    result = wire.Result(winner_id="s0", winner_name=text, is_draw=False)
    data = write_game(GameFile(game, records, dice.choice((result, None))))
    assert len(data.splitlines()) >= len(boards) + 1
    file = read_game(data)
    assert [turn.state for turn in file.turns] == [living_only(state) for state in boards]
    assert file.result in (result, None)
    assert write_game(file) == data


def test_a_request_keeps_every_value(request_json: Json) -> None:
    body = json.dumps(request_json).encode()
    record = read_request(body)
    assert (record.state.turn, record.you, record.seats[0].latency) == (14, 0, "43")
    assert json.loads(write_request(record)) == request_json
    for name in ("map", "source"):
        del request_json["game"][name]
    for name in ("hazardMap", "hazardMapAuthor", "squad"):
        del request_json["game"]["ruleset"]["settings"][name]
    assert json.loads(write_request(read_request(json.dumps(request_json).encode()))) == (
        request_json
    )


def line(turn: int, *snakes: Json, you: Json) -> Json:
    settings = {
        "foodSpawnChance": 15,
        "minimumFood": 1,
        "hazardDamagePerTurn": 14,
        "hazardMap": "",
        "hazardMapAuthor": "",
        "royale": {"shrinkEveryNTurns": 25},
        "squad": {
            "allowBodyCollisions": False,
            "sharedElimination": False,
            "sharedHealth": False,
            "sharedLength": False,
        },
    }
    game = {
        "id": "0f6ec1c2-0f4b-4a0b-9d7f-1f4f6dd3a1f7",
        "ruleset": {"name": "standard", "version": "cli", "settings": settings},
        "map": "standard",
        "timeout": 500,
        "source": "",
    }
    board = {"height": 7, "width": 7, "snakes": list(snakes), "food": [{"x": 3, "y": 3}]}
    return {"game": game, "turn": turn, "board": {**board, "hazards": []}, "you": you}


def official_game(make_snake: Callable[..., Json]) -> list[Json]:
    """A lost game as the official tool records it: `you` stays the same snake, also when dead."""
    a = [make_snake("a", (1, 6), (1, 5), (1, 4)), make_snake("a", (1, 7), (1, 6), (1, 5))]
    b = [make_snake("b", (5, 1), (5, 1), (5, 1)), make_snake("b", (5, 2), (5, 1), (5, 1))]
    first = line(0, a[0], b[0], you=a[0])
    return [
        first["game"],
        first,
        line(1, b[1], you=a[1]),
        {"winnerId": "b", "winnerName": "Snake b", "isDraw": False},
    ]


def jsonl(lines: list[Json]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in lines)


def test_an_official_game_file_keeps_every_value(make_snake: Callable[..., Json]) -> None:
    lines = official_game(make_snake)
    file = read_game(jsonl(lines))
    assert [len(turn.state.living()) for turn in file.turns] == [2, 1]
    assert not file.turns[0].state.settings.solo
    assert file.turns[0].you == 0
    assert isinstance(file.turns[1].you, wire.SnakeObject)
    assert [json.loads(text) for text in write_game(file).splitlines()] == lines
    assert read_game(jsonl(lines[:-1])).result is None
    assert read_game(jsonl(lines[:1])).turns == []


def test_game_files_are_refused_by_line(make_snake: Callable[..., Json]) -> None:
    good = official_game(make_snake)
    for number, part, words in (
        (0, {"timeout": None}, "line 1, timeout: expected int"),
        (2, {"turn": -1}, "line 3, turn: -1 is outside"),
        (2, {"you": good[1]["you"] | {"body": []}}, "line 3, you.body: empty"),
        (2, {"you": good[1]["you"] | {"health": 101}}, "line 3, you.health: 101 is outside"),
        (3, {"isDraw": 1}, "line 4, isDraw: expected bool"),
    ):
        lines = [*good]
        lines[number] = {**lines[number], **part}
        with pytest.raises(BoardError, match="^" + re.escape(words)):
            read_game(jsonl(lines) + b"\n\n")
    for data in (b"", b"\n\n", b"{}", b'{"isDraw": true}', b"[1]"):
        with pytest.raises(BoardError, match=r"^line 1"):
            read_game(data)
    with pytest.raises(BoardError, match=r"^line 2, .*nested too deeply"):
        read_game(jsonl(good[:1]) + b'{"a":' + b"[" * 100_000)


SNAKE = ("board", "snakes", 1)
REFUSED_REQUESTS: list[tuple[tuple[Any, ...], Any, str]] = [
    ((*SNAKE, "health"), 130, "board.snakes[1].health: 130 is outside 0..100"),
    ((*SNAKE, "health"), -1, "board.snakes[1].health: -1 is outside 0..100"),
    ((*SNAKE, "health"), 2**40, "board.snakes[1].health: expected int <= 2147483647"),
    ((*SNAKE, "health"), "9", "board.snakes[1].health: expected int, got str"),
    ((*SNAKE, "body"), [], "board.snakes[1].body: empty"),
    ((*SNAKE, "body"), None, "board.snakes[1].body: expected array, got null"),
    ((*SNAKE, "body"), [None], "board.snakes[1].body[0]: expected object, got null"),
    ((*SNAKE, "body", 2), {"x": 11, "y": 0}, "board.snakes[1].body[2]: (11, 0) is off"),
    ((*SNAKE, "head"), {"x": 0, "y": 0}, "board.snakes[1].head: is not the first"),
    ((*SNAKE, "length"), 4, "board.snakes[1].length: 4, the body has 3"),
    ((*SNAKE, "id"), "a", "board.snakes[1].id: 'a' is listed twice"),
    ((*SNAKE, "name"), KeyError, "board.snakes[1].name: missing"),
    ((*SNAKE, "mood"), "good", "board.snakes[1]: object contains unknown field mood"),
    (
        (*SNAKE, "customizations", "color"),
        KeyError,
        "board.snakes[1].customizations.color: missing",
    ),
    (("board", "width"), 2, "board.width: 2 is outside 3..25"),
    (("board", "height"), 26, "board.height: 26 is outside 3..25"),
    (("board", "food", 0), {"x": -1, "y": 0}, "board.food[0]: (-1, 0) is off"),
    (("board", "food"), [{"x": 1, "y": 0}] * 2, "board.food[1]: (1, 0) is listed twice"),
    (("board", "hazards", 1), {"x": 0, "y": 22}, "board.hazards[1]: (0, 22) is off"),
    (("board", "snakes"), None, "board.snakes: expected array, got null"),
    (("board",), None, "board: expected object, got null"),
    (("turn",), -1, "turn: -1 is outside"),
    (("turn",), 1.5, "turn: expected int, got float"),
    (("you", "id"), "c", "you.id: 'c' is not in board.snakes"),
    (("you", "health"), 89, "you.health: differs from board.snakes[0].health"),
    (("you",), KeyError, "you: missing"),
    (("x" * 9999,), 1, "body: object contains unknown field " + "x" * 100),
    (("line\nfeed",), 1, "body: object contains unknown field line?feed"),
    (("game", "timeout"), KeyError, "game.timeout: missing"),
    (
        ("game", "ruleset", "settings", "foodSpawnChance"),
        101,
        "game.ruleset.settings.foodSpawnChance: 101 is outside 0..100",
    ),
    (
        ("game", "ruleset", "settings", "royale", "shrinkEveryNTurns"),
        -1,
        "game.ruleset.settings.royale.shrinkEveryNTurns: -1 is outside",
    ),
]


@pytest.mark.parametrize(
    ("path", "new", "words"), REFUSED_REQUESTS, ids=[words[:60] for _, _, words in REFUSED_REQUESTS]
)
def test_bad_requests_are_refused_by_field(
    request_json: Json, path: tuple[Any, ...], new: Any, words: str
) -> None:
    body = json.dumps(change(request_json, path, new)).encode()
    with pytest.raises(BoardError, match="^" + re.escape(words)):
        read_request(body)


def test_long_ids_listed_twice(request_json: Json) -> None:
    for snake in request_json["board"]["snakes"]:
        snake["id"] = LONG
    with pytest.raises(BoardError, match=r"^board\.snakes\[1\]\.id: .* is listed twice"):
        read_request(json.dumps(request_json).encode())


def test_what_cannot_be_told_is_not_written() -> None:
    state = State(5, 5, duel().snakes(), settings=Settings(solo=True))
    seats = [wire.Seat("a", ""), wire.Seat("b", "")]
    with pytest.raises(BoardError, match=r"^game\.ruleset: tells other rules"):
        write_request(BoardRecord(game_of(Settings()), state, seats, 0))
    game = game_of(Settings())
    with pytest.raises(BoardError, match=r"^line 2, game\.ruleset: tells other rules"):
        write_game(GameFile(game, [BoardRecord(game, state, seats, 0)], None))
    with pytest.raises(BoardError, match=r"^board\.snakes: other ids"):
        write_request(BoardRecord(game_of(Settings()), duel(), seats[:1], 0))
    with pytest.raises(BoardError, match=r"^you: there is no seat 2"):
        write_request(BoardRecord(game_of(Settings()), duel(), seats, 2))


def test_the_dead_are_left_out_of_requests() -> None:
    snakes = [duel().snakes()[0], Snake("b", 0, [(3, 3)], "hazard", "", 3)]
    state = State(5, 5, snakes)
    seats = [wire.Seat("a", ""), wire.Seat("b", "")]
    game = game_of(Settings())
    alive = read_request(write_request(BoardRecord(game, state, seats, 0)))
    assert alive.state == living_only(state)
    with pytest.raises(BoardError, match=r"^you\.id: 'b' is not in board\.snakes"):
        read_request(write_request(BoardRecord(game, state, seats, 1)))


def test_moves_by_id() -> None:
    state = duel()
    assert moves_by_id(state, {"b": "right", "a": "up"}) == [0, 3]
    assert moves_by_id(state, [("a", "down"), ("b", "left")]) == [1, 2]
    assert moves_by_id(state, {}) == [-1, -1]
    # The engine takes a word that it does not know for straight on.
    assert moves_by_id(state, {"a": "sideways", "b": "Up"}) == [-1, -1]
    with pytest.raises(BoardError, match=r"^moves\['c'\]: no snake has this id"):
        moves_by_id(state, {"c": "up"})
    with pytest.raises(BoardError, match=r"^moves\['a'\]: two moves for one snake"):
        moves_by_id(state, [("a", "up"), ("b", "up"), ("a", "up")])
    assert issubclass(BoardError, ValueError)
