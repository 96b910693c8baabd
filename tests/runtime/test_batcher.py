"""The micro-batcher: rows are never mixed, failures stay with their batch."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from snakekit.runtime.batcher import Batcher, BatcherError, BatchReport

Array = NDArray[Any]


def row(number: int, shape: tuple[int, ...] = (2, 3, 3)) -> Array:
    made = np.zeros(shape, np.uint8)
    made.flat[0], made.flat[1] = number & 255, number >> 8
    return made


def numbers(batch: Array) -> Array:
    flat = batch.reshape(len(batch), -1).astype(np.float32)
    return np.asarray(flat[:, 0] + 256 * flat[:, 1])


class Model:
    """Answers a row's number; can be held back, and fails on the number 666."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.shapes: list[tuple[int, ...]] = []
        self.threads: set[str] = set()

    def infer(self, batch: Array) -> tuple[Array, Array]:
        self.entered.set()
        self.gate.wait(10)
        self.shapes.append(batch.shape)
        self.threads.add(threading.current_thread().name)
        n = numbers(batch)
        if 666 in n:
            raise ValueError("a bad position")
        return np.stack([n, -n, n + 1, n + 2], axis=1), n / 2


@pytest.fixture
async def make() -> AsyncIterator[Callable[..., tuple[Batcher, Model]]]:
    made: list[tuple[Batcher, Model]] = []

    def build(**options: Any) -> tuple[Batcher, Model]:
        model = Model()
        made.append((Batcher(model.infer, **options), model))
        return made[-1]

    yield build
    for batcher, model in made:
        model.gate.set()
        await batcher.close()


async def held(batcher: Batcher, model: Model) -> "asyncio.Future[Any]":
    """Block the model in a first call, so that what follows has to queue."""
    model.gate.clear()
    model.entered.clear()
    first = batcher.submit(row(1))
    await asyncio.to_thread(model.entered.wait, 10)
    return first


async def test_rows_never_mix(make: Any) -> None:
    batcher, model = make(sizes=(1, 2, 4, 8), limit=1000)
    shapes = [(2, 3, 3), (2, 5, 4)]
    futures = []
    for number in range(400):
        futures.append(batcher.submit(row(number, shapes[number % 3 % 2])))
        if number % 37 == 0:
            await asyncio.sleep(0.001)
    for number, answer in enumerate(await asyncio.gather(*futures)):
        assert answer.logits == [number, -number, number + 1, number + 2]
        assert answer.value == number / 2
    assert max(shape[0] for shape in model.shapes) > 1
    assert max(shape[0] for shape in model.shapes) <= 8
    assert model.threads == {"policy"}


async def test_waiting_positions_share_a_call_by_shape(make: Any) -> None:
    reports: list[BatchReport] = []
    batcher, model = make(on_batch=reports.append)
    first = await held(batcher, model)
    same = [batcher.submit(row(n)) for n in (2, 3)]
    other = batcher.submit(row(4, (2, 9, 9)))
    model.gate.set()
    await asyncio.gather(first, *same, other)
    assert model.shapes == [(1, 2, 3, 3), (2, 2, 3, 3), (1, 2, 9, 9)]
    assert [report.size for report in reports] == [1, 2, 1]
    assert all(s >= 0 for report in reports for s in report.queued_seconds)


async def test_padding_fills_up_to_a_size(make: Any) -> None:
    batcher, model = make(sizes=(1, 4, 8), pad=True)
    first = await held(batcher, model)
    rest = [batcher.submit(row(n)) for n in (7, 8)]
    model.gate.set()
    answers = await asyncio.gather(first, *rest)
    assert [answer.logits[0] for answer in answers] == [1, 7, 8]
    assert [shape[0] for shape in model.shapes] == [1, 4]


async def test_an_error_reaches_only_its_batch(make: Any) -> None:
    batcher, model = make()
    first = await held(batcher, model)
    poisoned = [batcher.submit(row(n)) for n in (666, 5)]
    healthy = batcher.submit(row(6, (2, 4, 4)))
    model.gate.set()
    results = await asyncio.gather(first, *poisoned, healthy, return_exceptions=True)
    assert [isinstance(r, ValueError) for r in results] == [False, True, True, False]
    assert (await batcher.submit(row(9))).value == 4.5


async def test_wrong_output_shape_is_an_error() -> None:
    batcher = Batcher(lambda batch: (np.zeros((len(batch), 3)), np.zeros(len(batch))))
    with pytest.raises(ValueError, match="model gave"):
        await batcher.submit(row(1))
    await batcher.close()


async def test_cancelled_positions_are_dropped(make: Any) -> None:
    batcher, model = make()
    first = await held(batcher, model)
    dropped, kept = batcher.submit(row(2)), batcher.submit(row(3))
    dropped.cancel()
    model.gate.set()
    await asyncio.gather(first, kept)
    assert [shape[0] for shape in model.shapes] == [1, 1]
    assert kept.result().value == 1.5


async def test_cancelling_the_running_one_harms_nobody(make: Any) -> None:
    batcher, model = make()
    first = await held(batcher, model)
    first.cancel()
    model.gate.set()
    assert (await batcher.submit(row(4))).value == 2


async def test_the_queue_is_bounded_and_forgets_the_cancelled(make: Any) -> None:
    batcher, model = make(limit=2)
    first = await held(batcher, model)
    waiting = [batcher.submit(row(n)) for n in (2, 3)]
    with pytest.raises(BatcherError, match="2 positions wait"):
        batcher.submit(row(4))
    waiting[0].cancel()
    late = batcher.submit(row(5))
    model.gate.set()
    await asyncio.gather(first, waiting[1], late)


async def test_waits_for_company_only_if_told(make: Any) -> None:
    batcher, model = make(sizes=(1, 2), wait_s=5.0)
    answers = asyncio.gather(batcher.submit(row(1)), batcher.submit(row(2)))
    await asyncio.wait_for(answers, 2)
    assert model.shapes == [(2, 2, 3, 3)]


async def test_close_cancels_what_waits(make: Any) -> None:
    batcher, model = make()
    first = await held(batcher, model)
    waiting = batcher.submit(row(2))
    closing = asyncio.create_task(batcher.close())
    await asyncio.sleep(0)
    model.gate.set()
    await closing
    await asyncio.sleep(0)
    assert waiting.cancelled()
    assert first.done()
    with pytest.raises(BatcherError, match="closed"):
        batcher.submit(row(3))
    await batcher.close()


async def test_draining_evaluates_what_waits(make: Any) -> None:
    batcher, model = make()
    first = await held(batcher, model)
    waiting = [batcher.submit(row(n)) for n in (2, 3)]
    closing = asyncio.create_task(batcher.close(drain=True))
    await asyncio.sleep(0)
    with pytest.raises(BatcherError, match="closed"):
        batcher.submit(row(4))
    model.gate.set()
    await closing
    answers = await asyncio.gather(first, *waiting)
    assert [answer.value for answer in answers] == [0.5, 1, 1.5]


async def test_how_long_the_running_call_takes_is_known(make: Any) -> None:
    batcher, model = make()
    assert batcher.running_s == 0
    first = await held(batcher, model)
    await asyncio.sleep(0.02)
    assert batcher.running_s >= 0.02
    model.gate.set()
    await first
    assert batcher.running_s < 0.02
