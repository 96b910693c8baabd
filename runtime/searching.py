"""A bounded pool of search threads, each with a `core.Searcher` and its table.

A job gets what is left until its deadline when a thread takes it, not when it was queued.
"""

import asyncio
import contextlib
import math
import os
import queue
import sys
import threading
import time
from collections.abc import Callable

from snakekit import core

HANDOVER_S = 0.002
"""Kept back from a deadline for waking the thread and bringing the result home."""
LEAST_S = 0.001
"""A search is not worth starting with less time."""
CLOSE_S = 5.0
NICENESS = 5
"""Of the search threads. On a busy machine with timeouts of 33 ms it saves most late answers."""


class SearchError(RuntimeError):
    """All threads are busy and the queue is full, or the pool is closed."""


class SearchJob:
    """One search that has been asked for."""

    def __init__(
        self,
        state: core.State,
        seat: int,
        deadline: float,
        budget_s: float,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.state = state
        self.seat = seat
        self.deadline = deadline
        self.budget_s = budget_s
        self.loop = loop
        self.future: asyncio.Future[core.SearchResult | None] = loop.create_future()
        """The result; None if no time was left when a thread came free."""
        self.lock = threading.Lock()
        self.searcher: core.Searcher | None = None
        self.cancelled = False

    def cancel(self) -> None:
        """Stop the search within a millisecond, or keep it from starting."""
        with self.lock:
            self.cancelled = True
            if self.searcher is not None:
                self.searcher.cancel()
        self.future.cancel()


def _yield_to_others() -> None:
    """Make the calling thread less urgent than the event loop, which has to answer in time."""
    # Elsewhere niceness belongs to the process, and a thread's number may name another one.
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


class SearchPool:
    """Threads that search; made and used on one event loop."""

    def __init__(
        self,
        workers: int,
        *,
        table_mb: int = 16,
        limit: int = 64,
        max_depth: int = 64,
        proof: str = "sound",
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Start the threads.

        Args:
            workers: searches at the same time.
            table_mb: transposition table of each, MiB.
            limit: searches that may wait.
            max_depth: deepest search, turns.
            proof: `sound` or `article`.
            clock: the clock of deadlines, seconds.
        """
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[SearchJob | None] = queue.SimpleQueue()
        self._limit = limit + workers
        self._open: set[SearchJob] = set()
        self._closed = False
        self._table_mb, self._max_depth, self._proof = table_mb, max_depth, proof
        self._clock = clock
        self._threads = [
            threading.Thread(target=self._work, name=f"search-{index}", daemon=True)
            for index in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def start(self, state: core.State, seat: int, *, deadline: float, budget_s: float) -> SearchJob:
        """Queue a search that ends by `deadline` (clock seconds) and takes at most `budget_s`.

        Raises:
            SearchError: full or closed.
        """
        if self._closed:
            raise SearchError("the search pool is closed")
        if len(self._open) >= self._limit:
            raise SearchError(f"{self._limit} searches run or wait already")
        job = SearchJob(state, seat, deadline, budget_s, self._loop)
        self._open.add(job)
        self._queue.put(job)
        return job

    async def close(self) -> None:
        """Cancel all searches and join the threads. Safe to call twice."""
        self._closed = True
        for job in list(self._open):
            job.cancel()
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            await asyncio.to_thread(thread.join, CLOSE_S)

    def _work(self) -> None:
        _yield_to_others()
        searcher = core.Searcher(self._table_mb)
        while (job := self._queue.get()) is not None:
            result: core.SearchResult | None = None
            error: Exception | None = None
            try:
                result = self._search(searcher, job)
            except Exception as caught:
                error = caught
            try:
                self._loop.call_soon_threadsafe(self._deliver, job, result, error)
            except RuntimeError:  # the loop has been closed, nobody waits any more
                return

    def _search(self, searcher: core.Searcher, job: SearchJob) -> core.SearchResult | None:
        left = job.deadline - self._clock() - HANDOVER_S
        # More searches than threads share the time, so that the last one gets some as well.
        rounds = math.ceil(len(self._open) / len(self._threads))
        left = min(left / max(rounds, 1), job.budget_s)
        with job.lock:
            if job.cancelled or left < LEAST_S:
                return None
            job.searcher = searcher
        try:
            return searcher.search(
                job.state,
                job.seat,
                budget_us=int(left * 1e6),
                max_depth=self._max_depth,
                proof=self._proof,
            )
        finally:
            # A late cancel must not hit the next search of this thread.
            with job.lock:
                job.searcher = None

    def _deliver(
        self, job: SearchJob, result: core.SearchResult | None, error: Exception | None
    ) -> None:
        self._open.discard(job)
        if job.future.done():
            return
        if error is not None:
            job.future.set_exception(error)
        else:
            job.future.set_result(result)
