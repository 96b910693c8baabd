"""Regret matching and the exact solver against scipy's linear programs and known games."""

import itertools
import time

import numpy as np
import pytest
from scipy.optimize import linprog

from snakekit import core


def lp_value(matrix: np.ndarray) -> float:
    """The row player's value of a zero-sum game."""
    m, n = matrix.shape
    found = linprog(
        np.r_[np.zeros(m), -1.0],
        A_ub=np.c_[-matrix.T, np.ones(n)],
        b_ub=np.zeros(n),
        A_eq=[[1.0] * m + [0.0]],
        b_eq=[1.0],
        bounds=[(0, None)] * m + [(None, None)],
    )
    assert found.success
    return float(-found.fun)


def zero_sum(matrix: np.ndarray) -> np.ndarray:
    return np.stack([matrix, -matrix], -1).astype(np.float32)


def slow_gain(utility: np.ndarray, policies: list[np.ndarray]) -> tuple[np.ndarray, float]:
    """Values and NashConv by summing over all joint actions."""
    seats = utility.ndim - 1
    chances = np.ones(utility.shape[:-1])
    for seat, policy in enumerate(policies):
        shape = [1] * seats
        shape[seat] = -1
        chances = chances * policy.reshape(shape)
    values = (chances[..., None] * utility).sum(tuple(range(seats)))
    gain = 0.0
    for seat in range(seats):
        best = -np.inf
        for action in range(utility.shape[seat]):
            other = [np.eye(len(p))[action] if s == seat else p for s, p in enumerate(policies)]
            weight = np.ones(utility.shape[:-1])
            for s, p in enumerate(other):
                shape = [1] * seats
                shape[s] = -1
                weight = weight * p.reshape(shape)
            best = max(best, float((weight * utility[..., seat]).sum()))
        gain += best - values[seat]
    return values, gain


@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (2, 3), (3, 3), (4, 4), (5, 2), (9, 14)])
def test_exact_solver_agrees_with_scipy(shape):
    rng = np.random.default_rng(1)
    for _ in range(25):
        matrix = rng.choice([rng.uniform(-1, 1, shape), rng.integers(-2, 3, shape)])
        row, col, value = core.solve_zero_sum(matrix)
        assert value == pytest.approx(lp_value(matrix), abs=1e-7)
        assert row.sum() == pytest.approx(1)
        assert col.sum() == pytest.approx(1)
        assert min(row.min(), col.min()) >= 0
        assert (row @ matrix).min() >= value - 1e-7
        assert (matrix @ col).max() <= value + 1e-7


@pytest.mark.parametrize("shape", [(2, 2), (3, 3), (4, 3), (6, 5)])
def test_regret_matching_reaches_the_value_within_a_thousandth(shape):
    rng = np.random.default_rng(2)
    games = np.stack([zero_sum(rng.uniform(-1, 1, shape)) for _ in range(40)])
    _, values, gaps = core.solve_stages(games, iterations=8000)
    exact = [lp_value(game[..., 0].astype(float)) for game in games]
    np.testing.assert_allclose(values[:, 0], exact, atol=1e-3)
    np.testing.assert_allclose(values.sum(1), 0, atol=1e-5)
    assert gaps.max() < 2e-3


def test_the_gap_shrinks_faster_than_the_root_of_the_iterations():
    rng = np.random.default_rng(3)
    games = np.stack([zero_sum(rng.uniform(-1, 1, (3, 3))) for _ in range(200)])
    gaps = [float(core.solve_stages(games, iterations=n)[2].mean()) for n in (64, 256, 1024)]
    assert gaps[0] < 0.03
    assert gaps[1] < gaps[0] / 2.5
    assert gaps[2] < gaps[1] / 2.5


def test_weighting_and_optimism_together_help():
    rng = np.random.default_rng(4)
    games = [zero_sum(rng.uniform(-1, 1, (3, 3))) for _ in range(100)]

    def mean_gap(**options):
        return np.mean([core.solve_stage(g, iterations=256, **options)[2] for g in games])

    plain = mean_gap(linear=False, optimistic=False)
    weighted = mean_gap(optimistic=False)
    assert mean_gap() < min(plain, weighted) / 1.5


def test_sampled_form_converges_and_repeats_by_seed():
    rng = np.random.default_rng(5)
    game = zero_sum(rng.uniform(-1, 1, (20, 20)))
    few = core.solve_stage(game, iterations=256, seed=1)
    again = core.solve_stage(game, iterations=256, seed=1)
    other = core.solve_stage(game, iterations=256, seed=2)
    many = core.solve_stage(game, iterations=16_000, seed=1)
    assert few[2] == again[2] != other[2]
    assert many[2] < few[2] / 4
    assert many[1][0] == pytest.approx(lp_value(game[..., 0].astype(float)), abs=0.03)
    full = core.solve_stage(game, iterations=256, method="full")
    assert full[2] < few[2]


@pytest.mark.parametrize("seats", [1, 2, 3, 4])
def test_values_and_gap_are_what_they_say(seats):
    rng = np.random.default_rng(6)
    for shape in itertools.islice(itertools.product((1, 2, 3), repeat=seats), 1, 8):
        utility = rng.uniform(-1, 1, (*shape, seats)).astype(np.float32)
        for method in ("full", "sampled"):
            policies, value, gap = core.solve_stage(utility, iterations=50, method=method)
            values, gain = slow_gain(utility, policies)
            np.testing.assert_allclose(value, values, atol=1e-5)
            assert gap == pytest.approx(gain, abs=1e-5)
            assert all(p.sum() == pytest.approx(1, abs=1e-5) for p in policies)


def test_three_and_four_seats_find_the_only_sensible_play():
    """Each seat has an action that is best whatever the others do."""
    for seats in (3, 4):
        rng = np.random.default_rng(seats)
        utility = rng.uniform(0, 0.3, (3,) * seats + (seats,)).astype(np.float32)
        for seat in range(seats):
            np.moveaxis(utility, seat, 0)[seat % 3, ..., seat] += 0.5
        policies, _, gap = core.solve_stage(utility, iterations=256)
        assert gap < 1e-3
        assert all(p[seat % 3] > 0.99 for seat, p in enumerate(policies))


def test_rock_paper_scissors_stays_even_and_a_fixed_seat_is_exploited():
    matrix = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]], float)
    policies, value, gap = core.solve_stage(zero_sum(matrix), iterations=256)
    np.testing.assert_allclose(policies, np.full((2, 3), 1 / 3), atol=0.02)
    assert abs(value[0]) < 1e-3
    assert gap < 0.02
    for game in (zero_sum(matrix), zero_sum(np.pad(matrix, ((0, 2), (0, 0)), constant_values=-2))):
        rocks = np.array([0.8, 0.1, 0.1], np.float32)
        best, value, gap = core.solve_stage(game, iterations=500, fixed=[None, rocks])
        np.testing.assert_array_equal(best[1], rocks)
        assert best[0][1] > 0.99
        assert value[0] == pytest.approx(0.7, abs=0.01)
        assert gap < 0.01


def test_one_policy_where_all_actions_are_equal_is_uniform():
    policies, value, gap = core.solve_stage(np.full((3, 4, 2), 0.5, np.float32))
    np.testing.assert_allclose(policies[0], 1 / 3, atol=1e-6)
    np.testing.assert_allclose(policies[1], 1 / 4, atol=1e-6)
    np.testing.assert_allclose(value, 0.5, atol=1e-6)
    assert gap < 1e-6


def test_a_thousand_iterations_are_a_matter_of_microseconds():
    """The bound is forty times the usual time, so that a busy machine passes and a bug does not."""
    games = np.stack([zero_sum(np.random.default_rng(i).uniform(-1, 1, (3, 3))) for i in range(40)])
    best = min(_seconds(games) for _ in range(5))
    assert best / len(games) < 0.002


def _seconds(games: np.ndarray) -> float:
    begun = time.perf_counter()
    core.solve_stages(games, iterations=1000)
    return time.perf_counter() - begun


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: core.solve_stage(np.zeros((3, 3))), "utility: expected"),
        (lambda: core.solve_stage(np.zeros((3, 0, 2))), "utility: expected"),
        (lambda: core.solve_stage(np.zeros((3, 3, 2)), iterations=0), "iterations: expected"),
        (lambda: core.solve_stage(np.zeros((3, 3, 2)), method="best"), "method: expected"),
        (lambda: core.solve_stage(np.zeros((2, 2, 2, 3)), method="exact"), "exact is for two"),
        (lambda: core.solve_stage(np.zeros((2, 2, 2)), fixed=[None]), "fixed: expected"),
        (lambda: core.solve_stage(np.zeros((2, 2, 2)), fixed=[None, [1.0]]), r"fixed\[1\]"),
        (lambda: core.solve_stages(np.zeros((2, 2, 2))), "utility: expected"),
        (lambda: core.solve_stage(np.full((2, 2, 2), np.nan)), "utility: expected finite"),
        (lambda: core.solve_zero_sum(np.zeros(3)), "matrix: expected"),
        (lambda: core.solve_zero_sum([[np.inf]]), "matrix: expected finite"),
    ],
)
def test_wrong_calls_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
