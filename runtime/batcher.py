"""Micro-batching: positions that wait at the same time share one inference call.

A lone position waits for nothing unless a wait is configured.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snakekit.runtime.feed import BatcherError, BatchReport, Evaluation, Feed

__all__ = ["BatchReport", "Batcher", "BatcherError", "Evaluation"]

Row = NDArray[np.uint8]
Infer = Callable[[Row], tuple[NDArray[np.float32], NDArray[np.float32]]]


class _Item(NamedTuple):
    row: Row
    future: "asyncio.Future[Evaluation]"
    at: float


class Batcher(Feed[_Item]):
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
        super().__init__("policy", limit=limit, on_batch=on_batch)

    def submit(self, row: Row) -> "asyncio.Future[Evaluation]":
        """Queue one observation `[planes, rows, cols]`; cancel the future to drop it.

        Raises:
            BatcherError: full or closed.
        """
        return self._ask(lambda future, at: _Item(row, future, at))

    def _linger(self) -> None:
        if not self._wait_s:
            return
        end = self._queue[0].at + self._wait_s
        self._wake.wait_for(
            lambda: self._closed or len(self._queue) >= self._sizes[-1],
            max(0.0, end - time.perf_counter()),
        )

    def _pick(self) -> list[_Item]:
        """Take positions of one shape."""
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

    def _answer(self, items: list[_Item]) -> tuple[list[Evaluation], int]:
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
        return [Evaluation(*pair) for pair in zip(logits, values, strict=True)], count
