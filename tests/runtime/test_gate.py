"""The gate before aiohttp: slow senders, too many connections, too many moves."""

import asyncio
import json
from typing import Any

import pytest
from raw_http import Connection, until, wire

from snakekit.runtime import gate as gates
from snakekit.runtime.gate import State
from snakekit.runtime.turns import BURST, BUSY_SENTENCE, FIRST_COST_S

Json = dict[str, Any]
LINE = b"POST /move HTTP/1."


def rejected(client: Any, cause: str) -> float:
    value = client.engine.metrics.registry.get_sample_value
    return value("snakekit_requests_rejected_total", {"cause": cause}) or 0.0


@pytest.fixture
def sweep_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "SWEEP_S", 0.02)


async def swept(client: Any) -> "asyncio.Task[None]":
    return asyncio.create_task(client.keeper.sweep())


async def test_slow_headers_are_closed_with_a_sentence(
    make_client: Any, send: Any, request_json: Json, connect: Any, sweep_fast: None
) -> None:
    client = await make_client(read_timeout_s=0.2)
    sweeping = await swept(client)
    silent, slow, good = [await connect(client) for _ in range(3)]
    await slow.send(b"POST /move HTTP/1.1\r\nHost: x\r\n")
    await good.send(wire(json.dumps(request_json).encode()))
    assert (await good.answer())[0] == 200
    status, error = await slow.answer()
    assert (status, error) == (408, {"error": client_sentence(client)})
    assert await silent.closed()
    assert await slow.closed()
    # A connection between two requests has the longer time.
    await good.send(wire(json.dumps(request_json).encode()))
    assert (await good.answer())[0] == 200
    assert rejected(client, "timeout") == 1
    sweeping.cancel()


def client_sentence(client: Any) -> str:
    longest = client.engine.config.read_timeout_s
    return f"headers: incomplete, expected all of them within {longest:g} s"


async def test_idle_connections_are_closed(
    make_client: Any, request_json: Json, connect: Any, sweep_fast: None
) -> None:
    client = await make_client(keepalive_s=1.0)
    sweeping = await swept(client)
    one = await connect(client)
    await one.send(wire(json.dumps(request_json).encode()))
    assert (await one.answer())[0] == 200
    assert await one.closed()
    sweeping.cancel()


async def test_a_thousand_half_open_connections(
    make_client: Any, send: Any, request_json: Json
) -> None:
    client = await make_client(connections_limit=600)
    server = client.server
    opened = []
    for number in range(1000):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        if number % 2:
            writer.write(b"POST /move HTTP/1.1\r\nX: ")
        opened.append((reader, writer))
    assert client.keeper.connections <= 600
    for turn in range(5):
        request_json["turn"] = turn
        assert (await send(client, "/move", request_json))[0] == 200
    assert rejected(client, "connections") >= 400
    # The oldest made way, the newest are still there.
    assert opened[0][0].at_eof() or await opened[0][0].read() == b""
    assert not opened[-1][0].at_eof()
    for _, writer in opened:
        writer.close()
    for _ in range(200):
        if client.keeper.connections <= 1:
            break
        await asyncio.sleep(0.01)
    assert client.keeper.connections <= 1


async def test_busy_connections_do_not_make_way(
    make_client: Any, request_json: Json, connect: Any
) -> None:
    client = await make_client(connections_limit=16, mode="search", budget_ms=300)
    working = await connect(client)
    await working.send(wire(json.dumps(request_json).encode()))
    for _ in range(40):
        await connect(client)
    assert (await working.answer())[0] == 200


async def test_a_burst_is_answered_in_order_and_none_refused(
    make_client: Any, request_json: Json, connect: Any
) -> None:
    client = await make_client(mode="policy")
    body = json.dumps(request_json).encode()
    some = [await connect(client) for _ in range(5 * BURST)]
    for one in some:
        one.writer.write(wire(body))
    answers = await asyncio.gather(*(one.answer() for one in some))
    assert all(status == 200 for status, _ in answers)
    assert rejected(client, "busy") == 0


async def test_beyond_the_bound_moves_are_refused_at_once(
    make_client: Any, request_json: Json, connect: Any
) -> None:
    client = await make_client(mode="policy")
    client.keeper.turns.cost_s = 0.02
    request_json["game"]["timeout"] = 200
    body = json.dumps(request_json).encode()
    some = [await connect(client) for _ in range(60)]
    await asyncio.sleep(0.05)
    for one in some:
        one.writer.write(wire(body))
    answers = await asyncio.gather(*(one.answer() for one in some))
    refused = [answer for status, answer in answers if status == 503]
    # 200 ms * 0.2 leaves room for two that wait, besides those that begin.
    assert len(refused) > 20
    assert {status for status, _ in answers} == {200, 503}
    assert refused[0] == {"error": BUSY_SENTENCE}
    assert rejected(client, "busy") == len(refused)
    # The connections are as good as before.
    client.keeper.turns.cost_s = FIRST_COST_S
    for one in some:
        one.writer.write(wire(body))
        assert (await one.answer())[0] == 200


@pytest.mark.parametrize(
    "lines", [("Transfer-Encoding: chunked",), ("Expect: 100-continue",)], ids=str
)
async def test_moves_whose_end_is_not_certain_wait_too(
    make_client: Any, request_json: Json, connect: Any, lines: Any
) -> None:
    client = await make_client(mode="policy")
    client.keeper.turns.cost_s = 1.0
    body = json.dumps(request_json).encode()
    data = (
        b"POST /move HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        if "chunked" in lines[0]
        else wire(body, *lines)
    )
    some = [await connect(client) for _ in range(4 * BURST)]
    await asyncio.sleep(0.05)
    for one in some:
        one.writer.write(data)
    statuses = []
    for one in some:
        async with asyncio.timeout(10):
            status, _ = await one.answer() if "chunked" in lines[0] else await final(one)
        statuses.append(status)
    assert set(statuses) == {200, 503}


async def final(one: Connection) -> tuple[int, Json]:
    await one.reader.readuntil(b"100 Continue\r\n\r\n")
    return await one.answer()


async def test_pipelined_moves_keep_their_order_under_load(
    make_client: Any, request_json: Json, connect: Any
) -> None:
    client = await make_client(mode="policy")
    good = wire(json.dumps(request_json).encode())
    bad = wire(b"[]")
    some = [await connect(client) for _ in range(3 * BURST)]
    for one in some:
        one.writer.write(good + bad + good)
    for one in some:
        assert [(await one.answer())[0] for _ in range(3)] == [200, 422, 200]


@pytest.mark.parametrize("cut", [1, 10, 40, 75, 90, -2])
async def test_a_request_in_two_parts_under_load(
    make_client: Any, request_json: Json, connect: Any, cut: int
) -> None:
    client = await make_client(mode="policy")
    data = wire(json.dumps(request_json).encode())
    some = [await connect(client) for _ in range(3 * BURST)]
    for one in some:
        one.writer.write(data[:cut])
    await asyncio.sleep(0.02)
    for one in some:
        one.writer.write(data[cut:])
    for one in some:
        assert (await one.answer())[0] == 200


async def test_a_client_that_leaves_stops_its_search(
    make_client: Any, request_json: Json, connect: Any
) -> None:
    client = await make_client(mode="search", budget_ms=60_000, search_workers=1)
    request_json["game"]["timeout"] = 100_000
    one = await connect(client)
    await one.send(wire(json.dumps(request_json).encode()))
    await until(lambda: len(client.engine._pool._open) == 1)
    one.writer.close()
    await until(lambda: len(client.engine._pool._open) == 0)
    assert client.keeper.connections == 0


async def test_one_that_leaves_while_it_waits_costs_nothing(
    make_client: Any, request_json: Json, connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await make_client(mode="policy")
    keeper = client.keeper
    turns: list[Any] = []
    one = await connect(client)
    keeper.turns._begun = BURST
    monkeypatch.setattr(keeper.turns, "_go_round", lambda: turns.append(None))
    await one.send(wire(json.dumps(request_json).encode()))
    await until(lambda: bool(turns))
    one.writer.close()
    await until(lambda: keeper.connections == 0)
    keeper.turns._round()
    assert keeper.turns._begun == 0
    assert len(keeper.turns) == 0


async def test_a_client_that_reads_nothing_is_not_answered_for_ever(
    make_client: Any, send: Any, request_json: Json, connect: Any
) -> None:
    client = await make_client(mode="policy")
    one = await connect(client)
    for _ in range(400):
        one.writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
    await asyncio.sleep(0.1)
    assert (await send(client, "/move", request_json))[0] == 200
    transport = next(iter(client.keeper._gates[State.BUSY] or client.keeper._gates[State.IDLE]))
    assert transport._transport.get_write_buffer_size() < 1 << 20


async def test_many_at_once_do_not_pass_the_bound(make_client: Any, connect: Any) -> None:
    client = await make_client(connections_limit=16)
    most = 0

    async def open_one() -> None:
        nonlocal most
        await connect(client)
        most = max(most, client.keeper.connections)

    await asyncio.gather(*(open_one() for _ in range(200)))
    assert most <= 16
    await until(lambda: client.keeper.connections == 16)
    assert rejected(client, "connections") == 184


async def test_one_that_reads_nothing_is_dropped_in_the_end(
    make_client: Any, connect: Any, sweep_fast: None
) -> None:
    client = await make_client(keepalive_s=1.0)
    sweeping = await swept(client)
    one = await connect(client)
    one.writer.transport.pause_reading()
    for _ in range(300):
        one.writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
        await asyncio.sleep(0)
    await until(lambda: client.keeper.connections == 0)
    sweeping.cancel()


async def test_a_large_move_is_not_held(make_client: Any, request_json: Json, connect: Any) -> None:
    client = await make_client(mode="policy")
    client.keeper.turns._begun = BURST
    one = await connect(client)
    await one.send(b"POST /move HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n{")
    status, error = await one.answer()
    assert status == 413
    assert error["error"].startswith("body: too large")


@pytest.mark.parametrize(
    "part",
    [
        b"POST /move HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\n\r\n{",
        b"POST /move HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
    ],
    ids=["length", "chunked"],
)
async def test_slow_bodies_make_way(
    make_client: Any, send: Any, request_json: Json, connect: Any, part: bytes
) -> None:
    client = await make_client(connections_limit=16)
    for _ in range(40):
        one = await connect(client)
        await one.send(part)
        await asyncio.sleep(0.005)
    assert client.keeper.connections <= 16
    assert (await send(client, "/move", request_json))[0] == 200


async def test_a_slow_body_that_comes_is_answered(
    make_client: Any, request_json: Json, connect: Any
) -> None:
    client = await make_client()
    data = wire(json.dumps(request_json).encode())
    one = await connect(client)
    for begin in range(0, len(data), 100):
        await one.send(data[begin : begin + 100])
        await asyncio.sleep(0.002)
    assert (await one.answer())[0] == 200
    await one.send(data)
    assert (await one.answer())[0] == 200
