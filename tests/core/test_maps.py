"""The 25 official maps: set-up and update, against recorded turns and in games of our own.

`SNAKEKIT_CORPUS=FILE` runs the comparison over that recording instead of the committed sample.
"""

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from core_boards import SAMPLE, corpus, points, snake_of
from map_rules import EXACT, LISTS, REGIONS, Update, check_region, check_update
from map_starts import check_start, sizes

from snakekit.core import MAPS, Settings, Snake, State, StateError

CORPUS = Path(os.environ.get("SNAKEKIT_CORPUS", SAMPLE))
SEEDS = (1, 2**63 + 5)
# A map whose region grew by other random numbers than ours cannot go on from a recorded board.
OWN_START = {"hz_spiral", "hz_grow_box", "hz_expand_box", "hz_expand_scatter", "hz_scatter"}


def settings_of(line: dict) -> Settings:
    given = line["settings"]
    return Settings(
        ruleset=line["ruleset"],
        solo=line["solo"],
        food_spawn_chance=given["foodSpawnChance"],
        minimum_food=given["minimumFood"],
        hazard_damage=given["hazardDamagePerTurn"],
        shrink_every=given["shrinkEveryNTurns"],
        map=line["map"],
    )


def after_rules(line: dict) -> State:
    """The board that the map got: the turn counts only after the map in the engine."""
    rules = line["rules"]
    return State(
        line["width"],
        line["height"],
        [snake_of(entry) for entry in rules["snakes"]],
        points(rules["food"]),
        points(rules.get("hazards", line["before"]["hazards"])),
        turn=line["turn"] + 1,
        settings=settings_of(line),
    )


def bodies(snakes: list[Snake], dead: bool) -> list:
    return [s.body for s in snakes if bool(s.eliminated_cause) == dead]


def update_of(before: State, after: State, *, real: bool) -> Update:
    given = before.settings
    snakes = after.snakes()
    return Update(
        map=given.map,
        width=before.width,
        height=before.height,
        turn=before.turn - 1,
        chance=given.food_spawn_chance,
        minimum=given.minimum_food,
        every=given.shrink_every,
        royale=given.ruleset == "royale",
        food=before.food(),
        new_food=after.food(),
        hazards=before.hazards(),
        new_hazards=after.hazards(),
        living=bodies(snakes, False),
        dead=bodies(snakes, True),
        moved=[s.body for s in before.snakes()] != [s.body for s in snakes],
        real=real,
    )


def recorded(line: dict, before: State) -> Update:
    post, rules = line["post"], line["rules"]
    after = State(
        line["width"],
        line["height"],
        [snake_of(entry) for entry in post.get("snakes", rules["snakes"])],
        points(post.get("food", rules["food"])),
        points(post.get("hazards", rules.get("hazards", line["before"]["hazards"]))),
        turn=line["turn"] + 1,
        settings=before.settings,
    )
    return update_of(before, after, real=line["origin"] != "synthetic")


def lines_with_update() -> Iterator[dict]:
    return (line for line in corpus(CORPUS) if line["post"] is not None)


def test_every_map_has_its_check():
    assert set(MAPS) == set(EXACT) | set(REGIONS)
    assert not set(EXACT) & set(REGIONS)
    assert len(MAPS) == 25
    assert Settings().map == MAPS[0] == "standard"


def test_recorded_updates_obey_the_checks_and_so_do_ours():
    lines: Counter[str] = Counter()
    for line in lines_with_update():
        before = after_rules(line)
        check_update(recorded(line, before))
        for seed in SEEDS:
            after = before.copy()
            after.update_map(seed)
            own = line["map"] in OWN_START or line["origin"] == "synthetic"
            check_update(update_of(before, after, real=not own))
            again = before.copy()
            again.update_map(seed)
            assert again == after
            assert again.hash() == after.hash() == rebuilt_hash(after)
        lines[line["map"]] += 1
    assert set(lines) == set(MAPS)
    assert min(lines.values()) >= 20


def rebuilt_hash(state: State) -> int:
    """Of the same board made anew: hashes and sets are kept right from change to change."""
    settings = state.settings
    return State(
        state.width,
        state.height,
        state.snakes(),
        state.food(),
        state.hazards(),
        turn=state.turn,
        settings=settings,
    ).hash()


def test_recorded_games_start_by_the_rule_that_new_games_are_held_to():
    found: Counter[str] = Counter()
    for line in corpus(CORPUS):
        if line["turn"] or line["origin"] == "synthetic":
            continue
        before = line["before"]
        # The engine's first call has already taken the food of a constrictor game.
        eaten = "constrictor" in line["ruleset"] and line["post"] is not None
        starts = [points(entry["body"]) for entry in before["snakes"]]
        check_start(
            line["map"],
            line["width"],
            line["height"],
            line["settings"]["minimumFood"],
            starts,
            None if eaten else points(before["food"]),
            points(before["hazards"]),
        )
        ids = [entry["id"] for entry in before["snakes"]]
        new = State.new_game(line["width"], line["height"], ids, 1, settings_of(line))
        if line["map"] in EXACT:
            assert new.hazards() == points(before["hazards"])
        found[line["map"]] += 1
    assert len(found) >= 20


@pytest.mark.parametrize("name", MAPS)
def test_new_games(name: str):
    firsts = set()
    for width, height, most in sizes(name):
        for n in range(1, most + 1):
            ids = list("abcdefgh"[:n])
            for seed in range(6):
                settings = Settings(map=name, solo=n == 1)
                state = State.new_game(width, height, ids, seed, settings)
                starts = [s.body for s in state.snakes()]
                check_start(name, width, height, 1, starts, state.food(), state.hazards())
                assert all(s.health == 100 for s in state.snakes())
                assert state.turn == 0
                assert state == State.new_game(width, height, ids, seed, settings)
                firsts.add((width, height, starts[0][0]))
        if most < 8:
            with pytest.raises(StateError, match=r"^snakes: "):
                State.new_game(width, height, list("abcdefgh"[: most + 1]), 1, Settings(map=name))
    assert len(firsts) > 2 or name == "solo_maze"


@pytest.mark.parametrize(
    ("name", "width", "height", "words"),
    [
        ("arcade_maze", 11, 11, "only 19x21"),
        ("hz_castle_wall_xl", 19, 19, "only 25x25"),
        ("healing_pools", 9, 9, "7x7, 11x11 and 19x19"),
        ("sinkholes", 11, 7, "7x7, 11x11 and 19x19"),
        ("hz_hazard_pits", 19, 19, "only 11x11"),
        ("hz_inner_wall", 3, 3, "from 4"),
        ("hz_grow_box", 3, 11, "from 4"),
        ("hz_rings", 25, 7, "less flat"),
        ("solo_maze", 5, 9, "from 7"),
        ("moon", 11, 11, "'moon' is unknown, expected one of standard, empty, royale"),
    ],
)
def test_what_a_map_does_not_have_is_refused(name: str, width: int, height: int, words: str):
    with pytest.raises(StateError, match=words):
        State.new_game(width, height, ["a"], 1, Settings(map=name))


def test_a_request_with_an_unknown_map_gets_food_by_the_standard_rule():
    for name in ("moon", "standard"):
        state = State(11, 11, [Snake("a", 9, [(1, 1)])], turn=4, settings=Settings(map=name))
        state.update_map(7)
        assert len(state.food()) == 1
        if name == "moon":
            first = state.food()
    assert first == state.food()


def play(name: str, width: int, height: int, n: int, seed: int, **rules: int) -> Iterator[Update]:
    """A game of moves that are rarely fatal, with every update; snakes are made to live on."""
    rng = random.Random(seed)
    settings = Settings(map=name, solo=True, hazard_damage=0, **rules)
    state = State.new_game(width, height, list("abcdefgh"[:n]), seed, settings)
    while not state.game_over() and state.turn < 65:
        moves = []
        for seat in range(n):
            mask = state.safe_mask(seat) if state.alive(seat) else 0
            moves.append(rng.choice([m for m in range(4) if mask >> m & 1] or [0]))
        whole = state.copy()
        whole.advance(moves, seed)
        state.step(moves)
        before = state.copy()
        state.update_map(seed)
        assert whole == state
        assert state.hash() == rebuilt_hash(state)
        yield update_of(before, state, real=True)


@pytest.mark.parametrize("name", MAPS)
def test_games_obey_the_checks_on_every_turn(name: str):
    rng = random.Random(name)
    updates = 0
    for width, height, most in sizes(name):
        for seed in range(2):
            rules = {"shrink_every": rng.choice((1, 3, 10)), "minimum_food": rng.choice((0, 1, 3))}
            rules["food_spawn_chance"] = rng.choice((0, 15, 100))
            n = rng.randint(1, most)
            for update in play(name, width, height, n, seed, **rules):
                check_update(update)
                updates += 1
    assert updates > 100


@pytest.mark.parametrize("ruleset", ["royale", "standard"])
def test_regions_of_royale_nest(ruleset: str):
    """By the ruleset on any map, and by the map under any ruleset."""
    name = "standard" if ruleset == "royale" else "royale"
    for seed in range(20):
        settings = Settings(ruleset=ruleset, map=name, shrink_every=2, solo=True, hazard_damage=0)
        state = State.new_game(11, 7, ["a"], seed, settings)
        last: set = set()
        for _ in range(12):
            plain = state.copy()
            moves = [next((m for m in range(4) if state.safe_mask(0) >> m & 1), 0)]
            plain.step(moves)
            state.advance(moves, seed)
            # The new hazards come too late for this turn.
            assert [s.body for s in plain.snakes()] == [s.body for s in state.snakes()]
            assert plain.health(0) == state.health(0)
            assert last <= set(state.hazards())
            last = set(state.hazards())
            update = update_of(state, state, real=False)
            check_region(update, state.turn // 2)


def test_the_royale_ruleset_takes_a_maps_own_hazards():
    settings = Settings(ruleset="royale", map="hz_columns", shrink_every=5, hazard_damage=0)
    state = State.new_game(11, 11, ["a", "b"], 3, settings)
    assert len(state.hazards()) == 25
    state.advance([0, 0], 3)
    assert state.hazards() == []
    never = Settings(ruleset="royale", map="royale", shrink_every=0)
    state = State.new_game(11, 11, ["a", "b"], 3, never)
    state.advance([0, 0], 3)
    assert state.hazards() == []


def test_nothing_happens_to_a_finished_game():
    state = State(11, 11, [Snake("a", 50, [(1, 1)])], settings=Settings(map="hz_spiral"))
    before = state.copy()
    for seed in range(20):
        state.advance([0], seed)
    assert state == before


def test_chances_of_food():
    """Within five standard deviations, with fixed seeds."""
    for name, chance, wanted in (
        ("standard", 15, 0.14),
        ("hz_rings", 50, 0.49),
        ("arcade_maze", 15, 0.16),
        ("hz_islands_bridges", 100, 0.99),
    ):
        width, height = (19, 21) if name == "arcade_maze" else (11, 11)
        settings = Settings(map=name, food_spawn_chance=chance, minimum_food=0)
        at = next(iter(LISTS.get(name, {(4, 6)})))
        state = State(width, height, [Snake("a", 9, [(0, 0)])], [at], turn=9, settings=settings)
        tries, found = 3000, 0
        squares: Counter = Counter()
        for seed in range(tries):
            after = state.copy()
            after.update_map(seed)
            found += len(after.food()) - 1
            squares.update(after.food()[1:])
        assert abs(found / tries - wanted) < 5 * (wanted * (1 - wanted) / tries) ** 0.5
        most = len(LISTS.get(name, range(width * height)))
        assert len(squares) > 0.5 * most
        assert max(squares.values()) < 3 * found / len(squares) + 10


def first_hazards(name: str, turn: int, side: int) -> Counter:
    found: Counter = Counter()
    settings = Settings(map=name, minimum_food=0, food_spawn_chance=0)
    for seed in range(2000):
        state = State(side, side, [Snake("a", 9, [(0, 0)])], turn=turn + 1, settings=settings)
        state.update_map(seed)
        found.update(state.hazards())
    return found


@pytest.mark.parametrize(
    ("name", "turn", "low", "high"),
    [
        ("hz_spiral", 2, 3, 7),
        ("hz_grow_box", 0, 2, 9),
        ("hz_expand_box", 0, 2, 9),
        ("hz_expand_scatter", 0, 1, 10),
        ("hz_scatter", 1, 0, 10),
    ],
)
def test_where_regions_start(name: str, turn: int, low: int, high: int):
    found = first_hazards(name, turn, 11)
    squares = {(x, y) for x in range(low, high + 1) for y in range(low, high + 1)}
    assert set(found) == squares
    mean = 2000 / len(squares)
    assert all(abs(n - mean) < 5 * mean**0.5 + 3 for n in found.values())


def test_pools_vary_and_any_may_dry_up():
    layouts, left = set(), set()
    for seed in range(60):
        settings = Settings(map="healing_pools", shrink_every=1)
        state = State.new_game(11, 11, ["a", "b"], seed, settings)
        pools = state.hazards()
        layouts.add(tuple(pools))
        state.advance([0, 0], seed)
        assert state.hazards() == pools
        state.advance([0, 0], seed)
        left.add((tuple(pools), tuple(state.hazards())))
    assert len(layouts) == 4
    assert len(left) == 8


def test_long_bodies_pile_up_no_more_than_a_square_can_hold():
    body = [(0, 0), *((1, 0) for _ in range(300)), (2, 0)]
    settings = Settings(map="snail_mode", minimum_food=0, food_spawn_chance=0)
    state = State(11, 11, [Snake("a", 9, body)], turn=5, settings=settings)
    state.update_map(1)
    assert Counter(state.hazards()) == {(2, 11): 255}
