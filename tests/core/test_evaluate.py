"""The evaluation: its flood against a slow one, its terms, and games between two weights."""

import random

import numpy as np
import pytest
from core_boards import play, scattered, snake

from snakekit.core import (
    TERMS,
    WEIGHTS,
    Searcher,
    Settings,
    State,
    evaluate,
    evaluation_terms,
    sample_positions,
    self_play,
)

FLOOD_TURNS = 48


def terms(state: State, seat: int) -> dict[str, int]:
    return dict(zip(TERMS, evaluation_terms(state, seat), strict=True))


def slow_flood(state: State) -> dict[int, tuple[int, bool, int]]:
    """Room, closed in, and turn of the first food of every living seat, by sets of cells."""
    width, height = state.width, state.height
    bodies = {i: state.snakes()[i].body for i in state.living()}
    reach = {i: {body[0]} for i, body in bodies.items()}
    taken = {body[0] for body in bodies.values()}
    first_food = dict.fromkeys(bodies, 0)
    closed = dict.fromkeys(bodies, False)
    wrapped = state.settings.ruleset.startswith("wrapped")

    def beside(cell):
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            x, y = cell[0] + dx, cell[1] + dy
            if wrapped:
                yield x % width, y % height
            elif 0 <= x < width and 0 <= y < height:
                yield x, y

    for turn in range(1, FLOOD_TURNS + 1):
        blocked = {c for body in bodies.values() for c in body[: max(0, len(body) - turn)]}
        fresh = {
            i: set() if closed[i] else {c for r in reach[i] for c in beside(r)} - blocked - taken
            for i in bodies
        }
        own = {
            i: {
                c
                for c in cells
                if not any(
                    c in fresh[j] and len(bodies[j]) >= len(bodies[i]) for j in bodies if j != i
                )
            }
            for i, cells in fresh.items()
        }
        taken |= set().union(*fresh.values())
        for i in bodies:
            reach[i] |= own[i]
            if own[i] & set(state.food()) and not first_food[i]:
                first_food[i] = turn
            if not own[i] and not closed[i]:
                closed[i] = turn >= len(reach[i]) <= len(bodies[i])
    return {i: (len(reach[i]), closed[i], first_food[i]) for i in bodies}


KINDS = [
    (11, 11, 2, "standard"),
    (11, 11, 4, "standard"),
    (7, 7, 3, "wrapped"),
    (8, 5, 2, "constrictor"),
    (19, 19, 5, "royale"),
]


@pytest.mark.parametrize(("width", "height", "snakes", "ruleset"), KINDS)
def test_the_flood_is_that_of_a_slow_one(width, height, snakes, ruleset):
    rng = random.Random(f"{width} {snakes} {ruleset}")
    seen = closed = 0
    while seen < 40:
        rules = Settings(ruleset=ruleset, minimum_food=2)
        start = scattered(rng, width, height, snakes, rules)
        for turn, state in enumerate(play(start, rng, 60)):
            living = state.living()
            if turn % 3 or len(living) != 2:
                continue
            slow = slow_flood(state)
            me, other = living
            found = terms(state, me)
            assert found["area"] == slow[me][0] - slow[other][0]
            assert found["closed"] == slow[me][1] - slow[other][1]
            closed += slow[me][1] or slow[other][1]
            if ruleset != "constrictor":
                near = [max(0, 20 - slow[i][2]) if slow[i][2] else 0 for i in (me, other)]
                assert found["food"] == near[0] - near[1]
            seen += 1
    assert closed > 0 or width > 8


def test_what_one_side_of_a_duel_gains_the_other_loses():
    rng = random.Random(5)
    for state in play(scattered(rng, 11, 11, 2, Settings(minimum_food=3)), rng, 40):
        if len(state.living()) == 2:
            mine, theirs = evaluation_terms(state, 0), evaluation_terms(state, 1)
            assert [-x for x in mine] == theirs
            by_weights = [evaluate(state, seat, weights={}) for seat in (0, 1)]
            assert by_weights[0] == -by_weights[1]


@pytest.mark.parametrize("snakes", [2, 3, 4])
def test_the_evaluation_is_the_weighted_sum_of_its_terms(snakes):
    table = "duel" if snakes == 2 else "many"
    rng = random.Random(snakes)
    for state in play(scattered(rng, 11, 11, snakes, Settings(minimum_food=3)), rng, 20):
        if len(state.living()) != snakes:
            continue
        for seat in state.living():
            found = terms(state, seat)
            total = sum(WEIGHTS[f"{table}.{name}"] * value for name, value in found.items())
            judged = evaluate(state, seat, weights={})
            assert judged == max(-1900, min(1900, int(total / 16)))
            changed = evaluate(state, seat, weights={f"{table}.{n}": 0 for n in TERMS})
            assert changed == 0


def pocket(length: int) -> State:
    """Two free cells before the head, and the door behind them is its sixth segment."""
    wall = [(2, 0), (3, 0), (3, 1), (2, 1), (1, 1), (0, 1)]
    rest = [(0, y) for y in range(2, 2 + length - len(wall))]
    return State(11, 11, [snake("a", wall + rest), snake("b", [(9, 9), (9, 8), (9, 7)])])


def test_a_pocket_is_a_trap_where_it_does_not_open_in_time():
    # The third step goes through the door, which is free when all but five segments have gone.
    assert terms(pocket(8), 0)["closed"] == 0
    found = terms(pocket(9), 0)
    assert (found["closed"], found["short"]) == (1, 9 - 3)
    assert terms(pocket(9), 1)["closed"] == -1


def test_equal_weights_share_the_points():
    points = self_play({}, {}, starts=3, max_nodes=60, seed=4, max_turns=80)
    assert points.shape == (3, 2)
    # The same game twice, once from each seat.
    assert np.all(points.sum(axis=1) == 1)
    four = self_play({}, {}, starts=1, max_nodes=60, seed=4, snakes=4, max_turns=40)
    assert four.shape == (1, 6)
    assert np.all(four + four[:, ::-1] == 1)


def test_games_do_not_depend_on_threads():
    weak = {"duel.area": 0, "duel.short": 0}
    games = [self_play({}, weak, starts=4, first=2, max_depth=1, seed=9, threads=n) for n in (1, 3)]
    assert np.array_equal(*games)
    later = self_play({}, weak, starts=2, first=4, max_depth=1, seed=9)
    assert np.array_equal(games[0][2:], later)


def test_space_beats_no_space():
    points = self_play({}, {"duel.area": 0, "duel.inner": 0}, starts=20, max_depth=2, seed=3)
    assert points.mean() > 0.6


def test_positions_carry_the_result_of_their_game():
    rows, living, result, game = sample_positions({}, games=3, max_nodes=60, seed=2, every=5)
    assert rows.shape == (len(game), len(TERMS))
    assert set(living) == {2}
    assert set(game) == {0, 1, 2}
    for number in range(3):
        # Both seats look at each position, and what one wins the other loses.
        mine = rows[game == number]
        assert np.array_equal(mine[::2], -mine[1::2])
        assert np.all(result[game == number][::2] + result[game == number][1::2] == 1)


def test_wrong_weights_and_games_are_refused():
    for call, message in (
        (lambda: Searcher(1, weights={"area": 1}), "weights: 'area' is unknown"),
        (lambda: Searcher(1, weights={"duel.area": 40_000}), "duel.area is outside"),
        (lambda: self_play({}, {}, snakes=3), "snakes: expected 2 or 4"),
        (lambda: self_play({}, {}, starts=0), "starts"),
        (lambda: self_play({"x": 1}, {}), "'x' is unknown"),
        (lambda: sample_positions({}, every=0), "every"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
