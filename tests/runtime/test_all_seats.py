"""A model for all seats as a bare policy: batches of several boards, each its own seat's part."""

import asyncio
import time
from typing import Any

import msgspec
import numpy as np
import pytest

from snakekit import core
from snakekit.core import Snake, State
from snakekit.runtime.api import Position
from snakekit.runtime.backends.base import BackendInfo
from snakekit.runtime.backends.random_play import random_card
from snakekit.runtime.config import ServerConfig
from snakekit.runtime.contract import ALL_SEATS
from snakekit.runtime.feed import BatchReport
from snakekit.runtime.loaded import LoadedModel

SLOTS = 3
CARD = msgspec.structs.replace(
    random_card(),
    encoder=ALL_SEATS,
    planes=core.all_seat_planes(SLOTS),
    net_options={"slots": SLOTS},
)


class Columns:
    """Advises each slot the move of its head's column; who is further right is likelier to win."""

    pads = False

    def __init__(self) -> None:
        self.pause = 0.0

    def infer(self, batch: Any) -> Any:
        time.sleep(self.pause)
        heads = [core.ALL_SEAT_COMMON + slot * core.ALL_SEAT_BLOCK for slot in range(SLOTS)]
        policy = np.zeros((len(batch), SLOTS, 4), np.float32)
        outcome = np.full((len(batch), SLOTS + 1), -9, np.float32)
        for n, slot in zip(*np.nonzero(batch[:, heads].any((2, 3))), strict=True):
            column = int(np.nonzero(batch[n, heads[slot]])[1][0])
            policy[n, slot, column % 4] = 9
            outcome[n, slot] = column
        return policy, outcome

    def describe(self) -> BackendInfo:
        return BackendInfo(requested="columns", actual="columns", precision="none")

    def close(self) -> None:
        pass


def board(*columns: int) -> State:
    return State(11, 11, [Snake(str(c), 90, [(c, 5), (c, 4), (c, 3)]) for c in columns])


@pytest.mark.parametrize("mode", ["policy", "hybrid"])
async def test_boards_share_a_call_and_get_their_own_part(
    mode: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend, reports = Columns(), []
    monkeypatch.setattr("snakekit.runtime.loaded.load_backend", lambda *_, **__: (backend, CARD))
    config = ServerConfig(mode=mode)

    def note(report: BatchReport) -> None:
        reports.append(report)

    model = await LoadedModel.load(config, note)
    backend.pause = 0.1
    asked = [(board(1, 6), 0), (board(2, 7, 9), 1), (board(4, 8), 1), (board(3, 5, 10), 2)]
    soon = time.perf_counter() + 5
    first = model.submit(Position(*asked[0]), soon)
    await asyncio.sleep(0.03)
    waiting = [model.submit(Position(*place), soon) for place in asked[1:]]
    answers = await asyncio.wait_for(asyncio.gather(first, *waiting), 5)
    for answer, column in zip(answers, (1, 7, 8, 10), strict=True):
        assert int(np.argmax(answer.logits)) == column % 4
        assert answer.stage is None
    assert [a.value > 0 for a in answers] == [False, False, True, True]
    assert [len(a.seats) for a in answers] == [2, 3, 2, 3]
    assert [r.size for r in reports] == [1, 3]
    with pytest.raises(core.StateError, match="at most as many living snakes as slots"):
        await model.submit(Position(board(1, 3, 5, 7), 0), soon)
    await model.close()
