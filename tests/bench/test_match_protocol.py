"""What servers see, and what happens to bad answers."""

import asyncio
from typing import Any

import pytest
from aiohttp import web
from fake_snake import FakeSnake, Reply, play, rules, safe_word

from snakekit.bench.engine_client import EngineClient
from snakekit.bench.players import PlayerError, parse_players
from snakekit.bench.protocol import Kind, read_answer
from snakekit.bench.series import check_players
from snakekit.core import Settings

SNAKE_KEYS = {
    "id",
    "name",
    "latency",
    "health",
    "body",
    "head",
    "length",
    "shout",
    "squad",
    "customizations",
}


async def test_requests_have_the_official_form(snake: FakeSnake) -> None:
    await play([f"me={snake.url}", "random"], rules=rules(max_turns=5))
    assert [what for what, _ in snake.seen][:2] == ["start", "move"]
    assert snake.seen[-1][0] == "end"
    assert set(snake.headers) == {"application/json"}
    for _, request in snake.seen:
        assert set(request) == {"game", "turn", "board", "you"}
        game = request["game"]
        assert set(game) == {"id", "ruleset", "map", "timeout", "source"}
        assert game["timeout"] == 500
        assert game["map"] == "standard"
        assert set(game["ruleset"]) == {"name", "version", "settings"}
        settings = game["ruleset"]["settings"]
        assert settings["foodSpawnChance"] == 15
        assert settings["minimumFood"] == 1
        assert settings["royale"] == {"shrinkEveryNTurns": 25}
        assert set(request["board"]) == {"height", "width", "snakes", "food", "hazards"}
        for seen in [*request["board"]["snakes"], request["you"]]:
            assert set(seen) == SNAKE_KEYS
            assert seen["head"] == seen["body"][0]
            assert seen["length"] == len(seen["body"])
            assert isinstance(seen["latency"], str)
    you = snake.requests("start")[0]["you"]
    assert you["name"] == "me"
    assert you["latency"] == "0"
    assert you["customizations"] == {"color": "#123456", "head": "evil", "tail": "bolt"}
    assert [r["turn"] for r in snake.requests("move")] == list(range(5))


async def test_two_seats_of_one_server_share_the_game_and_differ_in_you(snake: FakeSnake) -> None:
    await play([snake.url, snake.url], rules=rules(max_turns=3))
    starts = snake.requests("start")
    assert len({r["game"]["id"] for r in starts}) == 1
    assert len({r["you"]["id"] for r in starts}) == 2
    assert len({r["you"]["name"] for r in starts}) == 2


async def test_survivor_is_asked_once_more_and_end_is_a_turn_later(snake: FakeSnake) -> None:
    def moves(request: dict[str, Any]) -> Reply:
        # One of the two seats runs into the wall at once.
        me = min(s["id"] for s in request["board"]["snakes"])
        alone = len(request["board"]["snakes"]) == 1
        return {"move": safe_word(request) if alone or request["you"]["id"] == me else "up"}

    snake.moves = moves
    result = await play([snake.url, snake.url])
    last = snake.requests("move")[-1]
    assert [s["id"] for s in last["board"]["snakes"]] == [last["you"]["id"]]
    assert last["turn"] == result.games[0].turns
    ends = snake.requests("end")
    assert len(ends) == 2
    assert {r["turn"] for r in ends} == {result.games[0].turns + 1}
    loser = next(r for r in ends if r["you"]["id"] != last["you"]["id"])
    assert loser["you"]["id"] not in [s["id"] for s in loser["board"]["snakes"]]


async def test_solo_game_ends_with_an_empty_board(snake: FakeSnake) -> None:
    snake.moves = lambda request: {"move": "up"}
    result = await play([snake.url], rules=rules(settings=Settings(solo=True)))
    assert snake.requests("end")[0]["board"]["snakes"] == []
    assert result.games[0].winner == result.games[0].seats[0]
    assert len(snake.requests("move")) == result.games[0].turns


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (web.Response, Kind.HTTP_ERROR),
        ("not JSON", Kind.BAD_ANSWER),
        ("[1]", Kind.BAD_ANSWER),
        ({"move": "down", "shout": 3}, Kind.BAD_ANSWER),
        ({"move": 1}, Kind.BAD_ANSWER),
        ({"move": "sideways"}, Kind.ILLEGAL_WORD),
        ({}, Kind.ILLEGAL_WORD),
        (0.3, Kind.TIMEOUT),
    ],
)
async def test_bad_answers_repeat_the_previous_move(
    snake: FakeSnake, reply: Any, kind: Kind
) -> None:
    def moves(request: dict[str, Any]) -> Reply:
        if request["turn"] == 1:
            return web.Response(status=500) if reply is web.Response else reply
        return {"move": safe_word(request), "shout": "hello"}

    snake.moves = moves
    result = await play([snake.url, "random"], rules=rules(timeout_ms=150, max_turns=3))
    tally = result.tallies[0]
    assert tally.kinds[kind] == 1
    assert tally.kinds[Kind.OK] == 2
    assert tally.faults == 1
    played = result.games[0].moves[0]
    assert played[1] == played[0]
    third = snake.requests("move")[2]["you"]
    latency = int(third["latency"])
    assert 150 <= latency < 250 if kind is Kind.TIMEOUT else latency < 150
    assert third["shout"] == ""
    assert snake.requests("move")[1]["you"]["shout"] == "hello"


async def test_first_bad_answer_means_up(snake: FakeSnake) -> None:
    snake.moves = lambda request: "?"
    result = await play([snake.url, "random"], rules=rules(max_turns=2))
    assert result.games[0].moves[0] == [0, 0]


async def test_a_dropped_connection_is_an_error_not_a_crash(snake: FakeSnake) -> None:
    await play([snake.url, "random"], rules=rules(max_turns=1))
    url = snake.url
    players = parse_players([url, "random"])
    client = EngineClient(200)
    await check_players(players, client)
    await snake.close()
    answer = await client.ask_move(players[0], {})
    await client.close()
    assert answer.kind is Kind.HTTP_ERROR


async def test_legal_word_into_the_own_neck_is_counted(snake: FakeSnake) -> None:
    def moves(request: dict[str, Any]) -> Reply:
        (x, y), (nx, ny) = ((p["x"], p["y"]) for p in request["you"]["body"][:2])
        back = {(0, 1): "down", (0, -1): "up", (1, 0): "left", (-1, 0): "right"}
        return {"move": back.get((x - nx, y - ny)) or safe_word(request)}

    snake.moves = moves
    result = await play([snake.url, "random"])
    assert result.tallies[0].illegal_moves == 1
    assert result.tallies[0].deaths


async def test_moves_are_asked_for_side_by_side(snake: FakeSnake) -> None:
    snake.moves = lambda request: 0.1
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await play([snake.url] * 4, rules=rules(max_turns=1))
    assert loop.time() - begun < 0.35


@pytest.mark.parametrize(
    ("index", "status", "words"),
    [
        ({"apiversion": "0"}, 200, "apiversion"),
        ({}, 200, "apiversion"),
        ([], 200, "apiversion"),
        ({"apiversion": "1"}, 404, "status 404"),
    ],
)
async def test_index_is_checked(snake: FakeSnake, index: Any, status: int, words: str) -> None:
    snake.index, snake.index_status = index, status
    with pytest.raises(PlayerError, match=words):
        await play([snake.url, "random"])
    assert snake.seen == []


def test_odd_but_valid_answers_count() -> None:
    assert read_answer(200, b'{"move": "left", "shout": null, "x": 1}', 1.0).move == 2
    long = read_answer(200, b'{"move": "right", "shout": "%s"}' % (b"a" * 999), 1.0)
    assert (long.kind, len(long.shout)) == (Kind.OK, 256)
    assert read_answer(200, b'{"move": "UP"}', 1.0).kind is Kind.ILLEGAL_WORD
    assert read_answer(200, b"\xff\xfe", 1.0).kind is Kind.BAD_ANSWER
    assert read_answer(201, b'{"move": "up"}', 1.0).kind is Kind.HTTP_ERROR
