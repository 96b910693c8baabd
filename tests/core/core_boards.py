"""Boards for the tests of the core: from recorded lines, from random games, moved by symmetries."""

import gzip
import itertools
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

from snakekit import core
from snakekit.core import Settings, Snake, State

DATA = Path(__file__).parents[1] / "data"
SAMPLE = DATA / "rules_corpus_sample.jsonl.gz"
STEPS = ((0, 1), (0, -1), (-1, 0), (1, 0))

Point = tuple[int, int]
# What a board is, as plain values that two boards can be compared by.
Picture = tuple


def points(values: list) -> list[Point]:
    return [(x, y) for x, y in values]


def snake_of(entry: dict) -> Snake:
    return Snake(
        entry["id"],
        entry["health"],
        points(entry["body"]),
        entry.get("eliminatedCause", ""),
        entry.get("eliminatedBy", ""),
        entry.get("eliminatedOnTurn", 0),
    )


def settings_of(line: dict) -> Settings:
    given = line["settings"]
    return Settings(
        ruleset=line["ruleset"],
        solo=line["solo"],
        food_spawn_chance=given["foodSpawnChance"],
        minimum_food=given["minimumFood"],
        hazard_damage=given["hazardDamagePerTurn"],
        shrink_every=given["shrinkEveryNTurns"],
    )


def state_of(line: dict) -> State:
    """The board of a recorded line before its moves."""
    before = line["before"]
    return State(
        line["width"],
        line["height"],
        [snake_of(entry) for entry in before["snakes"]],
        points(before["food"]),
        points(before["hazards"]),
        turn=line["turn"],
        settings=settings_of(line),
    )


def corpus(path: Path = SAMPLE) -> Iterator[dict]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def fields(snake: Snake) -> tuple:
    return (
        snake.id,
        snake.health,
        list(snake.body),
        snake.eliminated_cause,
        snake.eliminated_by,
        snake.eliminated_on_turn,
    )


def picture(state: State) -> Picture:
    return (
        state.turn,
        [fields(snake) for snake in state.snakes()],
        state.food(),
        state.hazards(),
    )


def rebuilt(state: State, **changed: object) -> State:
    """The same board made anew from its values, some of them replaced."""
    values: dict = {
        "width": state.width,
        "height": state.height,
        "snakes": state.snakes(),
        "food": state.food(),
        "hazards": state.hazards(),
        "turn": state.turn,
        "settings": state.settings,
    }
    values.update(changed)
    return State(**values)


def snake(identity: str, body: list[Point], health: int = 100, **rest: object) -> Snake:
    return Snake(identity, health, body, **rest)


def scattered(
    rng: random.Random,
    width: int,
    height: int,
    snakes: int,
    settings: Settings,
    *,
    length: int = 3,
    food: int = 2,
    hazards: float = 0.0,
) -> State:
    """Coiled snakes on random squares: starts that no map would give and boards of any size."""
    cells = list(itertools.product(range(width), range(height)))
    rng.shuffle(cells)
    heads, rest = cells[:snakes], cells[snakes:]
    state = State(
        width,
        height,
        [snake("abcdefgh"[i], [at] * length) for i, at in enumerate(heads)],
        rest[:food],
        [p for p in cells if rng.random() < hazards],
        settings=settings,
    )
    state.initialise()
    return state


Player = Callable[[State, int, int], int]


def mixed(state: State, seat: int, seed: int) -> int:
    """Mostly greedy, sometimes at random: games that get long and still end."""
    if seed % 4 == 0:
        return core.random_move(state, seat, seed)
    return core.greedy_move(state, seat, seed)


def moves_of(state: State, rng: random.Random, player: Player = mixed) -> list[int]:
    return [
        player(state, seat, rng.getrandbits(32)) if state.alive(seat) else 0
        for seat in range(state.num_snakes)
    ]


def play(state: State, rng: random.Random, turns: int, player: Player = mixed) -> Iterator[State]:
    """The same object after each turn until the game is over; food spawns as on the map."""
    for _ in range(turns):
        if state.game_over():
            return
        state.step(moves_of(state, rng, player))
        state.spawn_food(rng.getrandbits(32))
        yield state


def joint_moves(state: State, seats: list[int]) -> Iterator[list[int]]:
    """Every joint move of `seats`; the others go straight on."""
    moves = [-1] * state.num_snakes
    for combination in itertools.product(range(4), repeat=len(seats)):
        for seat, move in zip(seats, combination, strict=True):
            moves[seat] = move
        yield moves


def after(state: State, moves: list[int]) -> State:
    copied = state.copy()
    copied.step(moves)
    return copied


def target(state: State, seat: int, move: int) -> Point:
    x, y = state.head(seat)
    dx, dy = STEPS[move]
    x, y = x + dx, y + dy
    if state.settings.ruleset.startswith("wrapped"):
        return x % state.width, y % state.height
    return x, y


def on_board(state: State, point: Point) -> bool:
    return 0 <= point[0] < state.width and 0 <= point[1] < state.height


# The 8 symmetries of a board as (swap x and y first, then mirror x, mirror y).
SYMMETRIES = list(itertools.product((False, True), repeat=3))
Symmetry = tuple[bool, bool, bool]


def turned_size(symmetry: Symmetry, width: int, height: int) -> tuple[int, int]:
    return (height, width) if symmetry[0] else (width, height)


def turned(symmetry: Symmetry, width: int, height: int, point: Point) -> Point:
    swap, mirror_x, mirror_y = symmetry
    x, y = point[::-1] if swap else point
    w, h = turned_size(symmetry, width, height)
    return (w - 1 - x if mirror_x else x), (h - 1 - y if mirror_y else y)


def turned_state(symmetry: Symmetry, state: State) -> State:
    def move(values: list[Point]) -> list[Point]:
        return [turned(symmetry, state.width, state.height, p) for p in values]

    width, height = turned_size(symmetry, state.width, state.height)
    return State(
        width,
        height,
        [
            Snake(*(v if i != 2 else move(v) for i, v in enumerate(fields(s))))
            for s in state.snakes()
        ],
        move(state.food()),
        move(state.hazards()),
        turn=state.turn,
        settings=state.settings,
    )


def to_json(state: State) -> dict:
    s = state.settings
    return {
        "width": state.width,
        "height": state.height,
        "turn": state.turn,
        "snakes": [fields(snake) for snake in state.snakes()],
        "food": state.food(),
        "hazards": state.hazards(),
        "settings": {
            "ruleset": s.ruleset,
            "solo": s.solo,
            "food_spawn_chance": s.food_spawn_chance,
            "minimum_food": s.minimum_food,
            "hazard_damage": s.hazard_damage,
            "shrink_every": s.shrink_every,
        },
    }


def from_json(board: dict) -> State:
    return State(
        board["width"],
        board["height"],
        [Snake(i, h, points(body), *rest) for i, h, body, *rest in board["snakes"]],
        points(board["food"]),
        points(board["hazards"]),
        turn=board["turn"],
        settings=Settings(**board["settings"]),
    )
