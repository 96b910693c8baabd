"""Moves by equilibrium: alone, on the worker's thread, and through the server."""

import asyncio
import random
import time
from typing import Any

import msgspec
import numpy as np
import pytest

from snakekit import core
from snakekit.core import Snake, State
from snakekit.runtime.backends import BackendError
from snakekit.runtime.backends.base import BackendInfo
from snakekit.runtime.backends.random_play import random_card
from snakekit.runtime.batcher import BatcherError
from snakekit.runtime.config import ServerConfig
from snakekit.runtime.contract import ALL_SEATS, CardError
from snakekit.runtime.equilibrium import Equilibrium, EquilibriumWorker, Solution, own_logits
from snakekit.runtime.loaded import LoadedModel
from snakekit.runtime.models import check_card

CARD = msgspec.structs.replace(
    random_card(), encoder=ALL_SEATS, planes=core.all_seat_planes(2), net_options={"slots": 2}
)


class Even:
    """Knows nothing: every outcome is as likely; counts what it is asked."""

    pads = False
    pause = 0.0

    def __init__(self, slots: int = 2) -> None:
        self.slots, self.rows = slots, 0

    def infer(self, batch: Any) -> Any:
        time.sleep(self.pause)
        self.rows += len(batch)
        policy = np.zeros((len(batch), self.slots, 4), np.float32)
        policy[:, :, 2] = 3
        return policy, np.zeros((len(batch), self.slots + 1), np.float32)

    def describe(self) -> BackendInfo:
        return BackendInfo(requested="even", actual="even", precision="none")

    def close(self) -> None:
        pass


def duel(hunted: list[tuple[int, int]], hunter: list[tuple[int, int]]) -> State:
    return State(7, 7, [Snake("a", 90, hunted), Snake("b", 90, hunter)])


CORNER = [(0, 0), (1, 0), (2, 0)]
KILL = duel(CORNER, [(0, 2), (1, 2), (2, 2), (3, 2)])
"""The longer snake wins by going down onto the only square that the other has left."""
APART = duel([(1, 5), (1, 4), (1, 3)], [(5, 1), (5, 2), (5, 3)])


def test_a_kill_is_seen_although_the_model_knows_nothing():
    solution = Equilibrium(Even(), CARD).solve(KILL)
    assert solution.policy[1][1] == pytest.approx(1, abs=0.01)
    assert solution.utility == pytest.approx([0, 1], abs=0.01)
    assert solution.plies == 1
    assert solution.gap < 0.01


def test_the_second_turn_sees_further_and_is_left_out_without_time():
    """Two turns away from the kill: only the deeper look prefers to close in."""
    far = duel([(0, 0), (1, 0), (2, 0), (3, 0)], [(1, 3), (1, 4), (1, 5), (2, 5), (3, 5)])
    backend = Even()
    solver = Equilibrium(backend, CARD, plies=2)
    deep = solver.solve(far)
    assert deep.plies == 2
    assert deep.leaves == backend.rows > 9
    shallow = solver.solve(far, deadline=time.perf_counter())
    assert shallow.plies == 1
    assert shallow.leaves <= 9
    assert deep.utility[1] > shallow.utility[1] + 0.05
    assert sum(deep.utility) == pytest.approx(1, abs=1e-4)


def test_the_bare_policy_is_that_of_the_own_slot():
    solution = Equilibrium(Even(), CARD).bare(APART)
    assert solution.plies == 0
    assert np.argmax(solution.policy, 1).tolist() == [2, 2]
    assert solution.utility == pytest.approx([0.5, 0.5])
    assert solution.draw == pytest.approx(1 / 3)


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_moves_are_drawn_by_temperature(temperature):
    solution = Solution([[0.6, 0.0, 0.3, 0.1], [1, 0, 0, 0]], [0.4, 0.6], 0.1, 0.0, 1, 9)
    noise = random.Random(1)
    drawn = [
        int(np.argmax(own_logits(solution, APART, 0, temperature, noise).logits))
        for _ in range(4000)
    ]
    want = np.array(solution.policy[0]) ** (1 / temperature)
    found = np.bincount(drawn, minlength=4) / len(drawn)
    np.testing.assert_allclose(found, want / want.sum(), atol=0.03)
    assert found[1] == 0
    best = own_logits(solution, APART, 0, 0, noise)
    assert np.argmax(best.logits) == 0
    assert best.value == pytest.approx(-0.2)


async def test_the_worker_answers_cancels_and_refuses():
    backend = Even()
    worker = EquilibriumWorker(
        Equilibrium(backend, CARD), bare=False, temperature=0, limit=2, on_batch=None
    )
    soon = time.perf_counter() + 5
    answer = await asyncio.wait_for(worker.submit(KILL, 1, soon), 5)
    assert np.argmax(answer.logits) == 1
    assert answer.value == pytest.approx(1, abs=0.02)
    alone = State(7, 7, [Snake("a", 90, CORNER)])
    with pytest.raises(core.StateError, match="at least two living snakes"):
        await asyncio.wait_for(worker.submit(alone, 0, soon), 5)
    backend.pause = 0.2
    waiting = [worker.submit(APART, 0, soon)]
    await asyncio.sleep(0.05)
    assert worker.running_s > 0
    waiting += [worker.submit(APART, 0, soon) for _ in range(2)]
    with pytest.raises(BatcherError, match="2 boards wait already"):
        worker.submit(APART, 0, soon)
    waiting[1].cancel()
    waiting.append(worker.submit(APART, 0, soon))
    await worker.close(drain=True)
    assert all(f.cancelled() or f.done() for f in waiting)
    with pytest.raises(BatcherError, match="closed"):
        worker.submit(APART, 0, soon)


def use(monkeypatch: pytest.MonkeyPatch, backend: Any, card: Any = CARD) -> None:
    monkeypatch.setattr("snakekit.runtime.loaded.load_backend", lambda *_, **__: (backend, card))


def count(client: Any, name: str, **labels: str) -> float:
    return client.engine.metrics.registry.get_sample_value("snakekit_" + name, labels) or 0.0


@pytest.mark.parametrize("mode", ["equilibrium", "hybrid", "policy"])
async def test_the_server_plays_models_for_all_seats(
    make_client: Any, send: Any, request_json: Any, monkeypatch: Any, mode: Any
) -> None:
    backend = Even()
    use(monkeypatch, backend)
    client = await make_client(mode=mode, budget_ms=60)
    before = backend.rows
    status, answer = await send(client, "/move", request_json)
    assert status == 200
    assert answer["move"] in ("up", "left", "right")
    if mode != "equilibrium":
        assert answer["move"] == "left"
    assert backend.rows - before == (1 if mode != "equilibrium" else backend.rows - before)
    assert count(client, "decisions_total", reason="policy") == 1
    assert count(client, "policy_batch_size_count") == 1


async def test_more_snakes_than_slots_leave_the_move_to_the_search(
    make_client: Any, send: Any, make_request: Any, make_snake: Any, monkeypatch: Any
) -> None:
    use(monkeypatch, Even())
    client = await make_client(mode="equilibrium", budget_ms=30)
    three = [
        make_snake(name, (x, 5), (x, 6), (x, 7)) for name, x in zip("abc", (2, 5, 8), strict=True)
    ]
    assert (await send(client, "/move", make_request(*three)))[0] == 200
    assert count(client, "decisions_total", reason="search_no_policy") == 1
    assert count(client, "fallbacks_total", stage="policy", cause="error") == 1


async def test_mode_equilibrium_needs_a_model_for_all_seats(monkeypatch: Any) -> None:
    config = ServerConfig(backend="random", mode="equilibrium")
    with pytest.raises(BackendError, match="answers for one seat; expected one for all"):
        await LoadedModel.load(config, lambda report: None)
    with pytest.raises(ValueError, match="answers for one seat"):
        Equilibrium(Even(), random_card())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"planes": 23}, "23 planes"),
        ({"net_options": {"slots": 9}}, "9 slots"),
        ({"view": (7, 7)}, "view"),
    ],
)
def test_cards_for_all_seats_are_checked(change, words):
    check_card(CARD, origin="x")
    with pytest.raises(CardError, match=words):
        check_card(msgspec.structs.replace(CARD, **change), origin="x")
