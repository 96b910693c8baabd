"""Proofs of the search against brute force."""

import json
import os
import random
from collections import Counter
from collections.abc import Iterator

import pytest
from core_boards import snake, to_json
from search_parts import DEPTH, contested, fixed, seats
from slow_search import (
    WIN_SCORE,
    lost,
    move_loses,
    move_wins,
    positions,
    recorded,
    sane_replies,
    value,
    won,
)

from snakekit.core import Searcher, Settings, State


def compare_proofs(states: Iterator[State], depths: dict[int, int], **options: object) -> Counter:
    """Assert every label and count them by what was found."""
    seen: Counter = Counter()
    for state, seat in seats(states):
        n = len(state.living())
        found = fixed(state, seat, depths[n], **options)
        replies = sane_replies(state, seat)
        seen["boards", n] += 1
        for move in range(4):
            label = found.labels[move]
            if found.scores[move] is None:
                assert label == "none"
                continue
            loses = move_loses(state, seat, move, found.depth, replies)
            wins = move_wins(state, seat, move, found.depth)
            about = f"seat {seat} move {move} of {json.dumps(to_json(state))}: {label}"
            assert label != "loss" or loses, f"false proof of loss: {about}"
            assert label != "win" or wins, f"false proof of a win: {about}"
            if n == 2:
                # The last completed depth has proved all that can be proved within it.
                assert label == ("loss" if loses else "win" if wins else "none"), about
            elif label == "none" and (loses or wins):
                # With more rivals a sacrifice of one can help the others; the search leaves it out.
                seen["missed", n] += 1
            seen[label, n] += 1
            if label == "none":
                assert found.distances[move] == 0
                continue
            prove = move_loses if label == "loss" else move_wins
            turns = found.distances[move]
            assert 1 <= turns <= found.depth
            assert prove(state, seat, move, turns), about
            if n == 2:
                assert turns == 1 or not prove(state, seat, move, turns - 1), about
            seen["distance", turns] += 1
    return seen


@pytest.mark.parametrize("selective", [False, True])
def test_proofs_hold_by_brute_force(selective):
    seen = compare_proofs(positions(1 + 20 * selective, 400), DEPTH, selective=selective)
    assert seen["loss", 2] > 50
    assert seen["win", 2] > 20
    assert seen["none", 2] > 50
    assert seen["loss", 3] + seen["loss", 4] > 20
    assert sum(count for (kind, d), count in seen.items() if kind == "distance" and d > 1) > 20


def test_proofs_hold_in_recorded_games():
    seen = compare_proofs(recorded(random.Random(20), 120), {2: 3, 3: 2, 4: 1})
    assert seen["boards", 2] > 20
    assert seen["loss", 2] + seen["loss", 3] + seen["loss", 4] > 10


# More of them: PROOF_POSITIONS=20000 pytest -m slow -k many_proofs --timeout 0
MANY = int(os.environ.get("PROOF_POSITIONS", "2400"))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_many_proofs_hold_by_brute_force(capsys):
    seen = compare_proofs(positions(2, MANY), {2: 6, 3: 4, 4: 2})
    seen += compare_proofs(recorded(random.Random(21), MANY // 4), {2: 4, 3: 2, 4: 2})
    seen += compare_proofs(positions(3, 400, (3, 3, 4)), {2: 6, 3: 3, 4: 3})
    with capsys.disabled():
        print()
        for key, count in sorted(seen.items(), key=str):
            print(*key, count)
    assert seen["loss", 2] > 1000
    assert seen["win", 2] > 300
    assert seen["win", 3] > 10
    # The sacrifices left out are rare.
    assert seen["missed", 3] + seen["missed", 4] < 0.05 * (seen["loss", 3] + seen["loss", 4])


def test_a_pessimistic_loss_does_not_end_the_search_before_it_is_proved():
    """All moves may lose to an opponent who sees them; which ones really lose takes more depth."""
    unproved = 0
    for state, seat in seats(positions(4, 400, (2,))):
        found = fixed(state, seat, 6)
        if "win" in found.labels or found.stopped == "proved":
            continue
        if all(s is None or s < -20_000 for s in found.scores):
            unproved += 1
            assert found.depth == 6
    assert unproved > 5


def test_proofs_hold_when_the_table_knows_other_positions():
    searcher = Searcher(1)
    labels = Counter()
    for state, seat in seats(positions(4, 150)):
        found = searcher.search(state, seat, budget_us=0, max_depth=DEPTH[len(state.living())])
        for move, label in enumerate(found.labels):
            labels[label] += 1
            turns = found.distances[move]
            if label == "loss":
                assert move_loses(state, seat, move, turns)
            elif label == "win":
                assert move_wins(state, seat, move, turns)
    assert labels["loss"] > 50
    assert labels["win"] > 20


def test_two_payoffs_need_no_linear_program():
    pytest.importorskip("scipy")
    survive = {"loss": 0.0, "draw": 1.0, "win": 1.0, "open": 1.0}
    triumph = {"loss": 0.0, "draw": 0.0, "win": 1.0, "open": 0.0}
    found = Counter()
    for state, seat in seats(positions(5, 40, (2, 2, 2, 3))):
        depth = 2 if len(state.living()) == 2 else 1
        alive, win = value(state, seat, depth, survive), value(state, seat, depth, triumph)
        assert lost(state, seat, depth) == (alive < 1e-7)
        assert won(state, seat, depth) == (win > 1 - 1e-7)
        found["lost"] += alive < 1e-7
        found["won"] += win > 1 - 1e-7
    assert min(found["lost"], found["won"]) >= 3
    # Where neither holds the value can be strictly between: two exits, one pursuer.
    assert value(contested(), 0, 1, survive) == pytest.approx(0.5)
    assert not lost(contested(), 0, 1)


def test_the_plain_rule_claims_losses_that_are_none():
    false = true = 0
    for state, seat in seats(positions(8, 100)):
        found = fixed(state, seat, 2, proof="article")
        for move, label in enumerate(found.labels):
            if label == "win":
                assert move_wins(state, seat, move, found.depth)
            elif label == "loss":
                holds = move_loses(state, seat, move, found.depth)
                true, false = true + holds, false + (not holds)
    assert true > 30
    assert false > 10


@pytest.mark.parametrize(("rivals", "label"), [(1, "loss"), (4, "loss"), (5, "none")])
def test_with_more_than_four_rivals_nothing_is_claimed(rivals, label):
    """The far ones are not followed then, so that no proof would hold."""
    trapped = snake("a", [(0, 1), (0, 2), (0, 3)])
    wall = snake("o0", [(2, 0), (1, 0), (1, 1), (1, 2), (1, 3), (1, 4)])
    far = [snake(f"o{i}", [at] * 3) for i, at in enumerate([(5, 9), (9, 5), (9, 9), (5, 5)], 1)]
    state = State(11, 11, [trapped, wall, *far[: rivals - 1]])
    found = fixed(state, 0, 2)
    assert found.scores == [None, 2 - WIN_SCORE, None, 1 - WIN_SCORE]
    assert found.labels == ["none", label, "none", label]


def test_food_on_a_hazard_saves_and_its_body_blocks():
    """The opponent cannot count on our starving where the only hazard in reach has food on it."""
    hazards = [[0, 2], [0, 3], [1, 2], [2, 0], [3, 0], [3, 3]]
    state = State(
        4,
        4,
        [
            snake("a", [(2, 2), (1, 2), (1, 1), (2, 1)], 99),
            snake("b", [(3, 2), (3, 1), (3, 0), (2, 0), (1, 0)], 15),
        ],
        [(3, 3), (2, 3)],
        [tuple(h) for h in hazards],
        turn=9,
        settings=Settings(ruleset="royale", minimum_food=2, hazard_damage=40),
    )
    # Onto the head that becomes a neck.
    assert not state.safe_mask(0) >> 3 & 1
    assert move_loses(state, 1, 0, 5)
    found = fixed(state, 1, 6)
    assert (found.labels[0], found.distances[0]) == ("loss", 5)
