"""Micro-batching: positions that wait at the same time share one inference call.

One thread of its own runs the model, so the event loop never waits for it. A lone position
waits for nothing unless a wait is configured.
"""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

CLOSE_S = 2.0

Row = NDArray[np.uint8]
Infer = Callable[[Row], tuple[NDArray[np.float32], NDArray[np.float32]]]


class BatcherError(RuntimeError):
    """The queue is full or the batcher is closed."""


class Evaluation(NamedTuple):
    """The model's four logits and value for one position."""

    logits: list[float]
    value: float


class BatchReport(NamedTuple):
    """Figures of one inference call."""

    size: int
    seconds: float
    queued_seconds: list[float]


class _Item(NamedTuple):
    row: Row
    future: "asyncio.Future[Evaluation]"
    at: float


class Batcher:
    """Feeds one model from one event loop."""

    def __init__(
        self,
        infer: Infer,
        *,
        sizes: Sequence[int] = (1, 2, 4, 8),
        pad: bool = False,
        wait_s: float = 0.0,
        limit: int = 64,
        on_batch: Callable[[BatchReport], None] | None = None,
    ) -> None:
        """Start the thread.

        Args:
            infer: maps `[N, planes, rows, cols]` to logits `[N, 4]` and values `[N]`.
            sizes: rising batch sizes; the last is the most, and with `pad` a batch is filled up
                with zeros to the next of them.
            pad: see `sizes`.
            wait_s: longest wait of a first position for company.
            limit: positions that may wait.
            on_batch: called on the event loop after each call of `infer`.
        """
        self._infer = infer
        self._sizes = tuple(sizes)
        self._pad = pad
        self._wait_s = wait_s
        self._limit = limit
        self._on_batch = on_batch
        self._loop = asyncio.get_running_loop()
        self._queue: deque[_Item] = deque()
        self._wake = threading.Condition()
        self._closed = False
        self._started: float | None = None
        self._thread = threading.Thread(target=self._work, name="policy", daemon=True)
        self._thread.start()

    def submit(self, row: Row) -> "asyncio.Future[Evaluation]":
        """Queue one observation `[planes, rows, cols]`; cancel the future to drop it.

        Raises:
            BatcherError: full or closed.
        """
        future: asyncio.Future[Evaluation] = self._loop.create_future()
        with self._wake:
            if self._closed:
                raise BatcherError("the batcher is closed")
            if len(self._queue) >= self._limit:
                self._queue = deque(i for i in self._queue if not i.future.done())
            if len(self._queue) >= self._limit:
                raise BatcherError(f"{self._limit} positions wait already")
            self._queue.append(_Item(row, future, time.perf_counter()))
            self._wake.notify()
        return future

    @property
    def running_s(self) -> float:
        """How long the running call of `infer` takes by now; 0 without one."""
        started = self._started
        return 0.0 if started is None else time.perf_counter() - started

    async def close(self, *, drain: bool = False) -> None:
        """Take no more positions and stop after the running call. Safe to call twice.

        What still waits is cancelled, or with `drain` evaluated first. A call that hangs is left
        behind after `CLOSE_S`.
        """
        waiting: deque[_Item] = deque()
        with self._wake:
            self._closed = True
            if not drain:
                waiting, self._queue = self._queue, waiting
            self._wake.notify()
        for item in waiting:
            item.future.cancel()
        await asyncio.to_thread(self._thread.join, CLOSE_S)

    def _work(self) -> None:
        while True:
            items = self._take()
            if not items:
                return
            self._started = started = time.perf_counter()
            results: list[Evaluation] = []
            error: Exception | None = None
            try:
                results = self._run(items)
            except Exception as caught:
                error = caught
            self._started = None
            seconds = time.perf_counter() - started
            report = BatchReport(len(items), seconds, [started - item.at for item in items])
            try:
                self._loop.call_soon_threadsafe(self._deliver, items, results, error, report)
            except RuntimeError:  # the loop has been closed, nobody waits any more
                return

    def _take(self) -> list[_Item]:
        """Wait for positions and take those of one shape; nothing means closed."""
        with self._wake:
            while True:
                while not self._queue and not self._closed:
                    self._wake.wait()
                if self._wait_s and not self._closed:
                    end = self._queue[0].at + self._wait_s
                    self._wake.wait_for(
                        lambda: self._closed or len(self._queue) >= self._sizes[-1],
                        max(0.0, end - time.perf_counter()),
                    )
                items = self._pick()
                if items or self._closed:
                    return items

    def _pick(self) -> list[_Item]:
        items: list[_Item] = []
        rest: deque[_Item] = deque()
        for item in self._queue:
            if item.future.done():
                continue
            fits = not items or item.row.shape == items[0].row.shape
            if fits and len(items) < self._sizes[-1]:
                items.append(item)
            else:
                rest.append(item)
        self._queue = rest
        return items

    def _run(self, items: list[_Item]) -> list[Evaluation]:
        count = len(items)
        size = next(s for s in self._sizes if s >= count) if self._pad else count
        if size == 1:
            batch = items[0].row[None]
        else:
            batch = np.zeros((size, *items[0].row.shape), np.uint8)
            for index, item in enumerate(items):
                batch[index] = item.row
        policy, value = self._infer(batch)
        if policy.shape != (size, 4) or value.shape != (size,):
            raise ValueError(f"model gave {policy.shape} and {value.shape} for {size} positions")
        logits, values = policy[:count].tolist(), value[:count].tolist()
        return [Evaluation(*pair) for pair in zip(logits, values, strict=True)]

    def _deliver(
        self,
        items: list[_Item],
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
