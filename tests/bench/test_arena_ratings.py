"""Ratings, intervals, cycles: known strengths come back, and chance is told from evidence."""

import itertools
import math

import msgspec
import numpy as np
import pytest
from arena_games import NAMES, duels, games, record

from snakekit.bench.arena.payoff import Payoff, cyclicity, decompose, measure
from snakekit.bench.arena.ratings import ELO, Likelihood, choices, rate, second_opinion
from snakekit.bench.arena.schedule import Job
from snakekit.bench.arena.summary import summarize, tallies

TRUTH = [200.0, 100.0, 0.0, -100.0, -200.0]


@pytest.mark.parametrize("size", [2, 4])
def test_known_strengths_come_back(size: int) -> None:
    played = games(NAMES, TRUTH, size=size, count=4000, seed=3)
    found = rate(played, NAMES, resamples=100)
    for rating, elo in zip(found, TRUTH, strict=True):
        assert abs(rating.elo - elo) < 30
        assert rating.low < elo < rating.high
        assert rating.half_width < 40
    assert sum(r.games for r in found) == size * len(played)


def test_two_players_give_the_elo_formula() -> None:
    played = duels({("a", "b"): 75}, ["a", "b"], 100)
    a, b = rate(played, ["a", "b"], resamples=100)
    # The prior of 1000 Elo pulls by less than one point.
    assert a.elo - b.elo == pytest.approx(400 * math.log10(3), abs=1)
    anchored = rate(played, ["a", "b"], resamples=100, anchor="b")
    assert anchored[1].elo == anchored[1].low == anchored[1].high == 0
    assert anchored[0].elo == pytest.approx(a.elo - b.elo)


def test_a_draw_is_half_a_win_and_half_a_loss() -> None:
    jobs = [Job(n, n, 0, ("a", "b")) for n in range(40)]
    places = [[1, 1]] * 20 + [[1, 2]] * 20
    drawn = [record(job, p) for job, p in zip(jobs, places, strict=True)]
    won = duels({("a", "b"): 30}, ["a", "b"], 40)
    assert np.allclose(Likelihood(drawn, ["a", "b"]).fit(), Likelihood(won, ["a", "b"]).fit())


def test_ties_are_the_mean_over_all_orders() -> None:
    sets = dict(choices([5, 6, 7], [2, 1, 2]))
    assert sets == {(5, 6, 7): 1, (5, 7): 1, (5,): 0.5, (7,): 0.5}


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    names, elo = NAMES[:4], [60.0, 20.0, -20.0, -60.0]
    inside = 0
    for seed in range(25):
        played = games(names, elo, size=2, count=240, seed=100 + seed)
        found = rate(played, names, resamples=100)
        inside += sum(r.low <= e <= r.high for r, e in zip(found, elo, strict=True))
    # Of 100 intervals 95 should hold; fewer than 87 has a chance of 1 in 2000.
    assert 87 <= inside < 100


def test_someone_who_never_lost_has_a_wide_interval() -> None:
    found = rate(duels({("a", "b"): 50}, ["a", "b"], 50), ["a", "b"], resamples=100)
    assert found[0].elo > 250
    assert found[0].half_width > 150


def test_blocks_of_equal_games_widen_the_interval() -> None:
    jobs = [Job(n, n // 10, n % 10, ("a", "b")) for n in range(400)]
    alike = [record(job, [1, 2] if job.block % 2 else [2, 1]) for job in jobs]
    single = [
        record(Job(j.game, j.game, 0, j.seats), r.places) for j, r in zip(jobs, alike, strict=True)
    ]
    wide = rate(alike, ["a", "b"], resamples=200)[0].half_width
    narrow = rate(single, ["a", "b"], resamples=200)[0].half_width
    assert wide > 2.5 * narrow


def test_openskill_ranks_alike() -> None:
    played = games(NAMES, TRUTH, size=4, count=800, seed=8)
    opinion = second_opinion(played, NAMES)
    assert sorted(NAMES, key=lambda name: -opinion[name][0]) == NAMES


def test_pure_order_has_no_cycles() -> None:
    r = np.array([3.0, 1.0, -1.0, -3.0])
    payoff = r[:, None] - r[None, :]
    played = ~np.eye(4, dtype=bool)
    found, cyclic = decompose(payoff, played)
    assert np.allclose(found, r)
    assert np.allclose(cyclic, 0)
    assert cyclicity(payoff, played) == pytest.approx(0, abs=1e-12)
    # Two pairs less, and the order still explains all.
    played[0, 3] = played[3, 0] = played[1, 2] = played[2, 1] = False
    assert cyclicity(payoff, played) == pytest.approx(0, abs=1e-12)


def test_rock_paper_scissors_is_nothing_but_a_cycle() -> None:
    names = ["rock", "paper", "scissors"]
    played = duels(
        {("rock", "paper"): 10, ("rock", "scissors"): 90, ("paper", "scissors"): 10}, names, 100
    )
    payoff = Payoff.from_records(played, names)
    cycles = measure(payoff)
    assert cycles.cyclicity == pytest.approx(1)
    assert cycles.significant
    assert (cycles.triples, cycles.intransitive, cycles.certain) == (1, 1, 1)
    assert cycles.examples == [("rock", "scissors", "paper")]
    assert np.allclose(np.nan_to_num(payoff.scores + payoff.scores.T, nan=1), 1)
    # Somebody whom all three beat adds order but no cycle.
    assert 0 < cyclicity(_with_loser(payoff.log_odds()), ~np.eye(4, dtype=bool)) < 1


def _with_loser(odds: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    wider = np.zeros((4, 4))
    wider[:3, :3] = odds
    wider[:3, 3], wider[3, :3] = 3, -3
    return wider


def test_chance_is_seldom_taken_for_a_cycle() -> None:
    alarms = 0
    for seed in range(40):
        played = games(NAMES, TRUTH, size=2, count=300, seed=seed)
        alarms += measure(Payoff.from_records(played, NAMES)).significant
    assert alarms <= 6


@pytest.mark.parametrize(("size", "elo"), [(2, 0), (4, 0), (2, 400)])
def test_a_pure_order_seldom_looks_cyclic(size: int, elo: float) -> None:
    """Equals too, all of whose payoff is chance; at 5 % more than 8 of 60 are one in 1,000."""
    ranks = [elo * (2 - n) for n in range(4)]
    alarms = 0
    for seed in range(60):
        played = games(NAMES[:4], ranks, size=size, count=240, seed=seed)
        alarms += measure(Payoff.from_records(played, NAMES[:4])).significant
    assert alarms <= 8


def test_games_that_are_copies_of_each_other_are_no_evidence() -> None:
    alarms = 0
    for seed in range(40):
        once = games(NAMES[:4], [0, 0, 0, 0], size=2, count=144, seed=seed)
        copies = [msgspec.structs.replace(r, game=9 * r.game + n) for r in once for n in range(9)]
        alarms += measure(Payoff.from_records(copies, NAMES[:4])).significant
    assert alarms <= 6


def test_a_weak_cycle_shows_in_many_games() -> None:
    names = ["rock", "paper", "scissors", "other"]
    scores = dict.fromkeys(itertools.combinations(names, 2), 200)
    scores |= {("rock", "paper"): 160, ("paper", "scissors"): 160, ("rock", "scissors"): 240}
    assert measure(Payoff.from_records(duels(scores, names, 400), names)).p_value < 0.01


def test_one_pair_and_nothing_between_equals() -> None:
    even = Payoff.from_records(duels({("a", "b"): 5}, ["a", "b"], 10), ["a", "b"])
    cycles = measure(even)
    assert (cycles.cyclicity, cycles.triples, cycles.significant) == (0, 0, False)


def test_tallies_count_every_game_once() -> None:
    jobs = [Job(n, 0, n, ("a", "b", "c", "d")) for n in range(3)]
    places = [[1, 2, 3, 4], [1, 1, 3, 3], [4, 1, 2, 2]]
    found = tallies([record(j, p) for j, p in zip(jobs, places, strict=True)], NAMES[:4])
    assert [(t.wins, t.draws, t.losses) for t in found] == [
        (1, 1, 1), (1, 1, 1), (0, 0, 3), (0, 0, 3)
    ]  # fmt: skip
    assert sum(t.points for t in found) == pytest.approx(3 * 2)
    assert found[0].points == pytest.approx(1 + (3 - 0.5) / 3 + 0)
    assert found[3].deaths == {"wall-collision": 3}


def test_the_target_of_precision_holds() -> None:
    names = [f"p{n}" for n in range(8)]
    elo = np.linspace(400, -400, 8)
    played = games(names, elo.tolist(), size=4, count=2000, seed=1)
    found = summarize(played, names, resamples=100, seed=1)
    assert max(r.half_width for r in found.ratings) < 40
    assert found.ranking == list(range(8))
    assert pytest.approx(173.72, abs=0.01) == ELO
