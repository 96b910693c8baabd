"""`snakekit train ppo`: runs, resuming after a kill, and one sentence for every bad input."""

import dataclasses
import json
import os
import signal
from pathlib import Path

import msgspec
import pytest
import torch
from kills import killed_until_done
from ppo_cases import TINY, tiny

from snakekit.__main__ import main
from snakekit.runtime.options import load
from snakekit.trainer import checkpoint as store
from snakekit.trainer.ppo.config import PpoConfig
from snakekit.trainer.run import to_toml

CONFIGS = Path(__file__).parents[2] / "configs"


def command(*words: str) -> int:
    """Run the command as `snakekit train` does."""
    return main(["train", *words])


def written(folder: Path, config: PpoConfig) -> str:
    path = folder / "config-under-test.toml"
    path.write_text(to_toml(config))
    return str(path)


def lines(run: Path) -> list[dict[str, float]]:
    """Return the metrics without what depends on the clock."""
    found = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    times = ("seconds", "_per_s", "_share")
    return [{k: v for k, v in line.items() if not k.endswith(times)} for line in found]


def test_the_command_trains_shows_and_resumes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = written(tmp_path, tiny(iterations=3, measure_every=2, measure_games=2))
    run = tmp_path / "run"
    assert command("ppo", "--config", config, "--run", str(run)) == 0
    shown = capsys.readouterr().err
    for word in ("iterations 1", "entropy", "KL", "report:", "at iterations 2"):
        assert word in shown, word
    found = lines(run)
    assert [line["step"] for line in found] == [1, 2, 3]
    assert "measure/greedy/7x7x4" in found[1]
    assert list(run.glob("events.out.tfevents.*"))
    assert "<svg" in (run / "report.html").read_text()
    saved = store.load(store.latest(run))
    assert saved.counters["iteration"] == 3
    assert command("ppo", "--run", str(run), "--resume", "--iterations", "4") == 0
    assert [line["step"] for line in lines(run)] == [1, 2, 3, 4]
    assert load(PpoConfig, None, toml=run / "config.toml", environ={}).iterations == 4
    named = {row["sha256"] for row in store.load(store.latest(run)).counters["league"]}
    assert named <= {path.stem for path in (run / "league").iterdir()}
    assert len(list((run / "checkpoints").iterdir())) == 3
    played = ("--games", "4", "--scenarios", "7x7x2", "--opponents", "random")
    assert command("evaluate", str(run), *played) == 0


def test_a_signal_saves_and_says_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from snakekit.trainer.ppo.training import Ppo

    counted = Ppo._counted

    def interrupted(run: Ppo, rollouts: list) -> dict[str, float]:
        if run.iteration == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return counted(run, rollouts)

    monkeypatch.setattr(Ppo, "_counted", interrupted)
    run = tmp_path / "run"
    assert command("ppo", "--config", written(tmp_path, TINY), "--run", str(run)) == 1
    words = capsys.readouterr().err
    assert "--resume" in words.splitlines()[-1]
    assert store.load(store.latest(run)).counters["iteration"] == 2
    monkeypatch.undo()
    assert command("ppo", "--run", str(run), "--resume") == 0
    whole = tmp_path / "whole"
    assert command("ppo", "--config", written(tmp_path, TINY), "--run", str(whole)) == 0
    assert lines(run) == lines(whole)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--config", "nowhere.toml"), "cannot be read"),
        (("--clip", "0"), "clip (from --clip): expected a number above 0"),
        (("--gamma", "1.5"), "gamma (from --gamma)"),
        (("--net", "transformer"), "one of article, compact"),
        (("--scenarios", "7x7"), "scenarios"),
        (("--builtins", "stockfish"), "unknown player 'stockfish'"),
        (("--builtin-share", "0.5"), "builtin_share: above 0 needs"),
        (("--precision", "fp8"), "one of fp32, bf16"),
        (("--device", "tpu"), "device (from --device)"),
        (("--compile",), "compile: only on cuda"),
        (("--resume",), "--resume: needs --run"),
        (("--resume", "--run", "nowhere"), "no checkpoint in it"),
        (("--start", "nowhere"), "no checkpoint in it"),
    ],
)
def test_bad_input_is_one_sentence(
    words: tuple[str, ...],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("ppo", *words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_key_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.toml"
    path.write_text("learning_rate = 1.0\ngama = 0.9\n")
    assert command("ppo", "--config", str(path), "--run", str(tmp_path / "r")) == 2
    assert "unknown key" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_missing_gpu_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("ppo", "--device", "cuda", "--run", str(tmp_path / "r")) == 2
    assert "device: cuda was asked for" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()


def test_what_a_resumed_run_must_keep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    short = tiny(iterations=1, gate_every=0)
    assert command("ppo", "--config", written(tmp_path, short), "--run", str(run)) == 0
    before = sorted(str(p) for p in run.rglob("*"))
    capsys.readouterr()
    for words, message in (
        (("--lr", "0.5"), "lr: the run has 0.003, not 0.5; a resumed run may only change iter"),
        (("--config", written(tmp_path, tiny(net="article"))), "net: the run has 'compact'"),
        (("--start", str(run)), "--start: a resumed run has its own weights"),
    ):
        assert command("ppo", "--run", str(run), "--resume", *words) == 2
        assert message in capsys.readouterr().err
    assert command("ppo", "--config", written(tmp_path, short), "--run", str(run)) == 2
    assert "--resume" in capsys.readouterr().err
    assert sorted(str(p) for p in run.rglob("*")) == before


def test_other_checkpoints_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    short = tiny(iterations=1, gate_every=0)
    assert command("ppo", "--config", written(tmp_path, short), "--run", str(run)) == 0
    place = store.latest(run)
    good = store.load(place)
    for changes, message in (
        ({"method": "imitation"}, "trained by 'imitation'"),
        ({"encoder": 9}, "encoder"),
    ):
        card = msgspec.structs.replace(good.card, **changes)
        store.save(place, carded(good, card))
        assert command("ppo", "--run", str(run), "--resume") == 2
        assert message in capsys.readouterr().err
    other = tmp_path / "other"
    article = msgspec.structs.replace(short, channels=16)
    assert (
        command(
            "ppo", "--config", written(tmp_path, article), "--run", str(other), "--start", str(run)
        )
        == 2
    )
    assert "not this run's" in capsys.readouterr().err
    assert not other.exists()


def carded(saved: store.Checkpoint, card: object) -> store.Checkpoint:
    return dataclasses.replace(saved, card=card)  # type: ignore[arg-type]


def test_a_full_disk_keeps_the_earlier_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, sync = tmp_path / "run", os.fsync
    calls = 0

    def full(handle: int) -> None:
        nonlocal calls
        calls += 1
        if calls > 12:
            raise OSError(28, "No space left on device")
        sync(handle)

    monkeypatch.setattr(os, "fsync", full)
    config = written(tmp_path, tiny(gate_every=0))
    assert command("ppo", "--config", config, "--run", str(run)) == 2
    assert "cannot be written: No space left on device" in capsys.readouterr().err
    monkeypatch.undo()
    places = sorted((run / "checkpoints").iterdir())
    assert [p.name.startswith("step-") for p in places] == [True] * len(places)
    assert store.load(store.latest(run)).counters["iteration"] >= 1
    assert command("ppo", "--run", str(run), "--resume") == 0
    assert [line["step"] for line in lines(run)] == [1, 2, 3, 4]


@pytest.mark.parametrize("name", ["article", "cpu2", "duel-small", "h200"])
def test_the_presets_are_valid(name: str) -> None:
    config = load(PpoConfig, None, toml=CONFIGS / f"ppo-{name}.toml", environ={})
    assert config.name == f"ppo-{name}"


def test_the_articles_preset_has_its_numbers() -> None:
    config = load(PpoConfig, None, toml=CONFIGS / "ppo-article.toml", environ={})
    numbers = {
        "envs": 208,
        "steps": 600,
        "epochs": 4,
        "minibatches": 16,
        "clip": 0.2,
        "value_weight": 0.5,
        "entropy": 0.01,
        "grad_norm": 0.5,
        "adam_eps": 1e-5,
        "lr": 5e-5,
        "lr_final": 5e-5,
        "gamma": 0.999,
        "draw_reward": -1.0,
        "best_share": 0.8,
        "gate_every": 50,
        "gate_games": 3000,
        "gate_level": 1.2,
        "scenarios": ("11x11x4",),
        "learner_seats": 1,
        "selfplay_share": 0.0,
    }
    assert {key: getattr(config, key) for key in numbers} == numbers


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("overlap", [False, True])
def test_a_killed_run_goes_on_as_if_nothing_had_happened(tmp_path: Path, overlap: bool) -> None:
    """kill -9 at ever later moments, until the run ends; then compare with an unbroken one."""
    config = written(tmp_path, tiny(iterations=6, overlap=overlap, steps=40))
    whole, run = tmp_path / "whole", tmp_path / "run"
    assert command("ppo", "--config", config, "--run", str(whole)) == 0
    kills = killed_until_done("ppo", config, run)
    assert kills >= 3
    assert lines(run) == lines(whole)
    ends = [store.load(store.latest(folder)) for folder in (whole, run)]
    assert ends[0].card.weights_sha256 == ends[1].card.weights_sha256
    assert ends[0].counters["league"] == ends[1].counters["league"]
    for name, array in ends[0].optimizer.items():
        assert (ends[1].optimizer[name] == array).all(), name
