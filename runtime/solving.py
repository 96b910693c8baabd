"""A thread that solves boards for the server."""

import asyncio
import random
import time
from collections.abc import Callable
from typing import NamedTuple

from snakekit import core
from snakekit.runtime.equilibrium import Equilibrium, own_logits
from snakekit.runtime.feed import BatchReport, Evaluation, Feed


class _Job(NamedTuple):
    state: core.State
    seat: int
    deadline: float
    future: "asyncio.Future[Evaluation]"
    at: float


class EquilibriumWorker(Feed[_Job]):
    """A thread that solves one board after the other; used like a `Batcher`, on one event loop."""

    def __init__(
        self,
        solver: Equilibrium,
        *,
        temperature: float,
        limit: int,
        on_batch: Callable[[BatchReport], None] | None = None,
    ) -> None:
        """Start the thread.

        Args:
            solver: the model; this thread's alone from now on.
            temperature: see `own_logits`.
            limit: boards that may wait.
            on_batch: called on the event loop after each board; the size is that of its leaves.
        """
        self._solver = solver
        self._temperature, self._noise = temperature, random.Random()
        super().__init__("equilibrium", limit=limit, on_batch=on_batch)

    def submit(self, state: core.State, seat: int, deadline: float) -> "asyncio.Future[Evaluation]":
        """Queue a board for a seat; cancel the future to drop it.

        Raises:
            BatcherError: full or closed.
        """
        return self._ask(lambda future, at: _Job(state, seat, deadline, future, at))

    def _pick(self) -> list[_Job]:
        while self._queue:
            job = self._queue.popleft()
            if not job.future.done():
                return [job]
        return []

    def _answer(self, items: list[_Job]) -> tuple[list[Evaluation], int]:
        job = items[0]
        now = time.perf_counter()
        # More boards than one share the time, so that the last one gets some as well.
        share = (job.deadline - now) / (1 + len(self._queue))
        solution = self._solver.solve(job.state, now + share)
        answer = own_logits(solution, job.state, job.seat, self._temperature, self._noise)
        return [answer], max(solution.leaves, 1)
