"""The server over real HTTP: odd but real requests and malformed ones."""

import asyncio
import copy
import gzip
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from stopwatch import own_time

from snakekit.runtime.config import ServerConfig

Json = dict[str, Any]
WORDS = {"up", "down", "left", "right"}
FAST = ServerConfig(backend="random", mode="hybrid", budget_ms=10, table_mb=1)


def legal_words(request: Json) -> set[str]:
    """Brute force: on the board (or wrapped) and not into the own neck."""
    board, you = request["board"], request["you"]
    listed = [s for s in board["snakes"] or () if s["id"] == you["id"]]
    body = (listed or [you])[0]["body"]
    if not body:
        return WORDS
    moves = {"up": (0, 1), "down": (0, -1), "left": (-1, 0), "right": (1, 0)}
    name = ((request["game"].get("ruleset") or {}).get("name")) or ""
    found = set()
    for word, (dx, dy) in moves.items():
        x, y = body[0]["x"] + dx, body[0]["y"] + dy
        if "wrapped" in name:
            x, y = x % board["width"], y % board["height"]
        inside = 0 <= x < board["width"] and 0 <= y < board["height"]
        if inside and (len(body) < 2 or (x, y) != (body[1]["x"], body[1]["y"])):
            found.add(word)
    return found


def _odd(change: Callable[[Json], object]) -> Callable[[Json], object]:
    return change


def _without(*path: str) -> Callable[[Json], object]:
    def change(request: Json) -> None:
        for key in path[:-1]:
            request = request[key]
        del request[path[-1]]

    return change


def _with(value: Any, *path: str) -> Callable[[Json], object]:
    def change(request: Json) -> None:
        for key in path[:-1]:
            request = request[key]
        request[path[-1]] = value

    return change


def _latency(value: Any) -> Callable[[Json], object]:
    def change(request: Json) -> None:
        for one in [*request["board"]["snakes"], request["you"]]:
            one["latency"] = value

    return change


def _bare(request: Json) -> None:
    for one in [*request["board"]["snakes"], request["you"]]:
        for key in ("head", "length", "customizations", "shout", "squad", "name", "latency"):
            one.pop(key, None)


def _tall(request: Json) -> None:
    request["board"].update(width=11, height=22)
    request["game"]["timeout"] = 33


def _lone(request: Json) -> None:
    request["board"]["snakes"] = [request["you"]]


def _wall(request: Json) -> None:
    request["you"]["body"] = [{"x": 10, "y": 10}, {"x": 9, "y": 10}, {"x": 8, "y": 10}]
    request["board"]["snakes"] = [request["you"]]


ODD: dict[str, Callable[[Json], object]] = {
    "as it is": lambda r: None,
    "11x22, timeout 33": _tall,
    "no ruleset": _without("game", "ruleset"),
    "ruleset null": _with(None, "game", "ruleset"),
    "ruleset empty": _with({}, "game", "ruleset"),
    "ruleset unknown": _with("squad", "game", "ruleset", "name"),
    "ruleset name null": _with(None, "game", "ruleset", "name"),
    "no map": _without("game", "map"),
    "map null": _with(None, "game", "map"),
    "settings empty": _with({}, "game", "ruleset", "settings"),
    "settings null": _with(None, "game", "ruleset", "settings"),
    "no settings": _without("game", "ruleset", "settings"),
    "setting null": _with(None, "game", "ruleset", "settings", "hazardDamagePerTurn"),
    "royale null": _with(None, "game", "ruleset", "settings", "royale"),
    "healing hazards": _with(-30, "game", "ruleset", "settings", "hazardDamagePerTurn"),
    "wrapped": _with("wrapped", "game", "ruleset", "name"),
    "constrictor": _with("constrictor", "game", "ruleset", "name"),
    "solo": _with("solo", "game", "ruleset", "name"),
    "latency empty": _latency(""),
    "latency abc": _latency("abc"),
    "latency integer": _latency(77),
    "latency float": _latency(7.5),
    "latency null": _latency(None),
    "latency list": _latency([1]),
    "latency huge": _latency("9" * 400),
    "latency negative": _latency("-5"),
    "latency superscript": _latency("²"),
    "latency as timeout": _latency("500"),
    "old client": _bare,
    "you not listed": lambda r: r["board"]["snakes"].pop(0),
    "you off the board": lambda r: (
        r["board"]["snakes"].pop(0),
        r["you"].update(body=[{"x": -1, "y": 4}, {"x": 0, "y": 4}]),
    ),
    "you without a body": lambda r: (r["board"]["snakes"].pop(0), r["you"].update(body=[])),
    "no snakes": _with([], "board", "snakes"),
    "snakes null": _with(None, "board", "snakes"),
    "lone survivor": _lone,
    "corner": _wall,
    "food null": _with(None, "board", "food"),
    "no hazards": _without("board", "hazards"),
    "hazards null": _with(None, "board", "hazards"),
    "pending hazards above": lambda r: r["board"]["hazards"].append({"x": 2, "y": 13}),
    "food twice": lambda r: r["board"]["food"].append(r["board"]["food"][0]),
    "no timeout": _without("game", "timeout"),
    "timeout 0": _with(0, "game", "timeout"),
    "timeout 1": _with(1, "game", "timeout"),
    "no turn": _without("turn"),
    "turn 0": _with(0, "turn"),
    "length one": lambda r: r["board"]["snakes"][0].update(body=[{"x": 5, "y": 4}]),
    "stacked": lambda r: r["board"]["snakes"][0].update(body=[{"x": 5, "y": 4}] * 3),
    "unknown keys": lambda r: r.update(future={"a": [1, {}]}),
}


@pytest.mark.parametrize("mode", ["hybrid", "policy", "search"])
async def test_odd_requests_get_a_legal_word(
    request_json: Json, make_client: Any, send: Any, mode: Any
) -> None:
    client = await make_client(msgspec.structs.replace(FAST, mode=mode))
    for name, change in ODD.items():
        asked = copy.deepcopy(request_json)
        asked["you"] = copy.deepcopy(asked["board"]["snakes"][0])
        asked["game"]["id"] = name
        if name in ("length one", "stacked", "corner", "lone survivor"):
            asked["you"] = asked["board"]["snakes"][0]
        change(asked)
        for path in ("/start", "/end"):
            assert (await send(client, path, asked))[0] == 200, (name, path)
        started = own_time()
        status, answer = await send(client, "/move", asked)
        elapsed = own_time() - started
        assert status == 200, (name, answer)
        on_board = all(p["x"] >= 0 and p["y"] >= 0 for p in asked["you"]["body"])
        allowed = legal_words(asked) if on_board else WORDS
        assert answer["move"] in allowed, (name, answer)
        assert elapsed < 0.4, (name, elapsed)


BAD: dict[str, tuple[bytes, int, list[str]]] = {
    "empty": (b"", 400, ["body", "empty", "JSON object"]),
    "blank": (b" \n", 400, ["body", "empty"]),
    "text": (b"hello", 400, ["body", "not JSON"]),
    "array": (b"[]", 422, ["body", "expected object"]),
    "null": (b"null", 422, ["body", "expected object"]),
    "number": (b"1", 422, ["body", "expected object"]),
    "empty object": (b"{}", 422, ["game", "missing"]),
    "nested arrays": (b"[" * 100_000, 422, ["body", "expected object"]),
    "nested objects": (b'{"a":' * 100_000, 400, ["body", "nested too deeply"]),
    "nested unknown": (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, ["nested"]),
    "nested latency": (
        b'{"you": {"latency":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
        400,
        ["nested too deeply"],
    ),
    "bad utf-8": (b'{"game": {"id": "\xff\xfe"}}', 400, ["body", "not JSON"]),
    "huge exponent": (b'{"turn": 1e999}', 422, ["turn", "out of range"]),
    "too large": (b'{"a": "' + b"x" * (1 << 20) + b'"}', 413, ["body", "at most 1048576 bytes"]),
}

WRONG: dict[str, tuple[Callable[[Json], object], list[str]]] = {
    "no board": (_without("board"), ["board", "missing"]),
    "no you": (_without("you"), ["you", "missing"]),
    "you null": (_with(None, "you"), ["you", "expected object", "null"]),
    "no game": (_without("game"), ["game", "missing"]),
    "no game id": (_without("game", "id"), ["game.id", "missing"]),
    "game id number": (_with(7, "game", "id"), ["game.id", "expected str"]),
    "long id": (_with("x" * 300, "game", "id"), ["game.id", "256"]),
    "giant board": (
        lambda r: r["board"].update(width=200_000, height=200_000),
        ["board.", "<= 25"],
    ),
    "tiny board": (_with(2, "board", "height"), ["board.height", ">= 3"]),
    "negative board": (_with(-11, "board", "width"), ["board.width", ">= 3"]),
    "width text": (_with("11", "board", "width"), ["board.width", "expected int"]),
    "width huge": (_with(10**30, "board", "width"), ["board.width"]),
    "no width": (_without("board", "width"), ["board.width", "missing"]),
    "no snakes": (_without("board", "snakes"), ["board.snakes", "missing"]),
    "snakes object": (_with({}, "board", "snakes"), ["board.snakes", "expected array"]),
    "turn negative": (_with(-1, "turn"), ["turn", ">= 0"]),
    "turn fraction": (_with(1.5, "turn"), ["turn", "expected int"]),
    "timeout text": (_with("500", "game", "timeout"), ["game.timeout", "expected float"]),
    "timeout negative": (_with(-1, "game", "timeout"), ["game.timeout", ">= 0"]),
    "timeout huge": (_with(1e300, "game", "timeout"), ["game.timeout", "<= 3600000"]),
    "point text": (_with([{"x": "1", "y": 2}], "board", "food"), ["board.food", ".x"]),
    "point array": (_with([[1, 2]], "board", "food"), ["board.food", "expected object"]),
    "point huge": (_with([{"x": 10**18, "y": 2}], "board", "food"), ["board.food", ".x"]),
    "setting text": (
        _with("many", "game", "ruleset", "settings", "minimumFood"),
        ["game.ruleset.settings.minimumFood", "expected int"],
    ),
}

IMPOSSIBLE: dict[str, tuple[Callable[[Json], object], list[str]]] = {
    "food off the board": (_with([{"x": 11, "y": 2}], "board", "food"), ["board.food[0]"]),
    "hazard off the board": (_with([{"x": 2, "y": -1}], "board", "hazards"), ["board.hazards[0]"]),
    "hazard far above": (_with([{"x": 2, "y": 22}], "board", "hazards"), ["board.hazards[0]"]),
    "same id twice": (
        lambda r: r["board"]["snakes"][1].update(id="a"),
        ["board.snakes[1].id", "twice"],
    ),
    "health": (
        lambda r: r["board"]["snakes"][1].update(health=101),
        ["board.snakes[1].health", "100"],
    ),
    "no body": (lambda r: r["board"]["snakes"][1].update(body=[]), ["board.snakes[1].body"]),
    "body off the board": (
        lambda r: r["board"]["snakes"][1]["body"].append({"x": 2, "y": 11}),
        ["board.snakes[1].body"],
    ),
    "nine snakes": (
        lambda r: r["board"]["snakes"].extend(
            {**r["board"]["snakes"][1], "id": f"c{i}"} for i in range(7)
        ),
        ["board.snakes", "at most 8"],
    ),
}


async def _refused(answer: tuple[int, Json], status: int, parts: list[str], name: str) -> None:
    assert answer[0] == status, (name, answer)
    sentence = answer[1]["error"]
    assert "\n" not in sentence, name
    assert len(sentence) < 300, name
    assert all(part in sentence for part in parts), (name, sentence)


async def test_malformed_bodies(client: Any, send: Any, request_json: Json) -> None:
    for name, (body, status, parts) in BAD.items():
        for path in ("/move", "/start", "/end"):
            await _refused(await send(client, path, body), status, parts, name)
        assert (await send(client, "/move", request_json))[0] == 200
    text = json.dumps(request_json)
    for cut in range(1, len(text), 61):
        status, _ = await send(client, "/move", text[:cut].encode())
        assert status == 400, text[:cut]
    await _refused(
        await send(client, "/move", text.replace("14", "NaN", 1).encode()), 400, ["body"], "NaN"
    )
    assert (await send(client, "/move", request_json))[0] == 200


async def test_wrong_fields_are_named(client: Any, send: Any, request_json: Json) -> None:
    for name, (change, parts) in WRONG.items():
        asked = copy.deepcopy(request_json)
        change(asked)
        for path in ("/move", "/start", "/end"):
            await _refused(await send(client, path, asked), 422, parts, name)
    for name, (change, parts) in IMPOSSIBLE.items():
        asked = copy.deepcopy(request_json)
        change(asked)
        await _refused(await send(client, "/move", asked), 422, parts, name)
    assert (await send(client, "/move", request_json))[0] == 200
    rejected = client.engine.metrics.registry.get_sample_value(
        "snakekit_requests_rejected_total", {"cause": "invalid"}
    )
    assert rejected == 3 * len(WRONG) + len(IMPOSSIBLE)


async def test_broken_compression(client: Any, request_json: Json) -> None:
    packed = gzip.compress(json.dumps(request_json).encode())
    headers = {"Content-Encoding": "gzip"}
    for body, expected in ((packed, 200), (b"not gzip at all", 400)):
        async with client.post("/move", data=body, headers=headers) as response:
            assert response.status == expected
    bomb = gzip.compress(b" " * (64 << 20))
    async with client.post("/move", data=bomb, headers=headers) as response:
        assert response.status == 413
    async with client.post("/move", json=request_json) as response:
        assert response.status == 200


async def test_the_loser_gets_its_end(client: Any, send: Any, request_json: Json) -> None:
    await send(client, "/start", request_json)
    request_json["board"]["snakes"].pop(0)
    request_json["you"]["body"][0] = {"x": 5, "y": 11}
    request_json["you"]["health"] = 0
    for _ in range(2):
        assert await send(client, "/end", request_json) == (200, {})
    value = client.engine.metrics.registry.get_sample_value
    assert value("snakekit_games_total", {"result": "lost"}) == 1
    assert value("snakekit_games_active") == 0


async def test_a_short_timeout_is_kept(make_client: Any, send: Any, request_json: Json) -> None:
    client = await make_client(msgspec.structs.replace(FAST, budget_ms=250))
    _tall(request_json)
    took = []
    for turn in range(10):
        request_json["turn"] = turn
        started = own_time()
        assert (await send(client, "/move", request_json))[0] == 200
        took.append(own_time() - started)
    # The machine that runs the tests may be busy, so the typical one counts.
    assert sorted(took)[5] < 0.033, took


async def test_same_turn_twice_and_skipped_turns(
    client: Any, send: Any, request_json: Json
) -> None:
    for turn in (3, 3, 9, 2, 9):
        request_json["turn"] = turn
        assert (await send(client, "/move", request_json))[0] == 200


async def test_four_seats_of_one_game_at_once(
    client: Any, send: Any, make_request: Any, make_snake: Any
) -> None:
    corners = [((1, 1), (1, 2)), ((9, 1), (9, 2)), ((1, 9), (1, 8)), ((9, 9), (9, 8))]
    snakes = [make_snake(f"s{i}", *body, body[1]) for i, body in enumerate(corners)]
    asked = [make_request(*snakes, you=one) for one in snakes]
    for turn in range(5):
        for one in asked:
            one["turn"] = turn
        answers = await asyncio.gather(*(send(client, "/move", one) for one in asked))
        for one, (status, answer) in zip(asked, answers, strict=True):
            assert status == 200
            assert answer["move"] in legal_words(one)
    assert len(client.engine.games) == 4
    assert client.engine.games.games == 1


async def test_an_unexpected_error_still_moves(
    client: Any, send: Any, request_json: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr("snakekit.runtime.engine.decide", broken)
    status, answer = await send(client, "/move", request_json)
    assert (status, answer["move"] in legal_words(request_json)) == (200, True)
    reflexes = ("snakekit_decisions_total", {"reason": "reflex"})
    assert client.engine.metrics.registry.get_sample_value(*reflexes) == 1
    monkeypatch.setattr("snakekit.runtime.engine.position", broken)
    assert (await send(client, "/move", request_json))[0] == 200
    count = client.engine.metrics.registry.get_sample_value(
        "snakekit_fallbacks_total", {"stage": "server", "cause": "error"}
    )
    assert count == 2
