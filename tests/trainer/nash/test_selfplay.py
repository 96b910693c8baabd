"""Targets, choices and tables of self-play."""

import dataclasses

import numpy as np
import pytest

from snakekit import core
from snakekit.trainer.nash.game import Solved
from snakekit.trainer.nash.pursuit import Pursuit
from snakekit.trainer.nash.selfplay import (
    Recipe,
    by_seat,
    by_slot,
    choose,
    even_chances,
    follow_up,
    play,
)
from snakekit.trainer.nash.snakes import SnakeTable
from snakekit.trainer.nash.table import GameTable
from snakekit.trainer.scenario import parse

RECIPE = Recipe(
    turns=12, iterations=32, explore=0.1, opening_explore=0.3, opening_turns=3, trust=0.8
)


def even(slots: int):
    """A value net that knows nothing."""
    return lambda obs: np.zeros((len(obs), slots + 1), np.float32)


def test_targets_follow_the_game_until_somebody_explores():
    expected = np.array([[[0.5, 0.5]], [[0.6, 0.4]], [[0.7, 0.3]]], np.float32)
    none = np.zeros((3, 1), bool)
    final = np.zeros((3, 1, 2), np.float32)
    open_end = follow_up(expected, none, none, none, final, 0.5)
    assert open_end[:, 0, 0].tolist() == pytest.approx([0.575, 0.65, 0.7])
    won = none.copy()
    won[1] = True
    final[1] = [[1, 0]]
    decided = follow_up(expected, none, won, none, final, 0.5)
    assert decided[:, 0, 0].tolist() == pytest.approx([0.65, 0.8, 0.7])
    pure = follow_up(expected, none, won, none, final, 1.0)
    assert pure[:, 0, 0].tolist() == pytest.approx([1, 1, 0.7])
    dared = none.copy()
    dared[1] = True
    for explored, cut in ((dared, none), (none, dared)):
        stopped = follow_up(expected, explored, none, cut, final, 1.0)
        assert stopped[:, 0, 0].tolist() == pytest.approx([0.6, 0.6, 0.7])
    assert follow_up(expected, none, won, none, final, 0.0).tolist() == expected.tolist()


def test_a_discount_draws_targets_towards_an_even_chance_turn_by_turn():
    expected = np.array([[[0.5, 0.5, 0]]] * 3, np.float32)
    none = np.zeros((3, 1), bool)
    over = np.array([[False], [False], [True]])
    final = np.array([[[0, 0, 0]], [[0, 0, 0]], [[0, 1, 0]]], np.float32)
    half = np.array([[[0.5, 0.5, 0]]] * 3, np.float32)
    found = follow_up(expected, none, over, none, final, 1.0, half, 0.9)
    np.testing.assert_allclose(found[:, 0, 1], 0.5 + 0.5 * 0.9 ** np.array([3, 2, 1]), rtol=1e-6)
    np.testing.assert_allclose(found.sum(2), 1, rtol=1e-6)
    seats = np.array([[0, 2, -1], [1, 2, 3], [0, -1, -1]], np.int8)
    third = 1 / 3
    np.testing.assert_allclose(
        even_chances(seats, 4),
        [[0.5, 0, 0.5, 0, 0], [0, third, third, third, 0], [1, 0, 0, 0, 0]],
        rtol=1e-6,
    )


def test_outcomes_of_slots_and_seats():
    seats = np.array([[0, 2, -1], [1, 2, 3]], np.int8)
    slots = np.array([[0.5, 0.3, 0, 0.2], [0.1, 0.2, 0.3, 0.4]], np.float32)
    found = by_seat(slots, seats, 4)
    np.testing.assert_array_equal(found[0], np.array([0.5, 0, 0.3, 0, 0.2], np.float32))
    np.testing.assert_array_equal(found[1], np.array([0, 0.1, 0.2, 0.3, 0.4], np.float32))
    np.testing.assert_array_equal(by_slot(found, seats), slots)


def test_choices_follow_the_policy_and_explore_among_candidates():
    policy = np.zeros((2000, 2, 4), np.float32)
    policy[:, 0, 1], policy[:, 0, 2], policy[:, 1, 3] = 0.25, 0.75, 1
    allowed = policy > 0
    allowed[:, 1, 0] = True
    seats = np.tile(np.array([0, -1], np.int8), (2000, 1))
    solved = Solved(policy, allowed, np.zeros((2000, 3)), np.zeros(2000), seats)
    generator = np.random.default_rng(0)
    chosen, explored = choose(solved, np.zeros(2000), generator)
    assert not explored.any()
    assert set(chosen[:, 0]) == {1, 2}
    assert (chosen[:, 0] == 2).mean() == pytest.approx(0.75, abs=0.04)
    assert (chosen[:, 1] == 3).all()
    chosen, explored = choose(solved, np.full(2000, 1.0), generator)
    assert (chosen[:, 0] == 2).mean() == pytest.approx(0.5, abs=0.04)
    assert not explored.any()  # usual moves, and an empty slot
    policy[:, 0, 1], policy[:, 0, 2] = 0.05, 0.95
    chosen, explored = choose(solved, np.full(2000, 0.5), generator)
    assert explored.mean() == pytest.approx(0.25, abs=0.04)
    assert (chosen[explored, 0] == 1).all()


@pytest.mark.parametrize(("text", "slots"), [("7x7x2", 2), ("7x7x3", 4)])
def test_snake_games_go_on_from_where_they_were_saved(text, slots):
    tables = [SnakeTable(parse(text), 6, slots, seed=3, max_turns=20) for _ in range(2)]
    generator = np.random.default_rng(1)
    play(tables[0], even(slots), RECIPE, generator)
    tables[1].unpack(tables[0].pack())
    state = generator.bit_generator.state
    found = []
    for table in tables:
        generator.bit_generator.state = state
        found.append(play(table, even(slots), RECIPE, generator))
    for a, b in zip(*(vars(part[0]).values() for part in found), strict=True):
        np.testing.assert_array_equal(a, b)
    assert found[0][1] == found[1][1]
    assert len(found[0][0]) == 6 * RECIPE.turns
    other = SnakeTable(parse(text), 5, slots, seed=3, max_turns=20)
    with pytest.raises(ValueError, match="another kind"):
        other.unpack(tables[0].pack())


def test_positions_are_the_boards_with_distributions_for_the_living():
    table = SnakeTable(parse("7x7x4"), 8, 4, seed=5, max_turns=60)
    long = dataclasses.replace(RECIPE, turns=60)
    examples, figures = play(table, even(4), long, np.random.default_rng(2))
    np.testing.assert_allclose(examples.outcome.sum(1), 1, atol=1e-5)
    heads = [core.ALL_SEAT_COMMON + k * core.ALL_SEAT_BLOCK for k in range(4)]
    living = examples.obs[:, heads].max((2, 3)) > 0
    np.testing.assert_allclose(examples.policy.sum(2), living, atol=1e-5)
    assert (examples.outcome[:, :4][~living] == 0).all()
    assert figures["games_finished"] > 0
    assert 0 <= figures["draw_share"] <= 1


def test_a_generic_table_and_the_games_own_agree_on_what_is_certain():
    """With one turn left every outcome is exact, whatever the net says."""
    game = Pursuit(limit=1)
    table = GameTable(game, 16, seed=1, max_turns=5)
    assert len(table.expand()) == 0
    solved = table.solve(np.zeros((0, 3), np.float32), 500)
    assert solved.outcome[:, 2].max() == 0
    examples, figures = play(table, even(2), RECIPE, np.random.default_rng(0))
    assert figures["turns_per_game"] == 1
    assert examples.outcome[:, 2].max() == 0


def test_games_of_a_generic_table_go_on_from_where_they_were_saved():
    tables = [GameTable(Pursuit(), 6, seed=3, max_turns=5) for _ in range(2)]
    generator = np.random.default_rng(1)
    play(tables[0], even(2), RECIPE, generator)
    tables[1].unpack(tables[0].pack())
    state = generator.bit_generator.state
    found = []
    for table in tables:
        generator.bit_generator.state = state
        found.append(play(table, even(2), RECIPE, generator)[0])
    for a, b in zip(*(vars(part).values() for part in found), strict=True):
        np.testing.assert_array_equal(a, b)
    for other in (
        GameTable(Pursuit(), 5, seed=3, max_turns=5),
        GameTable(Pursuit(2, 2), 6, seed=3, max_turns=5),
    ):
        with pytest.raises(ValueError, match="another kind"):
            other.unpack(tables[0].pack())
