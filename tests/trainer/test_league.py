"""The league and its gate: who plays whom, and what it takes to become the best."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from snakekit.trainer.checkpoint import CheckpointError, hash_weights
from snakekit.trainer.contest import BUILTIN, contest
from snakekit.trainer.gate import GateJob, draw_rivals, gate_jobs, judge, play_job, run_gate
from snakekit.trainer.league import LEARNER, League, LeagueRules, check_builtins, prune
from snakekit.trainer.scenario import Scenario, parse_all
from snakekit.trainer.stats import block_interval

DUEL, FOUR = Scenario(7, 7, 2), Scenario(7, 7, 4)


def weights(value: float) -> dict[str, NDArray[Any]]:
    return {"a": np.full((2, 2), value, np.float32), "b": np.arange(3, dtype=np.float32)}


def league(count: int = 5, **rules: Any) -> League:
    found = League(LeagueRules(**rules), weights(0))
    for number in range(1, count):
        found.promote(weights(number), number * 50)
    return found


def test_four_of_five_opponents_are_the_best_and_the_rest_uniform() -> None:
    found = league(5, learner_seats=1)
    generator = np.random.default_rng(0)
    seats = np.stack([found.cast(4, generator) for _ in range(8000)])
    assert ((seats == LEARNER).sum(1) == 1).all()
    others = seats[seats != LEARNER]
    share = np.bincount(others, minlength=6) / len(others)
    assert share[5] == pytest.approx(0.8, abs=0.01)
    assert share[1:5] == pytest.approx(np.full(4, 0.05), abs=0.006)
    # Every seat is the learner's equally often.
    assert (seats == LEARNER).mean(0) == pytest.approx(np.full(4, 0.25), abs=0.02)


def test_casts_of_self_play_and_built_in_players() -> None:
    generator = np.random.default_rng(1)
    both = league(3, selfplay_share=0.5, builtins=("greedy", "search2"), builtin_share=0.25)
    seats = np.stack([both.cast(2, generator) for _ in range(6000)])
    assert (seats == LEARNER).all(1).mean() == pytest.approx(0.5, abs=0.02)
    others = seats[seats != LEARNER]
    assert (others < 0).mean() == pytest.approx(0.25, abs=0.02)
    assert set(others[others < 0].tolist()) == {-1, -2}
    assert (both.name(-1), both.name(-2), both.name(3)) == ("greedy", "search2", "best-3")
    assert (league(2, selfplay_share=1.0).cast(4, generator) == LEARNER).all()
    assert (league(2, learner_seats=8).cast(4, generator) == LEARNER).all()
    alone = league(1)
    assert {alone.opponent(generator) for _ in range(50)} == {1}


def test_the_learner_cannot_reach_a_promoted_player() -> None:
    own = weights(1)
    found = League(LeagueRules(), own)
    own["a"] += 5
    assert found.weights[1]["a"].max() == 1
    assert found.best.sha256 == hash_weights(found.weights[1])
    with pytest.raises(ValueError, match="read-only"):
        found.weights[1]["a"] += 1


def test_numbers_stay_when_old_entries_leave() -> None:
    found = league(6, size=3)
    assert [e.number for e in found.drawn] == [4, 5, 6]
    found.release({1, 5})
    assert [e.number for e in found.entries] == [1, 4, 5, 6]
    assert sorted(found.weights) == [1, 4, 5, 6]
    assert [e.number for e in found.drawn] == [4, 5, 6]
    assert found.promote(weights(9), 400).number == 7


def test_a_league_comes_back_from_its_folder(tmp_path: Path) -> None:
    found = league(4)
    found.save(tmp_path)
    found.save(tmp_path)
    again = League.load(found.rules, tmp_path, found.table())
    assert again.entries == found.entries
    for number, arrays in found.weights.items():
        for name, array in arrays.items():
            np.testing.assert_array_equal(again.weights[number][name], array)
    prune(tmp_path, {entry.sha256 for entry in found.entries[1:]})
    assert len(list((tmp_path / "league").iterdir())) == 3
    with pytest.raises(CheckpointError, match="cannot be read"):
        League.load(found.rules, tmp_path, found.table())


def test_damaged_league_files_are_noticed(tmp_path: Path) -> None:
    found = league(2)
    found.save(tmp_path)
    first, second = (tmp_path / "league" / f"{e.sha256}.safetensors" for e in found.entries)
    first.write_bytes(second.read_bytes())
    with pytest.raises(CheckpointError, match="not those that its name says"):
        League.load(found.rules, tmp_path, found.table())
    first.write_bytes(b"odd")
    with pytest.raises(CheckpointError, match="not a safetensors file"):
        League.load(found.rules, tmp_path, found.table())
    for table in ([], [{"number": 1}]):
        with pytest.raises(CheckpointError, match="table is"):
            League.load(found.rules, tmp_path, table)


def test_a_full_disk_leaves_no_half_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(CheckpointError, match="No space left"):
        league(1).save(tmp_path)
    assert list((tmp_path / "league").iterdir()) == []


def test_unknown_built_in_players_are_refused() -> None:
    check_builtins(["greedy", "search3"])
    with pytest.raises(ValueError, match="unknown player 'stockfish'"):
        check_builtins(["stockfish"])


def test_rivals_are_the_best_and_distinct_others() -> None:
    generator = np.random.default_rng(0)
    many = draw_rivals(8, 500, 4, generator)
    assert (many[:, 0] == 7).all()
    assert (many[:, 1] != many[:, 2]).all()
    assert set(np.unique(many[:, 1:])) == set(range(7))
    assert draw_rivals(2, 3, 4, generator).tolist() == [[1, 0, 0]] * 3
    assert draw_rivals(1, 2, 4, generator).tolist() == [[0, 0, 0]] * 2
    assert draw_rivals(5, 2, 2, generator).tolist() == [[4], [4]]


def test_a_gate_is_blocks_of_all_rotations() -> None:
    jobs = gate_jobs([FOUR], 3000, 4, seed=1, max_turns=500)
    assert sum(job.games for job in jobs) == 3000
    assert len({job.seed for job in jobs}) == len(jobs)
    both = gate_jobs(parse_all(["7x7x2:3", "7x7x4:1"]), 400, 2, seed=1, max_turns=9)
    by_size = {n: sum(j.games for j in both if j.scenario.snakes == n) for n in (2, 4)}
    assert by_size == {2: 300, 4: 100}


def test_every_rotation_has_the_same_start() -> None:
    heads: list[list[tuple[int, int]]] = []

    def noting(games: Any, rows: NDArray[np.int32], seed: int) -> NDArray[Any]:
        if seed == 7:
            heads.append([games.state(game).head(0) for game, _ in rows.tolist()])
        return BUILTIN["random"](games, rows, seed)

    job = GateJob(FOUR, 7, np.zeros((5, 3), np.intp), 300)
    results, turns = play_job(job, noting, [BUILTIN["random"]])
    assert results.shape == turns.shape == (5, 4)
    assert len(heads) == 4
    assert heads[0] == heads[1] == heads[2] == heads[3]


def test_equals_are_at_level_one_and_the_strong_above() -> None:
    random, greedy = BUILTIN["random"], BUILTIN["greedy"]
    jobs = gate_jobs([FOUR], 320, 1, seed=2, max_turns=1000)
    equal = run_gate(jobs, random, [random], 1.2)
    assert equal.games == 320
    # Nobody wins a draw, so equals are a little below 1.
    fair = 1 - equal.draws / equal.games
    assert equal.low <= fair <= equal.high
    assert not equal.passed
    strong = run_gate(jobs[:1], greedy, [random], 1.2)
    assert strong.passed
    assert strong.low > 1.2
    assert "needed 1.2" in str(strong)
    heard: list[tuple[int, int]] = []
    told = run_gate(jobs[:1], greedy, [random], 1.2, progress=lambda *games: heard.append(games))
    assert strong == told
    assert heard == [(0, jobs[0].games), (jobs[0].games, jobs[0].games)]


def test_the_verdict_weighs_games_by_their_size() -> None:
    jobs = [
        GateJob(DUEL, 0, np.zeros((2, 1), np.intp), 9),
        GateJob(FOUR, 0, np.zeros((1, 3), np.intp), 9),
    ]
    played = [
        (np.array([[1, -1], [2, 1]], np.int8), np.array([[5, 6], [7, 8]], np.int64)),
        (np.array([[1, -1, -1, 0]], np.int8), np.array([[3, 4, 5, 0]], np.int64)),
    ]
    gate = judge(jobs, played, 1.0)
    assert (gate.games, gate.wins, gate.draws) == (8, 3, 1)
    assert gate.level == pytest.approx((2 + 2 + 4) / 8)
    assert gate.turns == pytest.approx((5 + 6 + 7 + 8 + 3 + 4 + 5) / 7)
    assert gate.low <= gate.level <= gate.high
    assert not gate.passed


def test_the_interval_treats_a_block_as_one_trial() -> None:
    generator = np.random.default_rng(0)
    blocks = np.repeat(np.arange(200), 4)
    alike = np.repeat(generator.random(200) < 0.3, 4).astype(float)
    apart = (generator.random(800) < 0.3).astype(float)
    wide = np.subtract(*block_interval(alike, blocks)[::-1])
    narrow = np.subtract(*block_interval(apart, blocks)[::-1])
    assert wide / narrow == pytest.approx(2, abs=0.35)
    low, high = block_interval(apart, blocks)
    assert low < apart.mean() < high
    assert high - low == pytest.approx(2 * 1.96 * np.sqrt(0.21 / 800), rel=0.2)


def test_a_contest_needs_its_first_player_once() -> None:
    for lineup in ([[0, 0]], [[1, 1]]):
        with pytest.raises(ValueError, match="player 0"):
            contest([BUILTIN["random"]] * 2, np.array(lineup), DUEL, seed=0, max_turns=5)
