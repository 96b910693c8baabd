"""The engine in time whatever hangs, and what it counts."""

import asyncio
import threading
import time
from typing import Any

import msgspec
import numpy as np
import pytest
from stopwatch import own_time

from snakekit.runtime.backends.random_play import RandomBackend, random_card
from snakekit.runtime.config import ServerConfig
from snakekit.runtime.decide import Reason
from snakekit.runtime.engine import ANSWER_EACH_S
from snakekit.runtime.searching import SearchJob

FAST = ServerConfig(backend="random", mode="hybrid", budget_ms=10, table_mb=1)


class Held(RandomBackend):
    """Hangs after the warm-up until released."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()

    def infer(self, batch: Any) -> Any:
        self.gate.wait(20)
        return super().infer(batch)


class NotFinite(RandomBackend):
    """Falls ill after the warm-up."""

    ill = False

    def infer(self, batch: Any) -> Any:
        policy, value = super().infer(batch)
        if self.ill:
            policy[:, 2] = np.nan
        return policy, value


class Broken(RandomBackend):
    def __init__(self) -> None:
        self.calls = 0

    def infer(self, batch: Any) -> Any:
        self.calls += 1
        if batch.any() and self.calls > 100:
            raise RuntimeError("device lost")
        return super().infer(batch)


def use(monkeypatch: pytest.MonkeyPatch, backend: Any) -> None:
    monkeypatch.setattr(
        "snakekit.runtime.loaded.load_backend", lambda *_, **__: (backend, random_card())
    )


def count(client: Any, name: str, **labels: str) -> float:
    return client.engine.metrics.registry.get_sample_value("snakekit_" + name, labels) or 0.0


async def test_every_batch_size_is_warmed_up(make_client: Any, monkeypatch: Any) -> None:
    sizes: list[int] = []

    class Counting(RandomBackend):
        def infer(self, batch: Any) -> Any:
            sizes.append(len(batch))
            return super().infer(batch)

    use(monkeypatch, Counting())
    client = await make_client(opened=False)
    assert not client.engine.ready
    await client.engine.open()
    assert set(sizes) == set(FAST.batch_sizes)
    assert client.engine.ready


async def test_one_safe_move_asks_nobody(make_client: Any, send: Any, request_json: Any) -> None:
    client = await make_client(msgspec.structs.replace(FAST, budget_ms=400))
    corner = [{"x": 0, "y": 0}, {"x": 0, "y": 1}, {"x": 0, "y": 2}]
    request_json["board"]["snakes"][0]["body"] = corner
    started = own_time()
    assert await send(client, "/move", request_json) == (200, {"move": "right"})
    assert own_time() - started < 0.3
    assert count(client, "decisions_total", reason="forced") == 1
    assert count(client, "policy_batch_size_count") == 0


async def test_proofs_override_the_policy(
    make_client: Any, send: Any, request_json: Any, monkeypatch: Any
) -> None:
    class WantsLeft(RandomBackend):
        def infer(self, batch: Any) -> Any:
            policy, value = super().infer(batch)
            policy[:] = [0, 0, 9, 0]
            return policy, value

    told: list[list[float]] = []
    monkeypatch.setattr(SearchJob, "prefer", lambda job, priors: told.append(priors))
    use(monkeypatch, WantsLeft())
    # Left is a dead end of one square; right leads out.
    mine = [(2, 0), (2, 1), (1, 1), (0, 1), (0, 2), (1, 2), (2, 2), (3, 2)]
    request_json["board"]["snakes"][0]["body"] = [{"x": x, "y": y} for x, y in mine]
    request_json["board"]["food"] = request_json["board"]["hazards"] = []
    client = await make_client(msgspec.structs.replace(FAST, budget_ms=300))
    assert await send(client, "/move", request_json) == (200, {"move": "right"})
    assert count(client, "decisions_total", reason="search_avoids_loss") == 1
    assert len(told) == 1
    assert sum(told[0]) == pytest.approx(1)
    assert told[0][2] > 0.99
    alone = await make_client(msgspec.structs.replace(FAST, mode="policy"))
    assert await send(alone, "/move", request_json) == (200, {"move": "left"})


@pytest.mark.parametrize("mode", ["hybrid", "policy"])
async def test_a_hanging_policy_costs_no_answer(
    make_client: Any, send: Any, request_json: Any, monkeypatch: Any, steady: None, mode: Any
) -> None:
    backend = Held()
    use(monkeypatch, backend)
    client = await make_client(msgspec.structs.replace(FAST, mode=mode, margin_ms=75))
    backend.gate.clear()
    request_json["game"]["timeout"] = 300
    try:
        for turn in range(3):
            request_json["turn"] = turn
            started = own_time()
            status, _ = await send(client, "/move", request_json)
            assert status == 200
            assert own_time() - started < 0.3
    finally:
        backend.gate.set()
    assert count(client, "fallbacks_total", stage="policy", cause="deadline") == 3
    reason = Reason.SEARCH_NO_POLICY if mode == "hybrid" else Reason.REFLEX
    assert count(client, "decisions_total", reason=reason.value) == 3
    assert count(client, "deadline_misses_total") == 0
    await asyncio.sleep(0.05)
    request_json["game"]["timeout"] = 5000
    await send(client, "/move", request_json)
    assert count(client, "fallbacks_total", stage="policy", cause="deadline") == 3
    # The first call hung; the two that waited behind it were dropped with their requests.
    assert count(client, "policy_batch_size_sum") == 2


async def test_not_finite_falls_back_to_search(
    make_client: Any, send: Any, request_json: Any, monkeypatch: Any
) -> None:
    backend = NotFinite()
    use(monkeypatch, backend)
    client = await make_client()
    backend.ill = True
    assert (await send(client, "/move", request_json))[0] == 200
    assert count(client, "fallbacks_total", stage="policy", cause="not_finite") == 1
    assert count(client, "decisions_total", reason="search_no_policy") == 1


async def test_a_failing_model_falls_back(
    make_client: Any, send: Any, request_json: Any, monkeypatch: Any
) -> None:
    backend = Broken()
    use(monkeypatch, backend)
    client = await make_client(msgspec.structs.replace(FAST, mode="policy"))
    backend.calls = 1000
    assert (await send(client, "/move", request_json))[0] == 200
    assert count(client, "fallbacks_total", stage="policy", cause="error") == 1
    assert count(client, "decisions_total", reason="reflex") == 1


async def test_a_failing_search_falls_back(
    make_client: Any, send: Any, request_json: Any, monkeypatch: Any
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr("snakekit.runtime.searching.SearchPool._search", broken)
    client = await make_client()
    assert (await send(client, "/move", request_json))[0] == 200
    assert count(client, "fallbacks_total", stage="search", cause="error") == 1
    assert count(client, "decisions_total", reason="policy_no_search") == 1


async def test_engine_timeouts_and_overhead_are_learned(
    make_client: Any, send: Any, request_json: Any
) -> None:
    client = await make_client()
    for turn, latency in enumerate(["0", "400", "500", "abc"]):
        request_json["turn"] = turn
        for one in (request_json["you"], request_json["board"]["snakes"][0]):
            one["latency"] = latency
        await send(client, "/move", request_json)
    assert count(client, "engine_timeouts_total") == 1
    assert count(client, "network_overhead_seconds_count") == 1
    assert 0.1 < count(client, "network_overhead_seconds_sum") < 0.4


async def test_two_servers_do_not_share_metrics(
    make_client: Any, send: Any, request_json: Any
) -> None:
    first, second = await make_client(), await make_client()
    await send(first, "/move", request_json)
    assert count(first, "move_seconds_count") == 1
    assert count(second, "move_seconds_count") == 0


async def test_concurrent_moves_share_inference(
    make_client: Any, send: Any, request_json: Any, monkeypatch: Any
) -> None:
    backend = Held()
    use(monkeypatch, backend)
    client = await make_client(msgspec.structs.replace(FAST, mode="policy"))
    backend.gate.clear()
    tasks = [asyncio.create_task(send(client, "/move", request_json)) for _ in range(9)]
    await asyncio.sleep(0.1)
    backend.gate.set()
    assert all(status == 200 for status, _ in await asyncio.gather(*tasks))
    assert count(client, "policy_batch_size_sum") == 9
    assert count(client, "policy_batch_size_count") == 2


async def test_closing_leaves_no_thread(make_client: Any, send: Any, request_json: Any) -> None:
    def ours() -> list[str]:
        names = [thread.name for thread in threading.enumerate()]
        return [name for name in names if name == "policy" or name.startswith("search-")]

    assert ours() == []
    client = await make_client()
    await send(client, "/move", request_json)
    assert len(ours()) == 3
    await client.engine.close()
    assert ours() == []
    assert (await send(client, "/move", request_json))[0] == 200


async def test_moves_that_may_end_together_keep_time_back(
    make_client: Any, send: Any, request_json: Any, monkeypatch: Any
) -> None:
    client = await make_client(msgspec.structs.replace(FAST, mode="policy"))
    left: list[float] = []
    choose = client.engine._choose
    gate = asyncio.Event()

    async def held(place: Any, game: str, deadline: float) -> Any:
        left.append(deadline - time.perf_counter())
        if len(left) == 40:
            gate.set()
        await gate.wait()
        return await choose(place, game, deadline)

    monkeypatch.setattr(client.engine, "_choose", held)
    request_json["game"]["timeout"] = 20_000

    async def ask(game: int) -> int:
        one = {**request_json, "game": {**request_json["game"], "id": f"g{game}"}}
        return int((await send(client, "/move", one))[0])

    assert set(await asyncio.gather(*(ask(game) for game in range(40)))) == {200}
    budget = 20 - 0.08 - 0.025
    assert all(seconds <= budget - n * ANSWER_EACH_S for n, seconds in enumerate(left))
    assert client.engine._moving == 0
