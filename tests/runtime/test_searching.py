"""The search pool: deadlines kept, cancelled searches stop, nothing waits for ever."""

import asyncio
import os
import sys
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from snakekit import core
from snakekit.runtime.backends import BackendError
from snakekit.runtime.config import ServerConfig
from snakekit.runtime.cores import NICENESS
from snakekit.runtime.engine import Engine
from snakekit.runtime.searching import SearchError, SearchPool


@pytest.fixture
async def pool() -> AsyncIterator[SearchPool]:
    made = SearchPool(1, table_mb=1, limit=2)
    yield made
    await made.close()


def board() -> core.State:
    return core.State.new_game(11, 11, ["a", "b", "c", "d"], 1)


def now() -> float:
    return time.perf_counter()


async def test_gives_a_result_within_the_budget(pool: SearchPool) -> None:
    job = pool.start(board(), 0, deadline=now() + 5, budget_s=0.05)
    started = now()
    result = await asyncio.wait_for(job.future, 2)
    assert result is not None
    assert 0 <= result.best < 4
    assert now() - started < 0.5


async def test_threads_of_one_search_and_drawn_moves() -> None:
    """In the corner the longer snake meets either way out half of the time."""
    corner = core.Snake("a", 100, [(0, 0)] * 3)
    rival = core.Snake("b", 100, [(1, 1), (2, 1), (3, 1), (4, 1), (5, 1)])
    state = core.State(7, 7, [corner, rival])
    pool = SearchPool(1, table_mb=1, max_depth=1, threads=2, sample=True)
    moves: dict[str, set[int]] = {}
    for number in range(2):
        for game in "abcdefgh":
            job = pool.start(state, 0, game=game, deadline=now() + 5, budget_s=5)
            result = await asyncio.wait_for(job.future, 5)
            assert result is not None
            moves.setdefault(game, set()).add(result.best)
        assert number or len(set.union(*moves.values())) == 2
    assert all(len(found) == 1 for found in moves.values())
    await pool.close()


class Recording:
    """In a searcher's place: notes the priors it is given and searches until it is cancelled."""

    def __init__(self, table_mb: int) -> None:
        self.priors: list[list[float] | None] = []
        self.begun, self.ended = threading.Event(), threading.Event()
        made.append(self)
        ready.set()

    def search(self, state: core.State, seat: int, *, priors: list[float] | None, **_: Any) -> None:
        self.priors.append(priors)
        self.begun.set()
        self.ended.wait(5)

    def prefer(self, priors: list[float]) -> None:
        self.priors.append(priors)

    def cancel(self) -> None:
        self.ended.set()


made: list[Recording] = []
ready = threading.Event()


async def test_priors_reach_a_search_that_waits_and_one_that_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(core, "Searcher", Recording)
    pool = SearchPool(1)
    first = pool.start(board(), 0, deadline=now() + 30, budget_s=30)
    second = pool.start(board(), 1, deadline=now() + 30, budget_s=30)
    second.prefer([0.4, 0.3, 0.2, 0.1])
    assert await asyncio.to_thread(ready.wait, 5)
    searcher = made[-1]
    assert await asyncio.to_thread(searcher.begun.wait, 5)
    first.prefer([1, 0, 0, 0])
    assert searcher.priors == [None, [1, 0, 0, 0]]
    first.cancel()
    await asyncio.wait_for(second.future, 5)
    assert searcher.priors[2:] == [[0.4, 0.3, 0.2, 0.1]]
    second.prefer([0, 1, 0, 0])  # it is over
    assert len(searcher.priors) == 3
    await pool.close()


async def test_keeps_the_deadline_when_it_comes_first(pool: SearchPool) -> None:
    started = now()
    job = pool.start(board(), 0, deadline=started + 0.05, budget_s=5)
    await asyncio.wait_for(job.future, 2)
    assert now() - started < 0.5


async def test_cancel_frees_the_thread(pool: SearchPool) -> None:
    job = pool.start(board(), 0, deadline=now() + 30, budget_s=30)
    await asyncio.sleep(0.05)
    started = now()
    job.cancel()
    following = pool.start(board(), 1, deadline=now() + 30, budget_s=0.02)
    result = await asyncio.wait_for(following.future, 5)
    assert result is not None
    assert now() - started < 2
    assert job.future.cancelled()


async def test_cancelled_before_its_turn_never_runs(pool: SearchPool) -> None:
    running = pool.start(board(), 0, deadline=now() + 30, budget_s=0.1)
    queued = pool.start(board(), 1, deadline=now() + 30, budget_s=30)
    queued.cancel()
    await asyncio.wait_for(running.future, 5)
    last = pool.start(board(), 1, deadline=now() + 30, budget_s=0.01)
    await asyncio.wait_for(last.future, 5)


async def test_no_time_left_gives_none(pool: SearchPool) -> None:
    job = pool.start(board(), 0, deadline=now() - 1, budget_s=1)
    assert await asyncio.wait_for(job.future, 2) is None


async def test_searches_that_share_a_thread_share_the_time(pool: SearchPool) -> None:
    deadline = now() + 0.4
    jobs = [pool.start(board(), seat, deadline=deadline, budget_s=5) for seat in range(3)]
    results = await asyncio.wait_for(asyncio.gather(*(job.future for job in jobs)), 5)
    assert all(result is not None for result in results)
    assert now() < deadline + 0.2


async def test_bounded(pool: SearchPool) -> None:
    jobs = [pool.start(board(), 0, deadline=now() + 30, budget_s=30) for _ in range(3)]
    with pytest.raises(SearchError, match="3 searches"):
        pool.start(board(), 0, deadline=now() + 30, budget_s=30)
    for job in jobs:
        job.cancel()


async def test_an_error_reaches_its_caller_only(
    pool: SearchPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    state: Any = object()
    job = pool.start(state, 0, deadline=now() + 5, budget_s=0.01)
    with pytest.raises(TypeError):
        await asyncio.wait_for(job.future, 2)
    following = pool.start(board(), 1, deadline=now() + 5, budget_s=0.02)
    assert await asyncio.wait_for(following.future, 5) is not None


async def test_no_memory_for_a_table_is_said_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none_left(table_mb: int) -> None:
        raise MemoryError("std::bad_alloc")

    monkeypatch.setattr(core, "Searcher", none_left)
    engine = Engine(ServerConfig(backend="random", table_mb=4096, search_workers=2))
    with pytest.raises(
        BackendError, match=r"^table_mb: no memory for 2 tables of 4096 MiB; expected"
    ):
        await engine.open()
    assert not engine.ready
    await engine.close()


async def test_close_stops_everything() -> None:
    pool = SearchPool(2, table_mb=1)
    jobs = [pool.start(board(), 0, deadline=now() + 60, budget_s=60) for _ in range(3)]
    started = now()
    await pool.close()
    assert now() - started < 2
    assert all(job.future.done() for job in jobs)
    with pytest.raises(SearchError, match="closed"):
        pool.start(board(), 0, deadline=now() + 1, budget_s=1)


@pytest.mark.skipif(sys.platform != "linux", reason="niceness of threads is a Linux feature")
async def test_search_threads_give_way_to_the_event_loop(pool: SearchPool) -> None:
    job = pool.start(board(), 0, deadline=now() + 5, budget_s=0.01)
    await asyncio.wait_for(job.future, 2)
    (thread,) = [t for t in threading.enumerate() if t.name == "search-0"]
    assert thread.native_id is not None
    assert os.getpriority(os.PRIO_PROCESS, thread.native_id) >= NICENESS
