"""One pool of search threads for many games: fair, shrinking under load, never late."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from snakekit import core
from snakekit.runtime.config import ServerConfig
from snakekit.runtime.searching import HANDOVER_S, LEAST_S, SearchJob, SearchPool

FAST = ServerConfig(backend="random", mode="hybrid", budget_ms=250, table_mb=1, log_level="error")


class Told(SearchPool):
    """Searches take as long as they are given, on a clock of the test."""

    def __init__(self, workers: int, now: list[float], **options: Any) -> None:
        self.now = now
        self.given: list[tuple[str, float]] = []
        super().__init__(workers, table_mb=1, clock=lambda: now[0], **options)

    def _work(self) -> None:
        """The test takes the jobs itself."""

    def begin(self) -> SearchJob:
        """Take a job as a thread would, and let its time pass."""
        job = self._take()
        assert job is not None
        self._search(Pretended(self, job), job)  # type: ignore[arg-type]
        return job

    def run(self) -> str:
        """Do one job at once and return its game."""
        job = self.begin()
        self._deliver(job, None, None)
        return job.game


class Pretended:
    def __init__(self, pool: Told, job: SearchJob) -> None:
        self.pool, self.job = pool, job

    def search(self, *_: Any, budget_us: int, **__: Any) -> None:
        self.pool.given.append((self.job.game, budget_us / 1e6))
        self.pool.now[0] += budget_us / 1e6


@pytest.fixture
def make() -> Callable[..., Told]:
    return lambda workers, **options: Told(workers, [0.0], **options)


def board() -> core.State:
    return core.State.new_game(11, 11, ["a", "b"], 1)


def ask(pool: Told, games: str, deadline: float = 0.4, budget_s: float = 9.0) -> list[SearchJob]:
    return [
        pool.start(board(), 0, game=game, deadline=deadline, budget_s=budget_s) for game in games
    ]


async def test_games_take_turns(make: Any) -> None:
    pool = make(1)
    ask(pool, "aaaabbc", deadline=1000)
    assert "".join(pool.run() for _ in range(7)) == "abcabaa"


async def test_each_game_has_the_same_share_of_one_thread(make: Any) -> None:
    pool = make(1)
    ask(pool, "aaab")
    for _ in range(4):
        pool.run()
    spent: Counter[str] = Counter()
    for game, seconds in pool.given:
        spent[game] += seconds
    # Without turns by game, b would have a quarter.
    assert spent["b"] / sum(spent.values()) == pytest.approx(0.5, abs=0.12)
    assert sum(spent.values()) <= 0.4 - HANDOVER_S
    assert pool.now[0] <= 0.4


@pytest.mark.parametrize(("workers", "games"), [(1, 4), (2, 8), (4, 5), (2, 2)])
async def test_equal_games_have_equal_time(make: Any, workers: int, games: int) -> None:
    """With as many threads as in production, each on a clock of its own."""
    pool = make(workers)
    ask(pool, "abcdefgh"[:games])
    running: list[tuple[float, SearchJob]] = []
    left, ends = games, [0.0]
    while left or running:
        while left and len(running) < workers:
            pool.now[0] = ends[-1]
            job = pool.begin()
            running.append((pool.now[0], job))
            left -= 1
        running.sort(key=lambda one: one[0])
        end, job = running.pop(0)
        pool._deliver(job, None, None)
        ends.append(end)
    times = [seconds for _, seconds in pool.given]
    assert len(times) == games
    assert max(ends) <= 0.4
    assert min(times) > 0.6 * max(times)
    # Less than the exact share where threads fall free one after the other.
    assert min(times) > 0.7 * (0.4 / -(-games // workers) - HANDOVER_S)


async def test_a_lone_search_has_all_its_budget(make: Any) -> None:
    pool = make(2)
    ask(pool, "a", budget_s=0.25)
    pool.run()
    assert pool.given == [("a", 0.25)]


async def test_the_budget_shrinks_then_the_search_is_skipped(make: Any) -> None:
    pool = make(1, limit=500)
    ask(pool, "".join(chr(300 + i) for i in range(400)), deadline=0.05)
    for _ in range(400):
        pool.run()
    # 48 ms for 400 games: most have none, so that some have as much as is of use.
    assert 40 <= len(pool.given) <= 48
    assert min(seconds for _, seconds in pool.given) >= LEAST_S
    pool.given.clear()
    ask(pool, "abcdefgh", deadline=pool.now[0] + 0.05)
    for _ in range(8):
        pool.run()
    assert len(pool.given) == 8
    assert all(0.003 < seconds < 0.008 for _, seconds in pool.given)


async def test_cancelled_searches_have_no_share(make: Any) -> None:
    pool = make(1, limit=4)
    jobs = ask(pool, "abcde")
    for job in jobs[1:]:
        job.cancel()
    assert len(pool._open) == 1
    for job in ask(pool, "fgh"):
        job.cancel()
    assert pool._waiting.keys() == {"a"}
    pool.run()
    assert pool.given[0][1] == pytest.approx(0.4 - HANDOVER_S, abs=1e-4)
    assert pool._open == set()
    assert not pool._seats


async def test_sixteen_games_at_once_are_all_in_time(
    make_client: Any, send: Any, request_json: Any
) -> None:
    """The ladder in one piece: many games, little time, every answer within the timeout."""
    client = await make_client(FAST, search_workers=1, queue_limit=4, budget_ms=10.0)
    request_json["game"]["timeout"] = 3000

    async def ask(game: int) -> tuple[int, float]:
        one = {**request_json, "game": {**request_json["game"], "id": f"g{game}"}}
        begun = time.perf_counter()
        status, _ = await send(client, "/move", one)
        return status, time.perf_counter() - begun

    answers = await asyncio.gather(*(ask(game) for game in range(16)))
    assert all(status == 200 for status, _ in answers)
    assert max(seconds for _, seconds in answers) < 3
    value = client.engine.metrics.registry.get_sample_value
    assert value("snakekit_fallbacks_total", {"stage": "search", "cause": "busy"}) == 11
    assert value("snakekit_search_seconds_count") == 5
    assert value("snakekit_deadline_misses_total") == 0
