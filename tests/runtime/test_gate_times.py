"""When a move's time begins: with its first byte, whatever comes before it is done."""

import asyncio
import json
import time
from typing import Any

import pytest
from raw_http import until, wire

from snakekit.runtime.turns import BURST

Json = dict[str, Any]


class Times:
    """When each move came, as the engine was told, and when it was answered."""

    def __init__(self, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.came: list[float] = []
        self.answered: list[float] = []
        self.takes_s = 0.0
        self._move = client.engine.move
        monkeypatch.setattr(client.engine, "move", self.move)

    async def move(self, asked: Any, arrival: float) -> Any:
        self.came.append(arrival)
        answer = await self._move(asked, arrival)
        await asyncio.sleep(self.takes_s)
        self.answered.append(time.perf_counter())
        return answer


@pytest.fixture
async def client(make_client: Any) -> Any:
    return await make_client(mode="policy")


@pytest.fixture
def times(client: Any, monkeypatch: pytest.MonkeyPatch) -> Times:
    return Times(client, monkeypatch)


@pytest.fixture
def body(request_json: Json) -> bytes:
    return json.dumps(request_json).encode()


def chunked(body: bytes) -> bytes:
    head = b"POST /move HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


@pytest.mark.parametrize("make", [wire, chunked])
async def test_the_first_byte_counts(
    client: Any, times: Times, connect: Any, body: bytes, make: Any
) -> None:
    one = await connect(client)
    data = make(body)
    for turn in range(4):
        begun = time.perf_counter()
        await one.send(data[:5])
        await asyncio.sleep(0.03)
        rest = time.perf_counter()
        await one.send(data[5:])
        assert (await one.answer())[0] == 200
        # Neither the last byte nor, on a connection that stays, an earlier request.
        assert begun <= times.came[turn] < rest
        await asyncio.sleep(0.03)


@pytest.mark.parametrize("make", [wire, chunked])
@pytest.mark.parametrize("together", [True, False])
async def test_a_move_behind_another_one_counts_from_when_it_came(
    client: Any, times: Times, connect: Any, body: bytes, make: Any, together: bool
) -> None:
    times.takes_s = 0.05
    one = await connect(client)
    for turn in (0, 2):
        begun = time.perf_counter()
        if together:
            await one.send(make(body) * 2)
        else:
            await one.send(make(body))
            await until(lambda turn=turn: len(times.came) == turn + 1)
            await one.send(make(body))
        assert [(await one.answer())[0] for _ in range(2)] == [200, 200]
        assert begun <= times.came[turn] <= times.came[turn + 1] < times.answered[turn]


async def test_waiting_for_a_turn_counts(
    client: Any, times: Times, connect: Any, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = client.keeper.turns
    turns._begun = BURST
    monkeypatch.setattr(turns, "_go_round", lambda: None)
    one = await connect(client)
    await one.send(wire(body))
    await until(lambda: len(turns) == 1)
    waits = time.perf_counter()
    await asyncio.sleep(0.03)
    turns._round()
    assert (await one.answer())[0] == 200
    assert times.came[0] <= waits
