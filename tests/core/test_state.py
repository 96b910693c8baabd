"""Boards from the outside: refusals, copies, equality, hashes, starts, food, random games."""

import random
import re

import pytest
from core_boards import (
    corpus,
    fields,
    moves_of,
    on_board,
    picture,
    play,
    points,
    rebuilt,
    scattered,
    snake,
    state_of,
)
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st

from snakekit.core import MAX_SNAKES, MOVES, RULESETS, Settings, State, StateError

A = [(1, 1), (1, 2), (1, 3)]
B = [(5, 5), (5, 4), (5, 3)]


def board(**changed: object) -> State:
    values: dict = {
        "width": 7,
        "height": 7,
        "snakes": [snake("a", A), snake("b", B)],
        "food": [(0, 0), (6, 6)],
        "hazards": [(3, 3)],
    }
    values.update(changed)
    return State(**values)


def crowd(living: int, dead: int) -> list:
    spots = [(x, y) for y in range(6) for x in range(7)]
    return [
        snake(f"s{i}", [spots[i]], eliminated_cause="" if i < living else "out-of-health")
        for i in range(living + dead)
    ]


REFUSED = [
    ({"width": 2}, "width: 2"),
    ({"width": 26}, "width: 26"),
    ({"height": 2}, "height: 2"),
    ({"height": 26}, "height: 26"),
    ({"turn": -1}, "turn: -1"),
    ({"snakes": [snake("a", [])]}, "snakes[0].body: empty"),
    ({"snakes": [snake("a", A), snake("b", [])]}, "snakes[1].body: empty"),
    ({"snakes": [snake("a", A, -1)]}, "snakes[0].health: -1"),
    ({"snakes": [snake("a", A, 101)]}, "snakes[0].health: 101"),
    ({"snakes": [snake("a", [(7, 0)])]}, "snakes[0].body[0]: (7, 0)"),
    ({"snakes": [snake("a", [(0, 0), (0, -1)])]}, "snakes[0].body[1]: (0, -1)"),
    (
        {"snakes": [snake("a", [(0, 20)], eliminated_cause="wall-collision")]},
        "snakes[0].body[0]: (0, 20)",
    ),
    ({"snakes": [snake("a", A), snake("a", B)]}, "snakes[1].id: 'a' is listed twice"),
    ({"snakes": [snake("a", A, eliminated_cause="boredom")]}, "snakes[0].eliminated_cause: "),
    ({"snakes": [snake("a", [(0, 0)] * 2000)]}, "snakes[0].body: 2000 segments"),
    ({"snakes": crowd(9, 0)}, "snakes: 9 are alive"),
    ({"snakes": crowd(1, 16)}, "snakes: 17 are listed"),
    ({"food": [(0, 0), (7, 6)]}, "food[1]: (7, 6)"),
    ({"food": [(-1, 0)]}, "food[0]: (-1, 0)"),
    ({"food": [(0, 0), (1, 0), (0, 0)]}, "food[2]: (0, 0) is listed twice"),
    ({"hazards": [(0, 0), (0, 14)]}, "hazards[1]: (0, 14)"),
    ({"hazards": [(-1, 0)]}, "hazards[0]: (-1, 0)"),
    ({"hazards": [(2, 2)] * 256}, "hazards: more than 255 layers at (2, 2)"),
]


@pytest.mark.parametrize(("changed", "message"), REFUSED, ids=[m for _, m in REFUSED])
def test_impossible_boards_are_refused_by_the_name_of_the_field(changed, message):
    with pytest.raises(StateError, match="^" + re.escape(message)):
        board(**changed)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("food_spawn_chance", 0, 100),
        ("minimum_food", 0, 625),
        ("hazard_damage", -1000, 1000),
        ("shrink_every", 0, 30000),
    ],
)
def test_settings_have_ranges(name, low, high):
    for value in (low, high):
        assert getattr(Settings(**{name: value}), name) == value
    for value in (low - 1, high + 1):
        with pytest.raises(StateError, match=rf"^settings\.{name}: {value} "):
            Settings(**{name: value})


def test_limits_themselves_are_accepted():
    assert len(board(snakes=crowd(8, 8)).living()) == 8
    assert MAX_SNAKES == 16
    assert board(hazards=[(2, 2)] * 255).hazards() == [(2, 2)] * 255
    for side in (3, 25):
        assert State(side, side, [snake("a", [(0, 0)])]).width == side
    assert issubclass(StateError, ValueError)


def test_wrong_calls_are_refused():
    state = board()
    with pytest.raises(ValueError, match=r"^moves: 1 for 2 seats"):
        state.step([0])
    for call in (state.head, state.length, state.health, state.alive, state.safe_mask):
        for seat in (-1, 2):
            with pytest.raises(IndexError, match=f"seat {seat} is outside"):
                call(seat)


def test_values_come_back_as_given():
    hazards = [(3, 3), (1, 0), (3, 3)]
    gone = snake("x", [(-1, 2), (0, 2)], 7, eliminated_cause="wall-collision", eliminated_on_turn=4)
    killed = snake(
        "y",
        [(2, 6)],
        0,
        eliminated_cause="snake-collision",
        eliminated_by="b",
        eliminated_on_turn=5,
    )
    given = [snake("a", A, 31), gone, snake("b", B, 99), killed]
    state = board(snakes=given, hazards=hazards, turn=12)
    assert [fields(s) for s in state.snakes()] == [fields(s) for s in given]
    assert state.food() == [(0, 0), (6, 6)]
    assert state.hazards() == sorted(hazards)
    assert (state.turn, state.num_snakes, state.living()) == (12, 4, [0, 2])
    assert [state.head(i) for i in range(4)] == [(1, 1), (-1, 2), (5, 5), (2, 6)]
    assert [state.length(i) for i in range(4)] == [3, 2, 3, 1]
    assert [state.health(i) for i in range(4)] == [31, 7, 99, 0]
    assert [state.alive(i) for i in range(4)] == [True, False, True, False]
    assert state.settings.hazard_damage == 14


def test_a_copy_is_independent():
    state = board()
    before = picture(state)
    copied = state.copy()
    assert copied == state
    for _ in range(3):
        copied.step([3, 2])
        copied.spawn_food(1)
    assert picture(state) == before
    assert copied != state
    state.step([3, 2])
    assert picture(copied)[0] == 3


@pytest.mark.parametrize(
    "changed",
    [
        {"width": 8},
        {"height": 8},
        {"turn": 1},
        {"food": [(6, 6), (0, 0)]},
        {"hazards": [(3, 3), (3, 3)]},
        {"snakes": [snake("a", A)]},
        {"snakes": [snake("a", A), snake("c", B)]},
        {"snakes": [snake("a", A, 99), snake("b", B)]},
        {"snakes": [snake("a", A[::-1]), snake("b", B)]},
        {"snakes": [snake("a", A), snake("b", B, eliminated_cause="hazard")]},
        {"settings": Settings(ruleset="wrapped")},
        {"settings": Settings(solo=True)},
        {"settings": Settings(hazard_damage=15)},
    ],
    ids=str,
)
def test_boards_that_differ_are_not_equal(changed):
    assert board() == board()
    assert board(**changed) != board()


def test_equality_with_something_else_and_hashing_as_a_key():
    assert board() != "a board"
    assert board() != None  # noqa: E711 - the operator itself is under test
    with pytest.raises(TypeError):
        {board(): 1}


def test_an_unknown_ruleset_is_standard():
    for name in ("", "squad", "Standard"):
        assert board(settings=Settings(ruleset=name)) == board()
    assert MOVES == ("up", "down", "left", "right")
    assert {"standard", "wrapped_constrictor"} < set(RULESETS)


@pytest.mark.parametrize(
    "changed",
    [
        {"snakes": [snake("a", A[::-1]), snake("b", B)]},
        {"snakes": [snake("a", [*A, (1, 3)]), snake("b", B)]},
        {"snakes": [snake("a", B), snake("b", A)]},
        {"snakes": [snake("a", A, 99), snake("b", B)]},
        {"snakes": [snake("a", A), snake("b", B, 99)]},
        {"snakes": [snake("a", A), snake("b", B, eliminated_cause="hazard")]},
        {"food": [(0, 0)]},
        {"food": [(0, 0), (6, 5)]},
        {"hazards": []},
        {"hazards": [(3, 3), (3, 3)]},
        {"hazards": [(3, 4)]},
        {"hazards": [(3, 10)]},
    ],
    ids=str,
)
def test_a_hash_tells_positions_apart(changed):
    assert board(**changed).hash() != board().hash()


def test_a_hash_ignores_how_the_position_came_about():
    assert board(food=[(6, 6), (0, 0)]).hash() == board().hash()
    assert board(turn=9).hash() == board().hash()
    for length, first, second in ((1, "3000", "0300"), (3, "3000", "0300")):
        start = State(7, 7, [snake("a", [(2, 1)] * length), snake("b", B)], [(0, 6)])
        one, two = start.copy(), start.copy()
        for x, y in zip(first, second, strict=True):
            one.step([int(x), 2])
            two.step([int(y), 2])
            if one.turn == 1:
                assert one.hash() != two.hash()
        assert one.living() == [0, 1]
        assert one.hash() == two.hash()


def test_hashes_of_many_positions_do_not_collide():
    rng = random.Random(5)
    seen: dict[int, tuple] = {}
    for _ in range(40):
        start = scattered(rng, 7, 7, 3, Settings(ruleset="wrapped"))
        for state in play(start, rng, 60):
            # What the hash leaves out: turn, ids, the dead, the order of food.
            alive = [(i, fields(s)[1:3]) for i, s in enumerate(state.snakes()) if state.alive(i)]
            key = (alive, sorted(state.food()))
            assert seen.setdefault(state.hash(), key) == key
    assert len(seen) > 500


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


games = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "width": st.integers(3, 25),
        "height": st.integers(3, 25),
        "snakes": st.integers(1, 8),
        "ruleset": st.sampled_from(RULESETS),
        "damage": st.sampled_from([-15, 0, 14, 40]),
        "hazards": st.sampled_from([0.0, 0.0, 0.2, 0.6]),
        "length": st.integers(1, 5),
    }
)


def opened(game: dict) -> tuple[State, random.Random]:
    rng = random.Random(game["seed"])
    snakes = min(game["snakes"], game["width"] * game["height"] - 1)
    rules = Settings(ruleset=game["ruleset"], hazard_damage=game["damage"])
    state = scattered(
        rng,
        game["width"],
        game["height"],
        snakes,
        rules,
        length=game["length"],
        hazards=game["hazards"],
    )
    return state, rng


@profile(deadline=None, max_examples=60)
@given(game=games)
def test_random_games_keep_their_bounds(game):
    state, rng = opened(game)
    constrictor = state.settings.ruleset.endswith("constrictor")
    dead: dict[int, tuple] = {}
    old = state.snakes()
    ate_from = set(state.food())
    for turn, state in enumerate(play(state, rng, 80), 1):  # noqa: B020 - the same object
        assert state.turn == turn
        now = state.snakes()
        heads = [state.head(seat) for seat in state.living()]
        assert len(set(heads)) == len(heads)
        assert all(0 <= x < state.width and 0 <= y < state.height for x, y in heads)
        for seat, s in enumerate(now):
            assert 0 <= s.health <= 100
            if seat in dead:
                if not constrictor:
                    assert fields(s) == dead[seat]
                assert s.eliminated_cause
                continue
            if not state.alive(seat):
                assert s.eliminated_on_turn == turn
                dead[seat] = fields(s)
            grown = len(s.body) - len(old[seat].body)
            assert grown in (0, 1)
            assert s.body[1 : len(old[seat].body)] == old[seat].body[:-1]
            if not constrictor:
                assert grown == (s.body[0] in ate_from)
            if grown:
                assert s.body[-1] == s.body[-2]
        assert len(set(state.food())) == len(state.food())
        assert rebuilt(state) == state
        assert rebuilt(state).hash() == state.hash()
        old, ate_from = now, set(state.food())
    assert state.game_over() == (len(state.living()) <= (state.settings.ruleset != "solo"))


@profile(deadline=None, max_examples=40)
@given(game=games)
def test_a_listed_dead_snake_changes_nothing_for_the_others(game):
    """A small board with up to four snakes and a longer list are held by different templates."""
    game = {**game, "width": min(game["width"], 11), "height": min(game["height"], 11)}
    game["snakes"] = min(4, game["snakes"])
    small, rng = opened(game)
    n = small.num_snakes
    body = [(0, 0), (0, 0), (0, 1)]
    gone = [snake(f"x{i}", body, 5, eliminated_cause="snake-self-collision") for i in range(5 - n)]
    large = rebuilt(small, snakes=small.snakes() + gone)
    for _ in range(60):
        seats = small.living()
        assert picture(large)[1][:n] == picture(small)[1]
        assert picture(large)[2:] == picture(small)[2:]
        assert (large.turn, large.living(), large.game_over()) == (
            small.turn,
            seats,
            small.game_over(),
        )
        for seat in seats:
            assert large.safe_mask(seat) == small.safe_mask(seat)
            assert large.legal_mask(seat) == small.legal_mask(seat)
        for version in (1, 2):
            assert (large.encode(version, seats) == small.encode(version, seats)).all()
        if small.game_over():
            break
        moves = moves_of(small, rng)
        assert moves_of(large, random.Random(7))[:n] == moves_of(small, random.Random(7))
        small.step(moves)
        large.step([*moves, *([0] * len(gone))])
        seed = rng.getrandbits(32)
        small.spawn_food(seed)
        large.spawn_food(seed)


def test_a_finished_game_stands_still():
    state = board(snakes=[snake("a", A), snake("b", B, eliminated_cause="hazard")])
    before = picture(state)
    assert state.game_over()
    state.step([1, 1])
    assert picture(state) == before


def test_recorded_boards_come_back_as_given():
    for line in corpus():
        state = state_of(line)
        assert [s.body for s in state.snakes()] == [
            points(s["body"]) for s in line["before"]["snakes"]
        ]
        assert state.food() == points(line["before"]["food"])
        assert state.hazards() == sorted(points(line["before"]["hazards"]))
        assert rebuilt(state).hash() == state.hash()
