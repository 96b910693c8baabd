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
Floats = NDArray[np.float32]
Infer = Callable[[Row], tuple[Floats, Floats]]
Read = Callable[[Floats, Floats], Evaluation]
"""Makes an evaluation of the model's two answers for one position."""


def own_seat(policy: Floats, value: Floats) -> Evaluation:
    """Read a model that answers for one seat: logits `[4]` and a value `[]`."""
    return Evaluation(policy.tolist(), float(value))


class _Item(NamedTuple):
    row: Row
    read: Read
    future: "asyncio.Future[Evaluation]"
    at: float


class Batcher(Feed[_Item]):
    """Feeds one model from one event loop."""

    def __init__(
        self,
        infer: Infer,
        *,
        shapes: tuple[tuple[int, ...], tuple[int, ...]] = ((4,), ()),
        sizes: Sequence[int] = (1, 2, 4, 8),
        pad: bool = False,
        wait_s: float = 0.0,
        limit: int = 64,
        on_batch: Callable[[BatchReport], None] | None = None,
    ) -> None:
        """Start the thread.

        Args:
            infer: maps `[N, planes, rows, cols]` to two answers.
            shapes: of the two answers for one position; `[4]` and `[]` for logits and a value.
            sizes: rising batch sizes; the last is the most, and with `pad` a batch is filled up
                with zeros to the next of them.
            pad: see `sizes`.
            wait_s: longest wait of a first position for company.
            limit: positions that may wait.
            on_batch: called on the event loop after each call of `infer`.
        """
        self._infer, self._shapes = infer, shapes
        self._sizes = tuple(sizes)
        self._pad = pad
        self._wait_s = wait_s
        super().__init__("policy", limit=limit, on_batch=on_batch)

    def submit(self, row: Row, read: Read = own_seat) -> "asyncio.Future[Evaluation]":
        """Queue one observation `[planes, rows, cols]`; cancel the future to drop it.

        `read` is called in the model's thread.

        Raises:
            BatcherError: full or closed.
        """
        return self._ask(lambda future, at: _Item(row, read, future, at))

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
        if (policy.shape[1:], value.shape[1:]) != self._shapes or len(policy) != size:
            raise ValueError(f"model gave {policy.shape} and {value.shape} for {size} positions")
        answers = zip(items, policy[:count], value[:count], strict=True)
        return [item.read(*answer) for item, *answer in answers], count
