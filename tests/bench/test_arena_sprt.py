"""The sequential test decides as often wrongly as it may, and soon."""

import math

import numpy as np
import pytest
from arena_games import record

from snakekit.bench.arena.schedule import Job, schedule
from snakekit.bench.arena.sprt import OUTCOMES, Sprt, SprtState, expected_score, log_ratio

PLACES = {1.0: [1, 2], 0.5: [1, 1], 0.0: [2, 1]}


def feed(test: Sprt, block: int, points: tuple[float, float]) -> None:
    """Two games with the seats swapped; `points` are those of player a."""
    for rotation, won in enumerate(points):
        seats = ("a", "b") if rotation == 0 else ("b", "a")
        places = PLACES[won] if rotation == 0 else PLACES[won][::-1]
        test.add(record(Job(2 * block + rotation, block, rotation, seats), places))


def stream(elo: float, seed: int, most: int = 5000, draws: float = 0.2) -> SprtState:
    """Feed pairs between players whose true difference is `elo`, until the test decides."""
    rng = np.random.default_rng(seed)
    score = expected_score(elo)
    chances = [score - draws / 2, draws, 1 - score - draws / 2]
    test = Sprt("a", 0, 60)
    for block in range(most):
        first, second = rng.choice([1.0, 0.5, 0.0], size=2, p=chances)
        feed(test, block, (float(first), float(second)))
        if test.state.verdict != "undecided":
            break
    return test.state


@pytest.mark.parametrize(
    ("elo", "right"), [(0, "first is not stronger"), (60, "first is stronger")]
)
def test_error_rates(elo: float, right: str) -> None:
    states = [stream(elo, seed) for seed in range(100)]
    wrong = sum(state.verdict != right for state in states)
    # 5 % are allowed; more than 11 of 100 would have a chance below 1 in 200.
    assert wrong <= 11
    assert all(state.verdict != "undecided" for state in states)
    assert 20 < np.mean([state.blocks for state in states]) < 300


def test_a_clear_difference_is_seen_soon() -> None:
    assert stream(300, 1).verdict == "first is stronger"
    assert stream(300, 1).blocks < 40
    assert stream(-200, 1).verdict == "first is not stronger"


def test_ratio_by_the_normal_approximation() -> None:
    counts = [60, 240, 420, 320, 90]
    total = sum(counts)
    mean = sum(n * s for n, s in zip(counts, OUTCOMES, strict=True)) / total
    variance = sum(n * (s - mean) ** 2 for n, s in zip(counts, OUTCOMES, strict=True)) / total
    s0, s1 = expected_score(0), expected_score(10)
    about = total * (s1 - s0) * (2 * mean - s0 - s1) / (2 * variance)
    assert log_ratio(counts, 0, 10) == pytest.approx(about, rel=0.03)
    assert log_ratio(counts, 0, 10) == pytest.approx(-log_ratio(counts, 10, 0))
    assert log_ratio([0] * 5, 0, 10) == 0


def test_blocks_count_in_order_and_without_gaps() -> None:
    test = Sprt("a", 0, 10)
    for block in (2, 1):
        feed(test, block, (1.0, 0.5))
    assert test.state.blocks == 0
    feed(test, 0, (0.0, 1.0))
    assert test.state.blocks == 3
    assert test.state.counts == (0, 0, 1, 2, 0)
    assert test.state.bound == pytest.approx(math.log(19))


@pytest.mark.parametrize("size", [2, 3, 4, 8])
def test_seats_are_balanced_exactly(size: int) -> None:
    names = [f"p{n}" for n in range(8)]
    jobs = schedule(names, size, 40 * size * 7, seed=5)
    assert [job.game for job in jobs] == list(range(40 * size * 7))
    seats = np.zeros((8, size), int)
    met = np.zeros((8, 8), int)
    for job in jobs:
        assert len(set(job.seats)) == size
        for seat, name in enumerate(job.seats):
            seats[names.index(name), seat] += 1
            for other in job.seats:
                met[names.index(name), names.index(other)] += 1
    # Everyone sits on each seat equally often, and everyone plays equally often.
    assert (seats == seats[:, :1]).all()
    assert np.ptp(seats[:, 0]) <= 1
    apart = met[~np.eye(8, dtype=bool)]
    assert np.ptp(apart) <= max(0.1 * apart.mean(), size)


def test_a_longer_schedule_begins_with_the_shorter() -> None:
    names = ["a", "b", "c", "d", "e"]
    for size in (2, 4):
        assert schedule(names, size, 500, 7)[:100] == schedule(names, size, 100, 7)
        assert schedule(names, size, 100, 7) != schedule(names, size, 100, 8)
    # Every pair comes once before any comes again.
    pairs = {frozenset(job.seats) for job in schedule(names, 2, 20, 1)}
    assert len(pairs) == 10
