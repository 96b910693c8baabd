import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

from snakekit.runtime.options import OptionError, load
from snakekit.trainer import checkpoint as store
from snakekit.trainer import cli, imitation
from snakekit.trainer.checkpoint import CheckpointError
from snakekit.trainer.generate import Cancelled
from snakekit.trainer.imitation import Imitation, ImitationConfig
from snakekit.trainer.rounds import silent, train

CONFIG = ImitationConfig(
    channels=8,
    blocks=1,
    hidden=8,
    scenarios=("7x7x2@1:2", "7x7x4@1:1", "7x7x2/wrapped@1:1"),
    steps=9,
    warmup=2,
    batch=16,
    replay=1000,
    round_steps=3,
    round_sets=2,
    games=2,
    turns=20,
    student_after=1,
    checkpoint_seconds=0,
)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    torch.set_num_threads(1)
    with ThreadPoolExecutor(1) as executor:
        yield executor


def weights(run: Imitation) -> str:
    return store.hash_weights(store.weights_of(run.model))


def test_equal_seeds_train_equal_weights(pool: ThreadPoolExecutor) -> None:
    runs = [Imitation(msgspec.structs.replace(CONFIG, seed=seed)) for seed in (1, 1, 2)]
    begun = weights(runs[0])
    for run in runs:
        run.round(pool)
        run.round(pool)
    assert runs[0].step == 6
    assert weights(runs[0]) == weights(runs[1]) != begun
    assert weights(runs[0]) != weights(runs[2])


def test_a_resumed_run_continues_bit_for_bit(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    whole = Imitation(CONFIG)
    whole.round(pool)
    store.save(tmp_path / "c", whole.checkpoint())
    torch.rand(5)
    resumed = Imitation(CONFIG).restore(store.load(tmp_path / "c"), origin="c")
    assert (resumed.step, resumed.rounds, len(resumed.replay)) == (3, 1, len(whole.replay))
    for _ in range(2):
        first, second = whole.round(pool), resumed.round(pool)
        assert first["policy_loss"] == second["policy_loss"]
    assert weights(whole) == weights(resumed)
    assert whole.done
    assert resumed.done


def test_a_run_can_start_from_other_weights(pool: ThreadPoolExecutor) -> None:
    first = Imitation(CONFIG)
    first.round(pool)
    saved = first.checkpoint()
    second = Imitation(msgspec.structs.replace(CONFIG, seed=9), saved)
    assert weights(second) == weights(first)
    assert second.step == 0
    assert second.checkpoint().counters["started_from"] == saved.card.weights_sha256
    with pytest.raises(CheckpointError, match="not this run's"):
        Imitation(msgspec.structs.replace(CONFIG, channels=16), saved)


def test_a_stopped_round_leaves_no_trace(pool: ThreadPoolExecutor) -> None:
    run, straight = Imitation(CONFIG), Imitation(CONFIG)
    run.round(pool)
    straight.round(pool)
    asked = threading.local()

    def stop() -> bool:
        # Only the training thread counts, so that the stop comes after its second update.
        asked.count = getattr(asked, "count", 0) + 1
        return threading.current_thread() is threading.main_thread() and asked.count == 3

    with pytest.raises(Cancelled):
        run.round(pool, stop)
    assert run.step == 3
    run.round(pool)
    straight.round(pool)
    assert weights(run) == weights(straight)


def test_an_error_in_the_games_thread_ends_the_run(
    pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no games today")

    run = Imitation(CONFIG)
    run.round(pool)
    monkeypatch.setattr(imitation, "play", broken)
    with pytest.raises(RuntimeError, match="no games today"):
        run.round(pool)


def test_training_learns_to_stay_alive(pool: ThreadPoolExecutor) -> None:
    config = msgspec.structs.replace(
        CONFIG, channels=16, steps=160, round_steps=80, batch=64, games=4, turns=80, lr=3e-3
    )
    run = Imitation(config)
    first = run.round(pool)
    second = run.round(pool)
    assert second["policy_loss"] < first["policy_loss"]
    assert second["lr"] < config.lr


def test_the_rate_rises_and_falls() -> None:
    run = Imitation(msgspec.structs.replace(CONFIG, steps=100, warmup=10, lr=1.0))
    rates = []
    for step in range(100):
        run.step = step
        rates.append(run.learning_rate())
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == pytest.approx(1)
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[-1] < 0.001


def test_checkpoints_of_other_methods_are_refused() -> None:
    saved = Imitation(CONFIG).checkpoint()
    card = msgspec.structs.replace(saved.card, method="ppo")
    foreign = store.Checkpoint(card=card, weights=saved.weights, config=saved.config)
    with pytest.raises(CheckpointError, match="trained by 'ppo'"):
        Imitation.read_config(foreign, origin="c")


def test_train_saves_when_stopped(tmp_path: Path) -> None:
    run = Imitation(CONFIG)
    rounds: list[int] = []
    finished = train(
        run,
        log=lambda step, _: rounds.append(step),
        say=silent,
        save=lambda run: store.save(tmp_path / f"step-{run.step}", run.checkpoint()),
        stop=lambda: len(rounds) >= 2,
    )
    assert not finished
    assert rounds == [3, 6]
    assert store.load(store.latest(tmp_path)).counters["step"] == 6


def options(**fields: object) -> list[str]:
    words: list[str] = []
    for name in msgspec.structs.fields(ImitationConfig):
        value = fields.get(name.name, getattr(CONFIG, name.name))
        text = ",".join(value) if isinstance(value, tuple) else str(value)
        words += ["--" + name.name.replace("_", "-"), text]
    return words


def command(*words: str) -> int:
    import argparse

    parser = argparse.ArgumentParser()
    cli.add_arguments(parser)
    return cli.run(parser.parse_args(words))


def test_the_command_trains_and_evaluates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("imitation", "--out", str(tmp_path), *options(name="quick")) == 0
    (folder,) = tmp_path.iterdir()
    assert folder.name.endswith("-quick")
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [3, 6, 9]
    assert np.isfinite(lines[-1]["policy_loss"])
    assert list(folder.glob("events.out.tfevents.*"))
    config = load(ImitationConfig, None, toml=folder / "config.toml", environ={})
    assert config == msgspec.structs.replace(CONFIG, name="quick")
    saved = store.load(store.latest(folder))
    assert saved.card.step == 9
    assert saved.card.boards == [(7, 7)]
    assert saved.card.snakes == [2, 4]
    capsys.readouterr()
    played = ("--games", "4", "--scenarios", "7x7x2", "--opponents", "random")
    assert command("evaluate", str(folder), *played) == 0
    assert "7x7x2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("imitation", "--resume", "nowhere"), "no checkpoint in it"),
        (("imitation", "--resume", "nowhere", "--lr", "0.1"), "--lr: a resumed run keeps"),
        (("imitation", "--config", "nowhere.toml"), "cannot be read"),
        (("imitation", "--steps", "0"), "steps (from --steps)"),
        (("imitation", "--scenarios", "7x7"), "scenarios"),
        (("imitation", "--scenarios", "3x7x9"), "2 to 8 snakes"),
        (("evaluate", "nowhere"), "no checkpoint in it"),
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
    assert command(*words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_shipped_configurations_are_valid() -> None:
    folder = Path(__file__).parents[2] / "configs"
    for path in (folder / "imitation.toml", folder / "imitation-fine.toml"):
        assert load(ImitationConfig, None, toml=path, environ={}).name == "compact"


def test_options_that_contradict_are_refused() -> None:
    with pytest.raises(OptionError, match="standard"):
        load(ImitationConfig, None, environ={"SNAKEKIT_SCENARIOS": "7x7x2/odd"})
