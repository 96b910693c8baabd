"""Figures of a round: what they say about games that are known by hand, and alarms on them."""

import numpy as np
import pytest

from snakekit.trainer.alarms import Alarms
from snakekit.trainer.nash.figures import CHARTS, SHOWN, happened, rules
from snakekit.trainer.nash.game import Ends, Solved
from snakekit.trainer.nash.selfplay import Recipe, play
from snakekit.trainer.nash.snakes import SnakeTable
from snakekit.trainer.nash.workers import combined
from snakekit.trainer.scenario import parse


def solved(policy: list[list[float]], gap: float) -> Solved:
    """One game of two seats."""
    found = np.array([policy], np.float32)
    seats = np.array([[0, 1]], np.int8)
    expected = np.array([[0.5, 0.5, 0.0]], np.float32)
    return Solved(found, found > 0, expected, np.array([gap], np.float32), seats)


def ended(over: bool, outcome: list[float], cut: bool = False, **deaths: int) -> Ends:
    found = np.array([outcome], np.float32)
    return Ends(np.array([over]), np.array([cut]), found, deaths)


NOTHING = [0.0, 0.0, 0.0]


def test_two_turns_of_a_game_by_hand() -> None:
    turns = [
        solved([[0.5, 0.5, 0, 0], [1, 0, 0, 0]], 0.2),
        solved([[0.05, 0.95, 0, 0], [0, 1, 0, 0]], 0.0),
        solved([[1, 0, 0, 0], [0, 1, 0, 0]], 0.1),
    ]
    ends = [ended(False, NOTHING), ended(True, [1, 0, 0], head=1, wall=3), ended(False, NOTHING)]
    expected = np.array([[[0.5, 0.5, 0]], [[0.9, 0.1, 0]], [[0.2, 0.8, 0]]], np.float32)
    explored = np.array([[True], [False], [False]])
    found = happened(turns, ends, explored, expected)
    assert found["positions"] == 3
    assert found["games_finished"] == 1
    assert found["turns_per_game"] == 3
    assert found["draw_share"] == 0
    assert found["nash_gap"] == pytest.approx(0.1)
    assert found["mixed_share"] == pytest.approx(1 / 6)
    assert found["explored_share"] == pytest.approx(1 / 3)
    # The last turn's game is open: only the first two are compared with the outcome (1, 0).
    assert found["value_error"] == pytest.approx((0.5 + 0.5 + 0.1 + 0.1) / 4)
    assert found["explained_variance"] == pytest.approx(1 - (0.25 + 0.01) / 2 / 0.25, abs=1e-5)


def test_games_that_are_cut_off_tell_nothing_of_the_value() -> None:
    turns = [solved([[1, 0, 0, 0], [1, 0, 0, 0]], 0.0)] * 2
    ends = [ended(False, NOTHING, cut=True), ended(True, [0, 0, 1])]
    expected = np.full((2, 1, 3), 1 / 3, np.float32)
    found = happened(turns, ends, np.zeros((2, 1), bool), expected)
    assert found["value_error"] == pytest.approx(1 / 3)
    assert found["draw_share"] == 1
    open_end = happened(turns[:1], ends[:1], np.zeros((1, 1), bool), expected[:1])
    assert "value_error" not in open_end
    assert not any(key.startswith("death/") for key in open_end)


def test_real_games_know_their_causes_of_death() -> None:
    table = SnakeTable(parse("5x5x3"), 8, 3, seed=1, max_turns=60)
    recipe = Recipe(
        turns=40, iterations=16, explore=0.2, opening_explore=0.2, opening_turns=0, trust=0.5
    )
    even = lambda obs: np.zeros((len(obs), 4), np.float32)  # noqa: E731
    _, found = play(table, even, recipe, np.random.default_rng(0))
    deaths = [value for key, value in found.items() if key.startswith("death/")]
    assert sum(deaths) == pytest.approx(1)
    assert {key for key, *_ in SHOWN if key.startswith("death/")} <= set(found)
    assert 0 < found["value_error"] < 1


def test_workers_count_together() -> None:
    parts = [
        {"positions": 10.0, "games_finished": 2.0, "nash_gap": 0.1, "value_error": 0.4},
        {"positions": 30.0, "games_finished": 1.0, "nash_gap": 0.3},
    ]
    found = combined(parts)
    assert (found["positions"], found["games_finished"]) == (40, 3)
    assert found["nash_gap"] == pytest.approx(0.25)
    assert found["value_error"] == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("draw_share", 0.6, "are drawn"),
        ("turns_per_game", 4.0, "collapse"),
        ("target_entropy", 1e-4, "entropy fell"),
        ("outcome_kl", float("nan"), "not a finite number"),
        ("explained_variance", -0.7, "explains"),
    ],
)
def test_alarms_sound_in_time(key: str, value: float, words: str) -> None:
    alarms = Alarms(rules())
    said = [found for _ in range(12) for found in alarms.check({key: value})]
    assert len(said) == 1
    assert words in said[0]
    healthy = {"draw_share": 0.1, "turns_per_game": 50.0, "target_entropy": 0.3}
    assert not Alarms(rules()).check(healthy)


def test_every_shown_figure_has_a_plot() -> None:
    plotted = {key for chart in CHARTS for key, _ in chart.lines}
    assert {key for key, *_ in SHOWN} <= plotted
