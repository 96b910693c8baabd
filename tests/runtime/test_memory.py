"""Memory stays flat whatever clients leave behind."""

import asyncio
import gc
import json
import re
import time
from typing import Any

import pytest
from processes import get, wait_ready

from snakekit.bench.load import Client, Player, Target, closed_loop, scripts
from snakekit.runtime import api, process
from snakekit.runtime.config import ServerConfig
from snakekit.runtime.engine import Engine

FAST = ServerConfig(backend="random", mode="policy", log_level="error", games_limit=500)


def asked(request_json: Any, game: int) -> api.Request:
    one = {**request_json, "game": {**request_json["game"], "id": f"game {game}"}}
    return api.parse(json.dumps(one).encode())


async def test_ten_thousand_games_that_never_end(request_json: Any) -> None:
    engine = Engine(FAST)
    await engine.open()
    counts = []
    try:
        for game in range(10_000):
            request = asked(request_json, game)
            engine.start(request)
            if game % 10 == 0:
                await engine.move(request, time.perf_counter())
            if game in (999, 9_999):
                gc.collect()
                counts.append(len(gc.get_objects()))
    finally:
        await engine.close()
    assert len(engine.games) == engine.games.games == 500
    assert counts[1] < counts[0] + 300, counts


async def test_games_are_forgotten_when_nobody_plays(
    request_json: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "LAG_PERIOD_S", 0.02)
    engine = Engine(FAST)
    now = process.time.perf_counter()
    engine.games.seat("old", "a", now - FAST.game_ttl_s - 1)
    engine.games.seat("new", "a", now)
    watching = asyncio.create_task(process._watch_loop(engine))
    for _ in range(200):
        if engine.games.games == 1:
            break
        await asyncio.sleep(0.01)
    watching.cancel()
    assert engine.games.games == 1
    assert engine.games.knows("new", "a")
    assert engine.metrics.registry.get_sample_value("snakekit_games_active") == 1


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_resident_memory_is_flat(start: Any) -> None:
    """Ten thousand games over HTTP without an end, after a first thousand."""
    process, url, metrics, _ = start("--mode", "policy", "--games-limit", "500")
    wait_ready(url)
    prepared = scripts(4, seed=1, snakes=2, timeout_ms=500)

    async def play(games: int, name: str) -> None:
        client = Client(Target(url), 5000)
        players = [
            Player(client, prepared, first=0, name=f"{name} {game}") for game in range(games)
        ]
        for begin in range(0, games, 16):
            # One move each, and never an end.
            await closed_loop(players[begin : begin + 16], client, 60, moves=16)
        client.close()

    def resident() -> float:
        found = re.search(rb"\nprocess_resident_memory_bytes (\S+)", get(metrics)[1])
        assert found
        return float(found[1])

    asyncio.run(play(1000, "first"))
    before = resident()
    asyncio.run(play(10_000, "second"))
    assert resident() < before * 1.05
    assert b"snakekit_games_active 500.0" in get(metrics)[1]
    assert process.poll() is None
