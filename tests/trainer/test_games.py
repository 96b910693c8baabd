"""Scenarios, generated games, replay and evaluation, on the real rules."""

import dataclasses

import numpy as np
import pytest

from snakekit import core
from snakekit.trainer.evaluate import Score, measure
from snakekit.trainer.generate import (
    Cancelled,
    Examples,
    Recipe,
    best_allowed,
    food_moves,
    play,
    random_allowed,
    room,
)
from snakekit.trainer.model import build
from snakekit.trainer.replay import Replay
from snakekit.trainer.scenario import Scenario, draw, parse, parse_all

RECIPE = Recipe(
    encoder=2,
    games=3,
    turns=80,
    explore=0.2,
    student_share=0.5,
    eat_bonus=300,
    seek_bonus=60,
    quiet_share=1.0,
    temperature=40,
    value_scale=700,
    outcome_weight=0.5,
)
DUEL = Scenario(7, 7, 2, depth=1)


def test_scenarios_are_read() -> None:
    assert parse("11x9x4/wrapped@3:1.5") == Scenario(11, 9, 4, "wrapped", 3, 1.5)
    assert parse("7x7x2") == Scenario(7, 7, 2, "standard", 2, 1.0)
    assert str(parse("7x7x2/constrictor@1:2")) == "7x7x2/constrictor"
    assert parse("11x9x4").shape == (9, 11)


@pytest.mark.parametrize(
    "text", ["", "7x7", "7x7x1", "2x7x2", "7x26x2", "7x7x9", "7x7x2:0", "7x7x2@0", "7x7x2/squad"]
)
def test_odd_scenarios_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="scenario"):
        parse(text)


def test_no_scenario_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        parse_all([])


def test_scenarios_are_drawn_by_weight() -> None:
    both = parse_all(["7x7x2:3", "7x7x4:1"])
    for seed in range(5):
        drawn = draw(both, 8, np.random.default_rng(seed))
        assert [s.snakes for s in drawn].count(2) == 6


def test_moves_are_chosen_among_the_allowed() -> None:
    generator = np.random.default_rng(0)
    allowed = (np.arange(16)[:, None] >> np.arange(4)) % 2 == 1
    assert allowed[5].tolist() == [True, False, True, False]
    logits = generator.normal(size=(16, 4)).astype(np.float32)
    for moves in (random_allowed(allowed, generator), best_allowed(logits, allowed)):
        assert allowed[np.arange(1, 16), moves[1:]].all()
        assert 0 <= moves[0] <= 3
    many = random_allowed(np.tile(allowed[13], (3000, 1)), generator)
    assert np.bincount(many, minlength=4) / 3000 == pytest.approx(
        [1 / 3, 0, 1 / 3, 1 / 3], abs=0.05
    )


def test_eating_moves_are_those_that_eat() -> None:
    games = DUEL.games(6, 3)
    generator = np.random.default_rng(0)
    found = 0
    for _ in range(30):
        rows = np.argwhere(games.alive).astype(np.int32)
        eats, seeks = food_moves(games, rows, 0)
        assert (seeks.sum(1) <= 1).all()
        for (game, seat), row in zip(rows.tolist(), eats, strict=True):
            for move in range(4):
                state = games.state(game)
                food = len(state.food())
                moves = [5] * state.num_snakes
                moves[seat] = move
                state.step(moves)
                if row[move]:
                    found += 1
                    assert len(state.food()) < food
        games.step(random_allowed(games.masks, generator).astype(np.int8))
    assert found > 10


def test_equal_seeds_play_equal_games() -> None:
    student = build("compact", {"channels": 8, "blocks": 1}).eval()
    first, figures = play(DUEL, RECIPE, 5, student)
    again, same = play(DUEL, RECIPE, 5, student)
    other, _ = play(DUEL, RECIPE, 6, student)
    assert figures == same
    for name in ("obs", "policy", "value"):
        np.testing.assert_array_equal(getattr(first, name), getattr(again, name))
    assert first.obs.shape != other.obs.shape or (first.obs != other.obs).any()


def test_examples_are_what_the_net_is_to_learn() -> None:
    examples, figures = play(DUEL, RECIPE, 1, None)
    assert examples.obs.shape[1:] == (core.PLANES[2], 7, 7)
    assert examples.obs.dtype == np.uint8
    np.testing.assert_allclose(examples.policy.sum(1), 1, atol=1e-5)
    assert np.abs(examples.value).max() <= 1
    assert figures["positions"] == len(examples)
    assert figures["games_finished"] > 0
    # A finished duel has one winner, so outcomes alone average to about zero.
    pure = dataclasses.replace(RECIPE, outcome_weight=1.0, turns=400)
    values = play(DUEL, pure, 1, None)[0].value
    assert set(np.unique(values)) > {-1.0, 1.0}
    decided = values[: len(values) // 2]
    assert abs(decided.mean()) < 0.35


def test_quiet_positions_can_be_thinned_out() -> None:
    every, _ = play(DUEL, RECIPE, 1, None)
    few, _ = play(DUEL, dataclasses.replace(RECIPE, quiet_share=0.0), 1, None)
    assert 0 < len(few) < len(every)
    # Where a move loses and another does not, the losing one is never taught.
    assert (few.policy == 0).any(1).all()


def test_games_stop_when_asked() -> None:
    with pytest.raises(Cancelled):
        play(DUEL, RECIPE, 1, None, cancelled=lambda: True)


def examples(count: int, start: int, side: int = 3) -> Examples:
    values = np.arange(start, start + count, dtype=np.float32)
    obs = np.broadcast_to(values.astype(np.uint8)[:, None, None, None], (count, 2, side, side))
    return Examples(obs.copy(), np.tile(values[:, None], (1, 4)), values)


def test_replay_keeps_the_newest_of_each_board() -> None:
    replay = Replay(room, {(2, 3, 3): 5, (2, 4, 4): 10})
    replay.add(examples(4, 0))
    replay.add(examples(3, 4))
    replay.add(examples(20, 100, side=4))
    assert len(replay) == 15
    generator = np.random.default_rng(0)
    seen: dict[int, set[float]] = {3: set(), 4: set()}
    for _ in range(60):
        batch = replay.sample(8, generator)
        seen[batch.obs.shape[-1]].update(batch.value.tolist())
        assert (batch.obs[:, 0, 0, 0] == batch.value).all()
        assert (batch.policy[:, 0] == batch.value).all()
    assert seen == {3: {2, 3, 4, 5, 6}, 4: set(range(110, 120))}


def test_replay_comes_back_from_its_arrays() -> None:
    replay, twin = Replay(room, {(2, 3, 3): 5}), Replay(room, {(2, 3, 3): 5})
    replay.add(examples(7, 0))
    twin.unpack(replay.pack())
    for side in (replay, twin):
        side.add(examples(2, 50))
    first = replay.sample(64, np.random.default_rng(1))
    second = twin.sample(64, np.random.default_rng(1))
    np.testing.assert_array_equal(first.obs, second.obs)
    np.testing.assert_array_equal(first.value, second.value)
    with pytest.raises(ValueError, match="other boards"):
        Replay(room, {(2, 4, 4): 5}).unpack(replay.pack())
    with pytest.raises(ValueError, match="larger"):
        Replay(room, {(2, 3, 3): 4}).unpack(replay.pack())


def test_an_empty_replay_says_so() -> None:
    with pytest.raises(ValueError, match="no positions"):
        Replay(room, {(2, 3, 3): 5}).sample(1, np.random.default_rng(0))


def test_measured_games_add_up_and_repeat() -> None:
    def flat(obs: np.ndarray) -> np.ndarray:
        return np.zeros((len(obs), 4), np.float32)

    first = measure(flat, 2, DUEL, "greedy", games=12, seed=3)
    assert first == measure(flat, 2, DUEL, "greedy", games=12, seed=3)
    assert first.games == 12
    assert first.turns > 0
    short = measure(flat, 2, DUEL, "random", games=4, seed=3, max_turns=1)
    assert short.unfinished == 4
    assert short.points == 0.5
    with pytest.raises(ValueError, match="unknown opponent"):
        measure(flat, 2, DUEL, "stockfish", games=1, seed=0)


def test_results_are_seen_from_the_policys_seat() -> None:
    """A player without a plan loses to the search from every seat."""

    def flat(obs: np.ndarray) -> np.ndarray:
        return np.zeros((len(obs), 4), np.float32)

    score = measure(flat, 2, DUEL, "search1", games=20, seed=3)
    assert score.losses >= 15


def test_the_interval_covers_the_share() -> None:
    score = Score(wins=160, losses=40, draws=0, unfinished=0, turns=1.0)
    low, high = score.interval()
    assert low < 0.8 < high
    assert (low, high) == pytest.approx((0.739, 0.850), abs=0.001)
