"""Moves by equilibrium: alone, on the worker's thread, and through the server."""

import asyncio
import json
import random
import time
from typing import Any

import msgspec
import numpy as np
import pytest
from stopwatch import own_time

from snakekit import core
from snakekit.core import Snake, State
from snakekit.runtime.api import parse
from snakekit.runtime.backends import BackendError
from snakekit.runtime.backends.base import BackendInfo
from snakekit.runtime.backends.random_play import random_card
from snakekit.runtime.config import ServerConfig
from snakekit.runtime.contract import ALL_SEATS, CardError
from snakekit.runtime.decided import decided
from snakekit.runtime.equilibrium import (
    Equilibrium,
    Lookahead,
    OutOfTimeError,
    Solution,
    own_logits,
)
from snakekit.runtime.feed import BatcherError, Stage
from snakekit.runtime.loaded import LoadedModel
from snakekit.runtime.models import check_card
from snakekit.runtime.solving import EquilibriumWorker
from snakekit.runtime.watch.live import expected_by_snake

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
    backend.pause = 0.02
    solver = Equilibrium(backend, CARD, Lookahead(plies=2, draw_worth=1.0))
    deep = solver.solve(far)
    assert deep.plies == 2
    assert deep.leaves == backend.rows > 9
    shallow = solver.solve(far, deadline=time.perf_counter() + 0.015)
    assert shallow.plies == 1
    assert shallow.leaves <= 9
    assert deep.utility[1] > shallow.utility[1] + 0.05
    assert sum(deep.utility) == pytest.approx(1, abs=1e-4)


def test_the_bare_policy_is_that_of_the_own_slot():
    solution = Equilibrium(Even(), CARD, Lookahead(draw_worth=1.0)).bare(APART)
    assert solution.plies == 0
    assert np.argmax(solution.policy, 1).tolist() == [2, 2]
    assert solution.utility == pytest.approx([0.5, 0.5])
    assert solution.draw == pytest.approx(1 / 3)


@pytest.mark.parametrize("temperature", [0.5, 1.0])
def test_moves_are_drawn_by_temperature(temperature):
    stage = Stage("turn", 1, 9, 0.0, 0, 0, 0.001)
    solution = Solution([[0.6, 0.0, 0.3, 0.1], [1, 0, 0, 0]], [0.4, 0.6], 0.1, stage)
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
    assert best.stage == stage


def test_one_living_snake_is_left_to_the_policy():
    alone = State(7, 7, [Snake("a", 90, CORNER)], settings=core.Settings(ruleset="solo"))
    solution = Equilibrium(Even(), CARD, Lookahead(plans="local", draw_worth=1.0)).solve(alone)
    assert (solution.stage.name, solution.plies) == ("policy", 0)
    assert np.argmax(solution.policy[0]) == 2
    assert solution.utility == pytest.approx([1.0])


def test_draws_are_worth_what_they_are_said_to_be():
    """Equal heads with one square between them: meeting there is a draw."""
    state = duel([(2, 3), (1, 3), (0, 3)], [(4, 3), (5, 3), (6, 3)])
    whole = Equilibrium(Even(), CARD, Lookahead(draw_worth=1.0)).solve(state)
    cheap = Equilibrium(Even(), CARD, Lookahead(draw_worth=0.2)).solve(state)
    assert cheap.policy[0][3] < 0.02 < whole.policy[0][3]
    assert sum(whole.utility) == pytest.approx(1, abs=1e-4)
    assert sum(cheap.utility) < 0.8


class Eight(Even):
    """The same for eight seats; likes the move to the right."""

    def __init__(self) -> None:
        super().__init__(8)


def test_crowded_boards_are_solved_by_the_oracle():
    card = msgspec.structs.replace(CARD, planes=core.all_seat_planes(8), net_options={"slots": 8})
    bodies = [
        [(2 * i + 1, y), (2 * i + 1, y - 1), (2 * i + 1, y - 2)] for y in (3, 8) for i in range(4)
    ]
    state = State(11, 11, [Snake(str(i), 90, b) for i, b in enumerate(bodies)])
    backend = Eight()
    solution = Equilibrium(backend, card, Lookahead(plies=2, plans="local")).solve(state)
    assert (solution.stage.name, solution.plies) == ("crowd", 1)
    assert solution.leaves == backend.rows < 2 * core.FULL_INFORMATION
    np.testing.assert_allclose(np.sum(solution.policy, 1), 1, atol=1e-5)
    assert solution.stage.rounds >= 8


@pytest.mark.parametrize("plans", ["off", "none", "local"])
def test_a_slow_model_gets_less_to_do(plans):
    """Once it knows how long a board takes, nothing is begun that would come too late."""
    backend = Even()
    solver = Equilibrium(backend, CARD, Lookahead(plies=2, plans=plans))
    backend.pause = 0.002
    solver.solve(APART)
    backend.pause = 0.03
    late = solver.solve(APART, time.perf_counter() + 0.08)
    assert late.stage.name in ("turn", "turns", "plans")
    for budget in (0.02, 0.05, 0.1, 0.2):
        begun = time.perf_counter()
        found = solver.solve(APART, begun + budget)
        assert time.perf_counter() - begun < budget + 0.06
        assert found.plies <= 3
    assert sum(found.policy[0]) == pytest.approx(1, abs=1e-4)


def test_a_batch_that_is_late_already_is_given_up():
    """81 boards are two inferences; the second one is not begun after the deadline."""
    card = msgspec.structs.replace(CARD, planes=core.all_seat_planes(4), net_options={"slots": 4})
    four = State(
        11,
        11,
        [Snake(str(i), 90, [(2 * i + 2, 5), (2 * i + 2, 4), (2 * i + 2, 3)]) for i in range(4)],
    )
    backend = Even(4)
    backend.pause = 0.05
    solver = Equilibrium(backend, card)
    with pytest.raises(OutOfTimeError, match="no time"):
        solver.solve(four, time.perf_counter() + 0.01)
    assert backend.rows == 64


async def test_the_worker_answers_cancels_and_refuses():
    backend = Even()
    worker = EquilibriumWorker(Equilibrium(backend, CARD), temperature=0, limit=2, on_batch=None)
    soon = time.perf_counter() + 5
    answer = await asyncio.wait_for(worker.submit(KILL, 1, soon), 5)
    assert np.argmax(answer.logits) == 1
    assert answer.value == pytest.approx(1, abs=0.02)
    three = State(7, 7, [Snake(str(i), 90, [(2 * i, 3)]) for i in range(3)])
    with pytest.raises(core.StateError, match="3 living snakes for 2 slots"):
        await asyncio.wait_for(worker.submit(three, 0, soon), 5)
    backend.pause = 0.2
    waiting = [worker.submit(APART, 0, soon)]
    await asyncio.sleep(0.05)
    assert worker.running_s > 0
    waiting += [worker.submit(APART, 0, soon) for _ in range(2)]
    with pytest.raises(BatcherError, match="2 positions wait already"):
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
    client = await make_client(mode=mode, budget_ms=60, draw_worth=1.0)
    before = backend.rows
    status, answer = await send(client, "/move", request_json)
    assert status == 200
    assert answer["move"] in ("up", "left", "right")
    if mode != "equilibrium":
        assert answer["move"] == "left"
    assert backend.rows - before == (1 if mode != "equilibrium" else backend.rows - before)
    assert count(client, "decisions_total", reason="policy") == 1
    assert count(client, "policy_batch_size_count") == 1


@pytest.mark.parametrize("mode", ["equilibrium", "policy"])
async def test_the_watch_page_sees_what_is_expected_of_every_snake(
    make_client: Any, request_json: Any, monkeypatch: Any, mode: Any
) -> None:
    use(monkeypatch, Even())
    client = await make_client(mode=mode, budget_ms=60, draw_worth=1.0)
    asked = parse(json.dumps(request_json).encode())
    answer = await client.engine.move(asked, time.perf_counter())
    seats = expected_by_snake(asked, answer)
    assert seats is not None
    assert [seat.id for seat in seats] == [snake["id"] for snake in request_json["board"]["snakes"]]
    for seat in seats:
        assert sum(seat.policy) == pytest.approx(1, abs=1e-3)
    assert sum(seat.utility for seat in seats) == pytest.approx(1, abs=1e-3)
    own = next(seat for seat in seats if seat.id == asked.you.id)
    assert own.policy == decided(asked, answer, None, None).policy
    unknown = answer._replace(choice=answer.choice._replace(evaluation=None))
    assert expected_by_snake(asked, unknown) is None


@pytest.mark.parametrize("pool", ["none", "local"])
async def test_the_server_plays_by_plans_and_says_so(
    make_client: Any, send: Any, request_json: Any, monkeypatch: Any, pool: Any
) -> None:
    use(monkeypatch, Even())
    client = await make_client(mode="equilibrium", plans=pool, plan_turns=2, budget_ms=2000)
    request_json["game"]["timeout"] = 3000
    request = parse(json.dumps(request_json).encode())
    answer = await client.engine.move(request, time.perf_counter())
    await asyncio.sleep(0)
    assert count(client, "equilibria_total", stage="plans") == 1
    assert count(client, "oracle_rounds_count") == 1
    assert count(client, "equilibrium_gap_count") == 1
    row = decided(request, answer, client.engine.card, client.engine.backend_info)
    assert (row.stage, row.plies) == ("plans", 2)
    assert (row.leaves or 0) > 20
    assert (row.solve_ms or 0) > 0
    assert (row.oracle_rounds == 0) == (pool == "none")


async def test_the_deadline_holds_with_plans_and_a_slow_model(
    make_client: Any, send: Any, request_json: Any, monkeypatch: Any, steady: None
) -> None:
    backend = Even()
    use(monkeypatch, backend)
    client = await make_client(mode="equilibrium", plans="local", budget_ms=400)
    request_json["game"]["timeout"] = 150
    backend.pause = 0.04
    for turn in range(4):
        request_json["turn"] = turn
        begun = own_time()
        assert (await send(client, "/move", request_json))[0] == 200
        assert own_time() - begun < 0.15
    assert count(client, "deadline_misses_total") == 0
    # Whatever was there in time counts: plans, one turn, or at last the bare policy.
    solved = [count(client, "equilibria_total", stage=s) for s in ("policy", "turn", "plans")]
    assert sum(solved) >= 2


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
