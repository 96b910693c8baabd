"""Masks against brute force over the moves of all snakes.

A safe move is one that is not certain death. The others are taken to stay on the board where they
can: a body would also open up when its owner leaves over the edge in the same turn, but nobody is
to count on that.
"""

import itertools
import random

import pytest
from core_boards import (
    after,
    corpus,
    moves_of,
    on_board,
    play,
    scattered,
    snake,
    state_of,
    target,
)

from snakekit import core
from snakekit.core import Settings, State

PLAYERS = (
    core.random_move,
    core.greedy_move,
    lambda state, seat, seed: core.reflex_move(state, seat),
)


def staying(state: State, seat: int) -> list[int]:
    """Moves that do not leave the board; there are always at least two."""
    return [move for move in range(4) if on_board(state, target(state, seat, move))]


def survives(state: State, seat: int, move: int) -> bool:
    """Is there a joint move of the others, all on the board, that `move` survives?"""
    others = [i for i in state.living() if i != seat]
    moves = [-1] * state.num_snakes
    moves[seat] = move
    for joint in itertools.product(*(staying(state, i) for i in others)):
        for other, chosen in zip(others, joint, strict=True):
            moves[other] = chosen
        if after(state, moves).alive(seat):
            return True
    return False


def regular(state: State, seat: int) -> bool:
    """No cell twice, the stack at the tail aside."""
    body = state.snakes()[seat].body
    while len(body) > 1 and body[-1] == body[-2]:
        body = body[:-1]
    return len(set(body)) == len(body)


def check(state: State) -> tuple[int, int]:
    """Compare every mask of a board; how many moves were refused and allowed."""
    refused = allowed = 0
    living = state.living()
    plain = (
        not state.hazards()
        and all(regular(state, seat) for seat in living)
        and all(state.health(seat) > 1 for seat in living)
    )
    for seat in living:
        body = state.snakes()[seat].body
        mask, legal = state.safe_mask(seat), state.legal_mask(seat)
        for move in range(4):
            to = target(state, seat, move)
            neck = len(body) > 1 and to == body[1]
            assert bool(legal >> move & 1) == (on_board(state, to) and not neck)
            if not mask >> move & 1:
                refused += 1
                assert not survives(state, seat, move), (seat, move)
            else:
                allowed += 1
                if plain:
                    assert survives(state, seat, move), (seat, move)
        for player in PLAYERS:
            chosen = player(state, seat, state.turn)
            assert 0 <= chosen < 4
            assert mask == 0 or mask >> chosen & 1
            assert mask or not legal or legal >> chosen & 1
    return refused, allowed


def starting(rng: random.Random, ruleset: str, health: int) -> State:
    width, height = rng.randint(3, 7), rng.randint(3, 7)
    snakes = rng.randint(1, 3)
    state = scattered(
        rng, width, height, snakes, Settings(ruleset=ruleset), length=rng.randint(1, 4)
    )
    if health == 100:
        return state
    hungry = [snake(s.id, s.body, rng.randint(1, health)) for s in state.snakes()]
    return State(width, height, hungry, state.food(), settings=state.settings)


@pytest.mark.parametrize(
    "ruleset", ["standard", "wrapped", "constrictor", "wrapped_constrictor", "solo"]
)
@pytest.mark.parametrize("health", [100, 5])
def test_masks_of_random_games(ruleset, health):
    rng = random.Random(f"{ruleset} {health}")
    refused = allowed = 0
    for _ in range(25):
        start = starting(rng, ruleset, health)
        for state in play(start, rng, 25):
            if state.game_over():
                break
            more = check(state)
            refused, allowed = refused + more[0], allowed + more[1]
    assert refused > 100
    assert allowed > 100


@pytest.mark.parametrize("damage", [-30, 0, 14, 60])
def test_masks_among_hazards(damage):
    """Hazards can kill the owner of a body first, so that it blocks nobody."""
    rng = random.Random(damage)
    refused = 0
    for _ in range(10):
        rules = Settings(ruleset="royale", hazard_damage=damage)
        start = scattered(rng, 5, 5, 3, rules, hazards=0.5)
        hungry = [snake(s.id, s.body, rng.randint(1, 70)) for s in start.snakes()]
        start = State(5, 5, hungry, start.food(), start.hazards() * 2, settings=rules)
        for state in play(start, rng, 20):
            if not state.game_over():
                refused += check(state)[0]
    assert refused > 50


def test_masks_of_recorded_boards():
    count = 0
    for line in corpus():
        state = state_of(line)
        if len(state.living()) > 2 or state.game_over():
            continue
        check(state)
        count += 1
    assert count > 200


A_BODY = [(2, 2), (2, 1), (1, 1), (1, 2), (1, 3)]


def test_an_own_tail_that_moves_on_is_safe_and_a_stacked_one_is_not():
    rules = Settings(solo=True)
    circle = [(2, 2), (2, 1), (1, 1), (1, 2)]
    state = State(7, 7, [snake("a", circle)], settings=rules)
    assert state.safe_mask(0) == 0b1101
    state = State(7, 7, [snake("a", [*circle, (1, 2)])], settings=rules)
    assert state.safe_mask(0) == 0b1001
    state = State(7, 7, [snake("a", A_BODY)], settings=rules)
    assert state.safe_mask(0) == 0b1001


def test_hunger_decides_unless_there_is_food():
    state = State(7, 7, [snake("a", A_BODY, 1)], [(3, 2)], settings=Settings(solo=True))
    assert state.safe_mask(0) == 0b1000
    assert core.random_move(state, 0, 1) == core.reflex_move(state, 0) == 3


def test_a_single_segment_that_eats_dies_on_its_own_growth():
    state = State(7, 7, [snake("a", [(2, 2)])], [(3, 2)], settings=Settings(solo=True))
    assert not after(state, [3]).alive(0)
    assert state.safe_mask(0) == 0b0111
    assert state.legal_mask(0) == 0b1111


def test_a_body_beside_the_edge_is_not_open():
    """Its owner could free the cell by leaving the board, which nobody is to count on."""
    wall = snake("b", [(0, 3), (1, 3), (2, 3), (3, 3)])
    state = State(7, 7, [snake("a", [(2, 2), (2, 1), (2, 0)]), wall])
    assert state.safe_mask(0) == 0b1100
    assert after(state, [0, 2]).alive(0)


def test_without_a_safe_move_players_stay_legal():
    inside = snake("a", [(0, 0), (0, 1), (1, 1), (1, 0), (2, 0), (2, 1)])
    state = State(7, 7, [inside], settings=Settings(solo=True))
    assert state.safe_mask(0) == 0
    assert state.legal_mask(0) == 0b1000
    for player in PLAYERS:
        assert player(state, 0, 3) == 3


def test_players_are_deterministic_and_differ():
    state = State.new_game(11, 11, ["a", "b"], 4)
    rng = random.Random(4)
    chosen = {seed: core.random_move(state, 0, seed) for seed in range(40)}
    assert chosen == {seed: core.random_move(state, 0, seed) for seed in range(40)}
    assert set(chosen.values()) == {m for m in range(4) if state.safe_mask(0) >> m & 1}
    lengths = []
    for player in (core.random_move, core.greedy_move):
        state = State.new_game(11, 11, ["a"], 4, Settings(solo=True))
        for _ in range(100):
            state.step(moves_of(state, rng, player))
            state.spawn_food(rng.getrandbits(32))
        lengths.append(state.length(0))
    assert lengths[1] > lengths[0] + 3
