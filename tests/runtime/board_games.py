"""Random games on boards of any kind, and changed JSON, for the tests of the formats."""

import itertools
import json
import random
from typing import Any

from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st

from snakekit import core
from snakekit.core import Settings, Snake, State
from snakekit.runtime import wire

Json = dict[str, Any]
LONG = "a" + "é" * 60
RULESETS = [*core.RULESETS, "a ruleset of tomorrow"]
texts = st.text(max_size=20)
odd_texts = st.sampled_from(["", "0", "é" * 40, '"\\', "\x00\n\u2028", "🐍", "isDraw"])


def start(dice: random.Random, settings: Settings, count: int) -> State:
    """A board of any size with coiled snakes, food and hazards on random squares."""
    width, height = dice.randint(3, 25), dice.randint(3, 25)
    squares = list(itertools.product(range(width), range(height)))
    dice.shuffle(squares)
    hazards = [p for p in squares if dice.random() < 0.2] * dice.choice((0, 1, 3))
    if hazards:
        # The map snail_mode announces hazards above the board.
        hazards.append((dice.randrange(width), dice.randrange(height, 2 * height)))
    state = State(
        width,
        height,
        [Snake(f"s{i}", 100, [squares[i]] * 3) for i in range(count)],
        squares[count : count + dice.randint(0, 6)],
        hazards,
        turn=dice.choice((0, 7, 10**9 - 500)),
        settings=settings,
    )
    state.initialise()
    return state


def random_settings(dice: random.Random, ruleset: str, *, solo: bool) -> Settings:
    return Settings(
        ruleset=ruleset,
        solo=solo,
        map=dice.choice((*core.MAPS, "standard", "a map of tomorrow")),
        food_spawn_chance=dice.randint(0, 100),
        minimum_food=dice.randint(0, 25),
        hazard_damage=dice.randint(-100, 100),
        shrink_every=dice.randint(0, 50),
    )


def turns(dice: random.Random, state: State, count: int) -> list[State]:
    """The boards of a game of `count` turns at most, deaths included."""
    found, seed = [state.copy()], dice.getrandbits(32)
    for _ in range(count):
        if state.game_over():
            break
        moves = [
            core.random_move(state, i, dice.getrandbits(32)) if state.alive(i) else 0
            for i in range(state.num_snakes)
        ]
        if dice.random() < 0.2:
            moves[dice.randrange(len(moves))] = dice.randint(-1, 3)
        state.advance(moves, seed)
        found.append(state.copy())
    return found


def game_of(settings: Settings) -> wire.Game:
    return wire.game_object(
        game_id="g",
        ruleset=settings.ruleset,
        map_name=settings.map,
        timeout_ms=33,
        settings=settings,
    )


def living_only(state: State) -> State:
    return State(
        state.width,
        state.height,
        [s for s in state.snakes() if not s.eliminated_cause],
        state.food(),
        state.hazards(),
        turn=state.turn,
        settings=state.settings,
    )


games = given(
    seed=st.integers(0, 2**32),
    ruleset=st.sampled_from(RULESETS),
    count=st.integers(1, 8),
    text=texts | odd_texts,
)
many = profile(max_examples=60, deadline=None)


def change(value: Json, path: tuple[Any, ...], new: Any) -> Json:
    made = json.loads(json.dumps(value))
    node = made
    for key in path[:-1]:
        node = node[key]
    if new is KeyError:
        del node[path[-1]]
    else:
        node[path[-1]] = new
    return made


def duel() -> State:
    return State(5, 5, [Snake("a", 9, [(1, 1), (1, 0)]), Snake("b", 9, [(3, 3), (3, 4)])])
