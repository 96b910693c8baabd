"""Broken HTTP and random damage: never a 5xx, and the next good request is answered."""

import asyncio
import contextlib
import copy
import json
import random
from typing import Any

from raw_http import until, wire

from snakekit.runtime.gate import State

Json = dict[str, Any]

NASTY: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    3,
    25,
    26,
    255,
    2**31,
    2**63,
    -(2**70),
    0.5,
    1e308,
    "",
    "abc",
    "11",
    "\x00",
    "é" * 300,
    [],
    [None],
    [[]],
    [{}],
    [{"x": 0, "y": 0}] * 40,
    {},
    {"x": 5, "y": 5},
    {"name": None},
]


def spots(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of every value in a JSON document."""
    found = [path] if path else []
    if isinstance(node, (dict, list)):
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in items:
            found += spots(value, (*path, key))
    return found


def damage(request: Json, dice: random.Random) -> Json:
    made = copy.deepcopy(request)
    for _ in range(dice.choice((1, 1, 2, 4))):
        path = dice.choice(spots(made))
        node: Any = made
        for key in path[:-1]:
            node = node[key]
        action = dice.random()
        if action < 0.2:
            del node[path[-1]]
        elif action < 0.3 and isinstance(node, list):
            node.append(copy.deepcopy(node[path[-1]]))
        elif action < 0.5:
            node[path[-1]] = dice.randint(-2, 30)
        else:
            node[path[-1]] = copy.deepcopy(dice.choice(NASTY))
    return made


async def test_damaged_requests(client: Any, send: Any, request_json: Json) -> None:
    dice = random.Random(20)
    seen: dict[int, int] = {}
    for number in range(600):
        asked = damage(request_json, dice)
        if isinstance(asked.get("game"), dict) and isinstance(
            asked["game"].get("timeout"), (int, float)
        ):
            asked["game"]["timeout"] = min(asked["game"]["timeout"], 30)
        path = dice.choice(("/move", "/move", "/move", "/start", "/end"))
        status, answer = await send(client, path, asked)
        seen[status] = seen.get(status, 0) + 1
        assert status in (200, 422), (number, path, asked, answer)
        if status == 422:
            assert len(answer["error"]) < 400
            assert "\n" not in answer["error"]
        elif path == "/move":
            assert answer["move"] in ("up", "down", "left", "right")
    assert min(seen.get(200, 0), seen.get(422, 0)) > 80, seen
    value = client.engine.metrics.registry.get_sample_value
    assert value("snakekit_fallbacks_total", {"stage": "server", "cause": "error"}) == 0
    assert (await send(client, "/move", request_json))[0] == 200


async def test_damaged_bytes(client: Any, send: Any, request_json: Json) -> None:
    dice = random.Random(21)
    text = json.dumps(request_json).encode()
    for _ in range(300):
        made = bytearray(text)
        for _ in range(dice.choice((1, 3, 10))):
            made[dice.randrange(len(made))] = dice.randrange(256)
        assert (await send(client, "/move", bytes(made)))[0] in (200, 400, 422)
    assert (await send(client, "/move", request_json))[0] == 200


async def raw(client: Any, *parts: bytes) -> bytes:
    """Send bytes as they are, end the sending side and return what comes back."""
    reader, writer = await asyncio.open_connection("127.0.0.1", client.server.port)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
        writer.write_eof()
        return await asyncio.wait_for(reader.read(), 10)
    except ConnectionError:
        return b""
    finally:
        await shut(writer)


async def shut(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


def head(length: int | str, *lines: str, method: str = "POST") -> bytes:
    rows = [f"{method} /move HTTP/1.1", "Host: x", f"Content-Length: {length}", *lines]
    return ("\r\n".join(rows) + "\r\n\r\n").encode()


async def test_broken_http(client: Any, send: Any, request_json: Json) -> None:
    body = json.dumps(request_json).encode()
    chunked = b"POST /move HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    cases = {
        "cut body": [head(len(body)) + body[: len(body) // 2]],
        "nothing": [b""],
        "garbage": [b"\x00\x01\x02\r\n\r\n"],
        "no such length": [head("many") + body],
        "negative length": [head(-5) + body],
        "huge length": [head(10**15)],
        "bad chunk": [chunked + b"zz\r\n" + body],
        "long header": [head(2, "X: " + "y" * 100_000) + b"{}"],
        "bad version": [b"POST /move HTTP/9.9\r\n\r\n"],
    }
    for name, parts in cases.items():
        answer = await raw(client, *parts)
        assert not answer.startswith(b"HTTP/1.1 5"), (name, answer[:200])
        assert not answer.startswith(b"HTTP/1.1 200"), (name, answer[:200])
        assert (await send(client, "/move", request_json))[0] == 200, name


async def test_slow_and_pipelined_bodies(client: Any, request_json: Json, connect: Any) -> None:
    data = wire(json.dumps(request_json).encode())
    slow, eager = await connect(client), await connect(client)
    for part in (data[:500], data[500:1000]):
        await slow.send(part)
        await until(lambda: bool(client.keeper._gates[State.BODY]))
    await slow.send(data[1000:])
    assert (await slow.answer())[0] == 200
    await eager.send(data * 2)
    answers = [await eager.answer() for _ in range(2)]
    assert [status for status, _ in answers] == [200, 200]
    assert all("move" in answer for _, answer in answers)


async def test_a_body_that_never_comes(make_client: Any, request_json: Json, connect: Any) -> None:
    client = await make_client(read_timeout_s=0.1)
    slow, good = await connect(client), await connect(client)
    await slow.send(head(1000) + b'{"game"')
    assert await slow.answer() == (
        408,
        {"error": "body: incomplete, expected all of it within 0.1 s"},
    )
    assert await slow.closed()
    # In one piece, since here a pause of a tenth of a second within a request is too long.
    await good.send(wire(json.dumps(request_json).encode()))
    assert (await good.answer())[0] == 200


async def test_a_client_that_leaves_frees_the_search(
    client: Any, send: Any, request_json: Json
) -> None:
    body = json.dumps(request_json).encode()
    for _ in range(5):
        _, writer = await asyncio.open_connection("127.0.0.1", client.server.port)
        writer.write(head(len(body)) + body)
        await writer.drain()
        await shut(writer)
    assert (await send(client, "/move", request_json))[0] == 200


async def test_a_giant_body_is_refused_before_it_comes(client: Any) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", client.server.port)
    writer.write(head(10**12) + b"{")
    answer = await asyncio.wait_for(reader.readuntil(b"}"), 5)
    await shut(writer)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"body: too large" in answer
