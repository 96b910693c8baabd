"""How games begin, and where food appears."""

import random

import pytest
from core_boards import (
    corpus,
    on_board,
    points,
    rebuilt,
    scattered,
    snake,
)

from snakekit.core import Settings, State, StateError

A = [(1, 1), (1, 2), (1, 3)]
B = [(5, 5), (5, 4), (5, 3)]


# Official squares, counted from the border, and which of them go together.
def squares(width: int, height: int) -> tuple[set, set]:
    xs, ys = (1, (width - 1) // 2, width - 2), (1, (height - 1) // 2, height - 2)
    corners = {(x, y) for x in (xs[0], xs[2]) for y in (ys[0], ys[2])}
    edges = {(xs[0], ys[1]), (xs[2], ys[1]), (xs[1], ys[0]), (xs[1], ys[2])}
    return corners, edges


def check_start(width: int, height: int, starts: list, food: list) -> None:
    corners, edges = squares(width, height)
    assert len(set(starts)) == len(starts)
    assert set(starts) <= corners | edges
    if len(starts) <= 4:
        assert set(starts) <= corners or set(starts) <= edges
    else:
        assert corners <= set(starts) or edges <= set(starts)
    centre = ((width - 1) // 2, (height - 1) // 2)
    assert food[-1] == centre
    assert len(food) == len(starts) + 1 == len(set(food))
    for (x, y), (fx, fy) in zip(starts, food, strict=False):
        assert abs(x - fx) == abs(y - fy) == 1
        assert (fx, fy) not in {(a, b) for a in (0, width - 1) for b in (0, height - 1)}


def test_recorded_games_start_by_the_rule_that_new_games_are_held_to():
    count = 0
    for line in corpus():
        odd = line["width"] == line["height"] and line["width"] in (7, 11, 19, 25)
        placed = line["map"] in ("standard", "royale") and line["origin"] != "synthetic"
        if line["turn"] or not placed or not odd:
            continue
        heads = points([s["body"][0] for s in line["before"]["snakes"]])
        food = points(line["before"]["food"])
        # A constrictor game has no food, and a small board has not room for all.
        if len(food) == len(heads) + 1:
            check_start(line["width"], line["height"], heads, food)
            count += 1
    assert count >= 3


@pytest.mark.parametrize("side", [7, 9, 11, 19, 25])
def test_new_games_start_on_the_official_squares(side):
    first = set()
    for seed in range(60):
        for n in (1, 2, 4, 5, 8):
            ids = list("abcdefgh"[:n])
            state = State.new_game(side, side, ids, seed)
            bodies = [s.body for s in state.snakes()]
            assert [s.id for s in state.snakes()] == ids
            assert all(len(b) == 3 and len(set(b)) == 1 for b in bodies)
            assert all(s.health == 100 for s in state.snakes())
            assert (state.turn, state.hazards(), state.living()) == (0, [], list(range(n)))
            # Beyond four snakes a small board has food in the centre only.
            if n <= 4 or side >= 11:
                check_start(side, side, [b[0] for b in bodies], state.food())
            assert state == State.new_game(side, side, ids, seed)
        first.add(state.head(0))
    assert len(first) == 8


def test_new_games_in_other_rulesets_and_too_many_snakes():
    state = State.new_game(11, 11, ["a", "b"], 3, Settings(ruleset="constrictor"))
    assert state.food() == []
    with pytest.raises(StateError, match=r"^snakes: 9 do not fit"):
        State.new_game(11, 11, list("abcdefghi"), 1)
    with pytest.raises(StateError, match=r"^snakes: 8 do not fit"):
        State.new_game(3, 3, list("abcdefgh"), 1)
    with pytest.raises(StateError, match=r"26x11"):
        State.new_game(26, 11, ["a", "b"], 1)
    with pytest.raises(StateError, match=r"^snakes\[1\]\.id"):
        State.new_game(11, 11, ["a", "a"], 1)


def forbidden(state: State) -> set:
    """Squares where no food may appear."""
    taken = set(state.food())
    for seat, s in enumerate(state.snakes()):
        if not state.alive(seat):
            continue
        taken.update(s.body)
        x, y = s.body[0]
        taken.update({(x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)})
    return taken


@pytest.mark.parametrize("ruleset", ["standard", "wrapped"])
def test_food_below_the_minimum_is_made_up_exactly(ruleset):
    rng = random.Random(1)
    for _ in range(150):
        minimum = rng.randrange(0, 12)
        have = rng.randrange(0, 8)
        rules = Settings(ruleset=ruleset, minimum_food=minimum, food_spawn_chance=0)
        state = scattered(rng, rng.choice([5, 7, 11, 19]), 7, 3, rules, food=have)
        before, bad = state.food(), forbidden(state)
        free = state.width * 7 - len([p for p in bad if on_board(state, p)])
        copied = state.copy()
        seed = rng.getrandbits(60)
        state.spawn_food(seed)
        copied.spawn_food(seed)
        assert state == copied
        fresh = state.food()[have:]
        assert state.food()[:have] == before
        assert len(fresh) == min(free, max(0, minimum - have))
        assert not bad & set(fresh)
        assert len(set(fresh)) == len(fresh)


@pytest.mark.parametrize("chance", [0, 1, 2, 15, 50, 100])
def test_food_above_the_minimum_comes_with_the_chance_less_one(chance):
    rules = Settings(minimum_food=1, food_spawn_chance=chance)
    state = State(11, 11, [snake("a", A), snake("b", B)], [(0, 0)], settings=rules)
    tries = 4000
    made = []
    for seed in range(tries):
        copied = state.copy()
        copied.spawn_food(seed)
        made += copied.food()[1:]
    p = max(0, chance - 1) / 100
    # Five standard deviations, none where the outcome is certain.
    assert abs(len(made) - p * tries) <= 5 * (tries * p * (1 - p)) ** 0.5
    assert not forbidden(state) & set(made)
    if chance == 100:
        assert len(set(made)) == 121 - len([p for p in forbidden(state) if min(p) >= 0])


def test_food_may_lie_on_hazards_and_on_the_dead():
    dead = snake("x", [(5, y) for y in range(7)], eliminated_cause="head-collision")
    rules = Settings(minimum_food=49)
    hazards = [(6, y) for y in range(7)]
    state = State(7, 7, [snake("a", A), dead], [], hazards, settings=rules)
    state.spawn_food(3)
    assert set(hazards) <= set(state.food())
    assert set(dead.body) <= set(state.food())


def test_food_depends_on_the_turn_and_the_seed():
    state = State(11, 11, [snake("a", A)], settings=Settings(minimum_food=3))
    drawn = set()
    for turn in range(5):
        for seed in range(5):
            copied = rebuilt(state, turn=turn)
            copied.spawn_food(seed)
            drawn.add(tuple(copied.food()))
    assert len(drawn) == 25
