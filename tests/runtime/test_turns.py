"""Turns of moves: in order, few at a time, and refused when they would come too late."""

import asyncio

import pytest

from snakekit.runtime.api import RequestError
from snakekit.runtime.turns import BURST, FIRST_COST_S, WAIT_SHARE, Turns


async def rounds(turns: Turns) -> None:
    for _ in range(10_000):
        if not len(turns):
            return
        await asyncio.sleep(0)
    pytest.fail("moves wait for ever")


async def test_a_few_begin_in_each_round_in_order() -> None:
    turns = Turns()
    begun: list[int] = []
    for number in range(3 * BURST):
        if not turns.pressed:
            turns.begin()
            begun.append(number)
        else:
            assert turns.queue(lambda n=number: begun.append(n) is None, 5000)
    assert len(begun) == BURST
    await asyncio.sleep(0)
    assert len(begun) == 2 * BURST
    await rounds(turns)
    assert begun == list(range(3 * BURST))
    for _ in range(3):
        await asyncio.sleep(0)
    assert not turns.pressed
    assert not turns._turning


async def test_those_that_left_take_no_turn() -> None:
    turns = Turns()
    turns._begun = BURST
    begun: list[int] = []
    for number in range(2 * BURST):
        here = number % 2 == 0
        turns.queue(lambda n=number, here=here: here and begun.append(n) is None, 5000)
    await asyncio.sleep(0)
    assert len(begun) == BURST


async def test_the_cost_of_a_move_is_measured() -> None:
    now = [0.0]
    turns = Turns(clock=lambda: now[0])

    def begin() -> bool:
        now[0] += 0.004
        return True

    turns._begun = BURST
    for _ in range(60 * BURST):
        assert turns.queue(begin, 1e6)
    await rounds(turns)
    assert turns.cost_s == pytest.approx(0.004, rel=0.1)
    taken = [turns.queue(begin, 500) for _ in range(40)]
    assert taken == sorted(taken, reverse=True)
    assert sum(taken) == pytest.approx(WAIT_SHARE * 500 / 4, rel=0.1)
    # Nobody has begun for long, whatever was reckoned.
    assert turns.queue(begin, 5000)
    now[0] += 1.5
    assert not turns.queue(begin, 5000)
    with pytest.raises(RequestError) as error:
        await turns.wait(33)
    assert (error.value.status, error.value.cause) == (503, "busy")


async def test_a_slowdown_is_believed_at_once_and_forgotten_slowly() -> None:
    now = [0.0]
    turns = Turns(clock=lambda: now[0])
    takes = [0.02]

    def begin() -> bool:
        now[0] += takes[0]
        return True

    async def load(moves: int) -> None:
        turns._begun = BURST
        for _ in range(moves):
            turns._queue.append((now[0], begin))
        turns._go_round()
        await rounds(turns)

    await load(4 * BURST)
    slow = turns.cost_s
    assert slow > 20 * FIRST_COST_S
    takes[0] = 0.0005
    await load(4 * BURST)
    assert turns.cost_s > slow / 2
    await load(200 * BURST)
    assert turns.cost_s < 0.001


async def test_waiting_inside_a_handler() -> None:
    turns = Turns()
    waiting = [asyncio.create_task(turns.wait(500)) for _ in range(2 * BURST)]
    waiting[-1].cancel()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert results[:-1] == [None] * (2 * BURST - 1)
    assert isinstance(results[-1], asyncio.CancelledError)


async def test_all_begin_at_the_end() -> None:
    turns = Turns()
    turns._begun = BURST
    begun: list[int] = []
    for number in range(50):
        turns.queue(lambda n=number: begun.append(n) is None, 5000)
    turns.begin_all()
    assert begun == list(range(50))
