"""Faults, one after the other: the server answers in time and goes on.

A full or hanging disk is in `test_recorder`, a thousand half-open connections are in `test_gate`, a
failing policy or search and numbers that are not finite are in `test_engine`.
"""

import asyncio
import contextlib
import json
import signal
import socket
import threading
import time
from typing import Any

import pytest
from processes import get, post, wait_ready
from stopwatch import own_time

from snakekit.runtime import deadline, engine, loaded, process
from snakekit.runtime.backends.random_play import RandomBackend, random_card
from snakekit.runtime.config import ServerConfig
from snakekit.runtime.decide import Decision, Reason

FAST = ServerConfig(backend="random", mode="hybrid", budget_ms=10, table_mb=1, log_level="error")


def value(client: Any, name: str, **labels: str) -> float:
    return client.engine.metrics.registry.get_sample_value("snakekit_" + name, labels) or 0.0


class Hanging(RandomBackend):
    """Hangs for as long as the gate is closed."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()

    def infer(self, batch: Any) -> Any:
        self.gate.wait(20)
        return super().infer(batch)


async def test_a_hung_backend_is_not_waited_for_again(
    make_client: Any, send: Any, request_json: Any, monkeypatch: Any, steady: None
) -> None:
    backend = Hanging()
    monkeypatch.setattr(loaded, "load_backend", lambda *_, **__: (backend, random_card()))
    monkeypatch.setattr(loaded, "HUNG_S", 0.05)
    client = await make_client(FAST)
    request_json["game"]["timeout"] = 300
    backend.gate.clear()
    try:
        assert (await send(client, "/move", request_json))[0] == 200
        assert value(client, "fallbacks_total", stage="policy", cause="deadline") == 1
        async with client.get("/readyz") as response:
            assert response.status == 503
        async with client.get("/healthz") as response:
            assert response.status == 200
        assert value(client, "ready") == 0
        request_json["game"]["timeout"] = 20_000
        begun = time.perf_counter()
        assert (await send(client, "/move", request_json))[0] == 200
        # Not the whole budget, but the time of a search.
        assert time.perf_counter() - begun < 5
        assert value(client, "fallbacks_total", stage="policy", cause="hung") == 1
        assert value(client, "decisions_total", reason="search_no_policy") == 2
    finally:
        backend.gate.set()
    await asyncio.sleep(0.05)
    assert (await send(client, "/move", request_json))[0] == 200
    assert value(client, "fallbacks_total", stage="policy", cause="hung") == 1
    async with client.get("/readyz") as response:
        assert response.status == 200


async def test_a_hung_backend_does_not_hold_up_the_end(
    make_client: Any, send: Any, request_json: Any, monkeypatch: Any
) -> None:
    backend = Hanging()
    monkeypatch.setattr(loaded, "load_backend", lambda *_, **__: (backend, random_card()))
    monkeypatch.setattr("snakekit.runtime.feed.CLOSE_S", 0.1)
    client = await make_client(FAST)
    request_json["game"]["timeout"] = 100
    backend.gate.clear()
    try:
        await send(client, "/move", request_json)
        begun = time.perf_counter()
        await client.engine.close()
        assert time.perf_counter() - begun < 1
    finally:
        backend.gate.set()


@pytest.mark.parametrize("jump", [3600.0, -3600.0, 10.0**9])
async def test_the_wall_clock_plays_no_part(
    make_client: Any, send: Any, request_json: Any, monkeypatch: Any, jump: float
) -> None:
    client = await make_client(FAST)
    await send(client, "/start", request_json)
    real = time.time
    for turn in range(4):
        request_json["turn"] = turn
        monkeypatch.setattr(time, "time", lambda turn=turn: real() + turn * jump)
        begun = own_time()
        assert (await send(client, "/move", request_json))[0] == 200
        assert own_time() - begun < 0.4
    assert value(client, "fallbacks_total", stage="search", cause="deadline") == 0
    assert value(client, "decisions_total", reason="reflex") == 0
    assert len(client.engine.games) == 1


async def test_a_suspended_machine_answers_at_once_when_it_wakes(
    make_client: Any, send: Any, request_json: Any, monkeypatch: Any
) -> None:
    """The monotonic clock jumps ahead in the middle of a move, and the next one is as ever."""
    client = await make_client(FAST, budget_ms=200.0)
    real = time.perf_counter
    ahead = [0.0]

    class Clock:
        @staticmethod
        def perf_counter() -> float:
            return real() + ahead[0]

    monkeypatch.setattr(engine, "time", Clock)
    moving = asyncio.create_task(send(client, "/move", request_json))
    await asyncio.sleep(0.05)
    ahead[0] = 3600.0
    assert (await moving)[0] == 200
    assert value(client, "deadline_misses_total") == 1
    seat = client.engine.games.seat(request_json["game"]["id"], request_json["you"]["id"], real())
    request_json["turn"] += 1
    # An hour of own time must not be taken for overhead, nor the engine's time-out for ours.
    request_json["you"]["latency"] = request_json["board"]["snakes"][0]["latency"] = "500"
    ahead[0] = 0.0
    assert (await send(client, "/move", request_json))[0] == 200
    assert seat.budget.timeouts == 1
    assert 0 <= seat.budget.budget(500) <= 500
    for turn in range(20, 20 + deadline.WINDOW):
        request_json["turn"] = turn
        for one in (request_json["you"], request_json["board"]["snakes"][0]):
            one["latency"] = "215"
        assert (await send(client, "/move", request_json))[0] == 200
    assert seat.budget.budget(500) > 300


async def test_a_move_with_a_long_budget_is_finished_at_the_end(
    make_client: Any, send: Any, request_json: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(process, "SHUTDOWN_S", 0.05)
    client = await make_client(FAST, budget_ms=20_000.0)
    begun = asyncio.Event()

    async def slow(*_: Any) -> engine.Choice:
        begun.set()
        await asyncio.sleep(0.5)
        return engine.Choice(Decision(1, Reason.REFLEX, None))

    monkeypatch.setattr(client.engine, "_choose", slow)
    moving = asyncio.create_task(send(client, "/move", request_json))
    await begun.wait()
    await client.server.close()
    assert await moving == (200, {"move": "down"})


def test_a_signal_in_mid_move_with_many_games(
    start: Any,
    request_json: Any,
) -> None:
    process, url, _, _ = start("--mode", "search", "--budget-ms", "400", "--search-workers", "2")
    wait_ready(url)
    answers: list[Any] = []

    def play(game: int) -> None:
        one = {**request_json, "game": {**request_json["game"], "id": f"g{game}", "timeout": 800}}
        answers.append(post(url + "/move", one))

    threads = [threading.Thread(target=play, args=(game,)) for game in range(6)]
    for thread in threads:
        thread.start()
    time.sleep(0.15)
    begun = time.perf_counter()
    process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join(10)
    assert [status for status, _ in answers] == [200] * 6
    assert process.wait(10) == 0
    assert time.perf_counter() - begun < 4


def test_draining_plays_running_games_and_refuses_new_ones(
    start: Any,
    request_json: Any,
) -> None:
    process, url, _, _ = start("--mode", "policy", "--drain-s", "20")
    wait_ready(url)
    for turn in (0, 1):
        request_json["turn"] = turn
        assert post(url + "/move", request_json)[0] == 200
    process.send_signal(signal.SIGTERM)
    end = time.perf_counter() + 5
    while get(url + "/readyz")[0] != 503:
        assert time.perf_counter() < end
    assert get(url + "/healthz")[0] == 200
    new = {**request_json, "turn": 0, "game": {**request_json["game"], "id": "another"}}
    for path in ("/start", "/move"):
        status, body = get(request_to(url + path, new))
        assert (status, json.loads(body)) == (
            503,
            {"error": "server: is stopping, expected new games elsewhere"},
        )
    for turn in range(2, 6):
        request_json["turn"] = turn
        assert post(url + "/move", request_json)[0] == 200
    assert process.poll() is None
    begun = time.perf_counter()
    assert post(url + "/end", request_json)[0] == 200
    assert process.wait(10) == 0
    assert time.perf_counter() - begun < 5


def request_to(url: str, body: Any) -> Any:
    import urllib.request

    return urllib.request.Request(url, data=json.dumps(body).encode())


def test_a_second_signal_ends_the_draining(
    start: Any,
    request_json: Any,
) -> None:
    process, url, _, _ = start("--mode", "policy", "--drain-s", "60")
    wait_ready(url)
    done = threading.Event()

    def play() -> None:
        turn = 0
        while not done.is_set():
            request_json["turn"] = turn = turn + 1
            try:
                post(url + "/move", request_json)
            except OSError:
                return

    thread = threading.Thread(target=play)
    thread.start()
    try:
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        time.sleep(0.4)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
    finally:
        done.set()
        thread.join(10)


def test_half_open_connections_do_not_hold_up_the_end(start: Any, request_json: Any) -> None:
    process, url, _, _ = start("--mode", "policy")
    wait_ready(url)
    host, port = url.removeprefix("http://").split(":")
    with contextlib.ExitStack() as stack:
        for number in range(100):
            connection = stack.enter_context(socket.create_connection((host, int(port))))
            if number % 2:
                connection.sendall(b"POST /move HTTP/1.1\r\nContent-Length: 99\r\n\r\n{"[:number])
        assert post(url + "/move", request_json)[0] == 200
        begun = time.perf_counter()
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0
        assert time.perf_counter() - begun < 7
