"""Boards from the outside: refusals, copies, equality, hashes, random games."""

import random
import re

import pytest
from core_boards import (
    corpus,
    fields,
    moves_of,
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
