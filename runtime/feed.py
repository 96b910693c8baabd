"""A thread of its own that answers what one event loop asks: the loop never waits for a model."""

import asyncio
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

CLOSE_S = 2.0


class BatcherError(RuntimeError):
    """The queue is full or the thread is closed."""


class Stage(NamedTuple):
    """How an equilibrium was found."""

    name: str
    """Which game was solved: one of `metrics.EQUILIBRIA`."""
    plies: int
    """Turns looked ahead."""
    leaves: int
    """Boards that the model judged."""
    gap: float
    """NashConv among the actions that took part."""
    rounds: int
    """Looks of the double oracle for a better action."""
    added: int
    """Actions that it found."""
    seconds: float


class Expected(NamedTuple):
    """What an equilibrium expects of one seat."""

    seat: int
    policy: list[float]
    """Four probabilities."""
    utility: float
    """Chance to win plus the worth of a draw."""


class Evaluation(NamedTuple):
    """A model's four logits and value for one position, and the equilibrium they are from."""

    logits: list[float]
    value: float
    stage: Stage | None = None
    seats: Sequence[Expected] = ()
    """All living seats, of a model that answers for all."""


class BatchReport(NamedTuple):
    """Figures of one inference call, or of one equilibrium."""

    size: int
    seconds: float
    queued_seconds: list[float]
    stage: Stage | None = None


class Question(Protocol):
    """What waits for an answer."""

    @property
    def future(self) -> "asyncio.Future[Evaluation]":
        """Where the answer goes."""

    @property
    def at(self) -> float:
        """When it was asked, `time.perf_counter()`."""


Item = TypeVar("Item", bound=Question)


class Feed(ABC, Generic[Item]):
    """A bounded queue and the thread that empties it; made and used on one event loop."""

    def __init__(
        self, name: str, *, limit: int, on_batch: Callable[[BatchReport], None] | None
    ) -> None:
        """Start the thread.

        Args:
            name: of the thread.
            limit: questions that may wait.
            on_batch: called on the event loop after each answer.
        """
        self._limit, self._on_batch = limit, on_batch
        self._loop = asyncio.get_running_loop()
        self._queue: deque[Item] = deque()
        self._wake = threading.Condition()
        self._closed = False
        self._started: float | None = None
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    @abstractmethod
    def _pick(self) -> list[Item]:
        """Take what is answered next out of the queue, without those already done."""

    @abstractmethod
    def _answer(self, items: list[Item]) -> tuple[list[Evaluation], int]:
        """Return an answer for each item, and the size of the work for the report."""

    def _linger(self) -> None:
        """Wait for company of the first in the queue, the lock being held."""

    def _ask(self, make: Callable[[Any, float], Item]) -> "asyncio.Future[Evaluation]":
        """Queue what `make` returns for a future and the time.

        Raises:
            BatcherError: full or closed.
        """
        future: asyncio.Future[Evaluation] = self._loop.create_future()
        with self._wake:
            if self._closed:
                raise BatcherError("the model's thread is closed")
            if len(self._queue) >= self._limit:
                self._queue = deque(i for i in self._queue if not i.future.done())
            if len(self._queue) >= self._limit:
                raise BatcherError(f"{self._limit} positions wait already")
            self._queue.append(make(future, time.perf_counter()))
            self._wake.notify()
        return future

    @property
    def running_s(self) -> float:
        """How long the work in hand takes by now; 0 without any."""
        started = self._started
        return 0.0 if started is None else time.perf_counter() - started

    async def close(self, *, drain: bool = False) -> None:
        """Take no more and stop after the work in hand. Safe to call twice.

        What still waits is cancelled, or with `drain` answered first. Work that hangs is left
        behind after `CLOSE_S`.
        """
        waiting: deque[Item] = deque()
        with self._wake:
            self._closed = True
            if not drain:
                waiting, self._queue = self._queue, waiting
            self._wake.notify()
        for item in waiting:
            item.future.cancel()
        await asyncio.to_thread(self._thread.join, CLOSE_S)

    def _take(self) -> list[Item]:
        """Wait for questions and take some; nothing means closed."""
        with self._wake:
            while True:
                while not self._queue and not self._closed:
                    self._wake.wait()
                if self._queue and not self._closed:
                    self._linger()
                items = self._pick()
                if items or self._closed:
                    return items

    def _work(self) -> None:
        while items := self._take():
            self._started = started = time.perf_counter()
            results: list[Evaluation] = []
            size = len(items)
            error: Exception | None = None
            try:
                results, size = self._answer(items)
            except Exception as caught:
                error = caught
            self._started = None
            report = BatchReport(
                size,
                time.perf_counter() - started,
                [started - item.at for item in items],
                results[0].stage if results else None,
            )
            try:
                self._loop.call_soon_threadsafe(self._deliver, items, results, error, report)
            except RuntimeError:  # the loop has been closed, nobody waits any more
                return

    def _deliver(
        self,
        items: list[Item],
        results: list[Evaluation],
        error: Exception | None,
        report: BatchReport,
    ) -> None:
        for index, item in enumerate(items):
            if item.future.done():
                continue
            if error is not None:
                item.future.set_exception(error)
            else:
                item.future.set_result(results[index])
        if self._on_batch is not None:
            self._on_batch(report)
