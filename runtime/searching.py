"""A bounded pool of search threads, each with a `core.Searcher` and its table.

A job gets what is left until its deadline when a thread takes it, not when it was queued. Games
take turns, and each has the same share of the threads' time, however many seats it asks for.
"""

import asyncio
import contextlib
import math
import threading
import time
import zlib
from collections import Counter, deque
from collections.abc import Callable

from snakekit import core
from snakekit.runtime.cores import yield_to_others

HANDOVER_S = 0.002
"""Kept back from a deadline for waking the thread and bringing the result home."""
LEAST_S = 0.001
"""A search is not worth starting with less time."""
CLOSE_S = 2.0


class SearchError(RuntimeError):
    """All threads are busy and the queue is full, the pool is closed, or a table cannot be had."""


class SearchJob:
    """One search that has been asked for."""

    def __init__(
        self,
        state: core.State,
        seat: int,
        game: str,
        deadline: float,
        budget_s: float,
        pool: "SearchPool",
    ) -> None:
        self.game = game
        self.state = state
        self.seat = seat
        self.deadline = deadline
        self.budget_s = budget_s
        self._pool = pool
        self.future: asyncio.Future[core.SearchResult | None] = pool.loop.create_future()
        """The result; None if no time was left when a thread came free."""
        self.lock = threading.Lock()
        self.searcher: core.Searcher | None = None
        self.cancelled = False
        self.priors: list[float] | None = None

    def prefer(self, priors: list[float]) -> None:
        """Tell the policy's view of the four moves, 0..1, however far the search has come.

        They decide between moves that the search holds equal.
        """
        with self.lock:
            self.priors = priors
            if self.searcher is not None:
                self.searcher.prefer(priors)

    def cancel(self) -> None:
        """Stop the search within a millisecond, or keep it from starting."""
        with self.lock:
            self.cancelled = True
            if self.searcher is not None:
                self.searcher.cancel()
        self.future.cancel()
        self._pool.forget(self)


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
        threads: int = 1,
        sample: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Start the threads.

        Args:
            workers: searches at the same time.
            table_mb: transposition table of each, MiB.
            limit: searches that may wait.
            max_depth: deepest search, turns.
            proof: `sound` or `article`.
            threads: of each search.
            sample: draw from a duel's mixed strategy, the same for a game's turn whenever asked.
            clock: the clock of deadlines, seconds.
        """
        self.loop = asyncio.get_running_loop()
        self._wake = threading.Condition()
        self._waiting: dict[str, deque[SearchJob]] = {}
        """By game; the game first in it is the next to have a turn."""
        self._open: set[SearchJob] = set()
        self._seats: Counter[str] = Counter()
        """Open jobs of each game."""
        self._limit = limit + workers
        self._closed = False
        self._table_mb, self._max_depth, self._proof = table_mb, max_depth, proof
        self._threads_each, self._sample = threads, sample
        self._clock = clock
        self._tables = 0
        self._ready: asyncio.Future[None] = self.loop.create_future()
        self._threads = [
            threading.Thread(target=self._work, name=f"search-{index}", daemon=True)
            for index in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def start(
        self, state: core.State, seat: int, *, game: str = "", deadline: float, budget_s: float
    ) -> SearchJob:
        """Queue a search that ends by `deadline` (clock seconds) and takes at most `budget_s`.

        Args:
            state: the board.
            seat: who moves.
            game: jobs of one game share what is one game's part of the time.
            deadline: clock seconds.
            budget_s: seconds.

        Raises:
            SearchError: full or closed.
        """
        if self._closed:
            raise SearchError("the search pool is closed")
        if len(self._open) >= self._limit:
            raise SearchError(f"{self._limit} searches run or wait already")
        job = SearchJob(state, seat, game, deadline, budget_s, self)
        with self._wake:
            self._open.add(job)
            self._seats[game] += 1
            self._waiting.setdefault(game, deque()).append(job)
            self._wake.notify()
        return job

    def forget(self, job: SearchJob) -> None:
        """Do not count a job any more that is done or cancelled. Safe to call twice."""
        with self._wake:
            if job not in self._open:
                return
            self._open.discard(job)
            self._seats[job.game] -= 1
            if not self._seats[job.game]:
                del self._seats[job.game]
            jobs = self._waiting.get(job.game)
            if jobs is not None and job in jobs:
                jobs.remove(job)
                if not jobs:
                    del self._waiting[job.game]

    async def ready(self) -> None:
        """Wait until every thread has its table.

        Raises:
            SearchError: there is no memory for it.
        """
        await asyncio.shield(self._ready)

    def _begun(self, error: Exception | None) -> None:
        self._tables += 1
        if self._ready.done():
            return
        if error is not None:
            text = f"table_mb: no memory for {len(self._threads)} tables of {self._table_mb} MiB"
            self._ready.set_exception(SearchError(f"{text}; expected less, or fewer workers"))
        elif self._tables == len(self._threads):
            self._ready.set_result(None)

    async def close(self) -> None:
        """Cancel all searches and join the threads. Safe to call twice."""
        for job in list(self._open):
            job.cancel()
        with self._wake:
            self._closed = True
            self._wake.notify_all()
        for thread in self._threads:
            await asyncio.to_thread(thread.join, CLOSE_S)

    def _take(self) -> SearchJob | None:
        """Wait for the job whose game has its turn; None means closed."""
        with self._wake:
            while not self._waiting and not self._closed:
                self._wake.wait()
            if self._closed:
                return None
            game = next(iter(self._waiting))
            jobs = self._waiting.pop(game)
            job = jobs.popleft()
            if jobs:
                self._waiting[game] = jobs
            return job

    def _rounds(self, job: SearchJob) -> int:
        """Return how many jobs like this one a thread has to do within the same time."""
        with self._wake:
            shares = len(self._seats) * self._seats[job.game]
        return max(1, math.ceil(shares / len(self._threads)))

    def _work(self) -> None:
        yield_to_others()
        try:
            searcher = core.Searcher(self._table_mb)
        except MemoryError as lacking:
            self._tell(self._begun, lacking)
            return
        self._tell(self._begun, None)
        while (job := self._take()) is not None:
            result: core.SearchResult | None = None
            error: Exception | None = None
            try:
                result = self._search(searcher, job)
            except Exception as caught:
                error = caught
            self._tell(self._deliver, job, result, error)

    def _tell(self, what: Callable[..., None], *arguments: object) -> None:
        # Once the loop has been closed, nobody waits any more.
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(what, *arguments)

    def _search(self, searcher: core.Searcher, job: SearchJob) -> core.SearchResult | None:
        left = job.deadline - self._clock() - HANDOVER_S
        left = min(left / self._rounds(job), job.budget_s)
        with job.lock:
            if job.cancelled or left < LEAST_S:
                return None
            job.searcher = searcher
            priors = job.priors
        try:
            return searcher.search(
                job.state,
                job.seat,
                budget_us=int(left * 1e6),
                max_depth=self._max_depth,
                proof=self._proof,
                priors=priors,
                threads=self._threads_each,
                sample=self._draw(job) if self._sample else None,
                # A turn's time cannot be saved for a later one.
                optimum=1.0,
            )
        finally:
            # A late cancel must not hit the next search of this thread.
            with job.lock:
                job.searcher = None

    @staticmethod
    def _draw(job: SearchJob) -> int:
        return zlib.crc32(f"{job.game} {job.state.turn} {job.seat}".encode())

    def _deliver(
        self, job: SearchJob, result: core.SearchResult | None, error: Exception | None
    ) -> None:
        self.forget(job)
        if job.future.done():
            return
        if error is not None:
            job.future.set_exception(error)
        else:
            job.future.set_result(result)
