"""Runs of `train nash`: determinism, resuming, gates, the command."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from snakekit.__main__ import main
from snakekit.trainer import checkpoint as store
from snakekit.trainer.checkpoint import CheckpointError
from snakekit.trainer.generate import Cancelled
from snakekit.trainer.league import League, LeagueRules
from snakekit.trainer.nash.config import NashConfig
from snakekit.trainer.nash.training import Nash
from snakekit.trainer.run import read_lines

CONFIG = NashConfig(
    scenarios=("5x5x2",),
    channels=8,
    blocks=1,
    hidden=8,
    steps=12,
    batch=32,
    reuse=2,
    games=8,
    turns=8,
    pretrain=1,
    pretrain_turns=12,
    iterations=32,
    replay=1000,
    gate_games=8,
    max_turns=40,
)
OPTIONS = [
    *("--scenarios", "5x5x2", "--channels", "8", "--blocks", "1", "--hidden", "8"),
    *("--batch", "32", "--reuse", "2", "--games", "8", "--turns", "8", "--iterations", "32"),
    *("--pretrain", "1", "--pretrain-turns", "12"),
    *("--replay", "1000", "--gate-games", "8", "--gate-every", "6", "--max-turns", "40"),
]


def rounds(run: Nash, count: int) -> None:
    torch.set_num_threads(1)
    with ThreadPoolExecutor(1, "games", torch.set_num_threads, (1,)) as pool:
        for _ in range(count):
            run.round(pool)


def weights(run: Nash) -> str:
    return store.hash_weights(store.weights_of(run.model))


def test_equal_seeds_give_equal_weights_and_resuming_changes_nothing(tmp_path):
    whole, first = Nash(CONFIG), Nash(CONFIG)
    rounds(whole, 3)
    rounds(first, 1)
    store.save(tmp_path / "saved", first.checkpoint())
    second = Nash(CONFIG).restore(store.load(tmp_path / "saved"), origin="saved")
    rounds(second, 2)
    assert weights(whole) == weights(second) != weights(first)
    assert whole.positions == second.positions
    for a, b in zip(whole.replay.pack().values(), second.replay.pack().values(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_round_that_is_given_up_leaves_no_trace():
    run, other = Nash(CONFIG), Nash(CONFIG)
    rounds(run, 1)
    rounds(other, 1)
    calls = iter(range(100))
    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(Cancelled),
    ):
        run.round(pool, lambda: next(calls) > 5)
    assert weights(run) == weights(other)
    rounds(run, 1)
    rounds(other, 1)
    assert weights(run) == weights(other)


def test_the_gate_plays_the_best_so_far(tmp_path):
    run = Nash(CONFIG)
    rounds(run, 1)
    found = run.gate()
    assert found.games >= CONFIG.gate_games
    assert 0 <= found.level <= 2
    assert (len(run.league.entries) == 2) == found.passed
    run.league.save(tmp_path)
    again = League.load(LeagueRules(), tmp_path, run.league.table())
    assert again.best == run.league.best


def test_another_net_or_method_is_refused(tmp_path):
    saved = Nash(CONFIG).checkpoint()
    with pytest.raises(CheckpointError, match="not this run's"):
        Nash(NashConfig(scenarios=("5x5x2",)), saved)
    started = Nash(CONFIG, saved)
    assert started.started_from == saved.card.weights_sha256
    with pytest.raises(ValueError, match="attention: expected a divisor"):
        NashConfig(attention=3)


def test_the_command_trains_reports_and_resumes(tmp_path, capsys):
    run = tmp_path / "run"
    assert main(["train", "nash", "--run", str(run), *OPTIONS, "--steps", "12"]) == 0
    assert (run / "report.html").read_text(encoding="utf-8").count("<figure") >= 4
    lines = read_lines(run / "metrics.jsonl")
    assert lines[-1]["step"] == 12
    assert any("gate_level" in line for line in lines)
    assert store.latest(run).name == "step-000000012"
    assert main(["train", "nash", "--run", str(run), "--resume"]) == 0
    play = ["train", "evaluate", str(run), "--scenarios", "5x5x2", "--games", "4"]
    assert main([*play, "--opponents", "random"]) == 0
    assert "bare policy" in capsys.readouterr().out
    assert main([*play, "--opponents", "random", "--equilibrium"]) == 0
    assert "equilibrium" in capsys.readouterr().out
    capsys.readouterr()
    assert main(["train", "nash", "--run", str(run), "--resume", "--steps", "9"]) == 2
    assert "steps: the run has 12, not 9" in capsys.readouterr().err
    assert main(["train", "nash", "--resume"]) == 2
    assert "needs --run" in capsys.readouterr().err
    assert main(["train", "nash", "--run", str(run), "--scenarios", "5x5"]) == 2
    assert "scenario" in capsys.readouterr().err
