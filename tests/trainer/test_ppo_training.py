"""Whole runs of PPO: the same again, resumed, stopped, and what the league does meanwhile."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from ppo_cases import TINY, tiny, untimed

from snakekit.trainer import checkpoint as store
from snakekit.trainer.checkpoint import CheckpointError
from snakekit.trainer.generate import Cancelled
from snakekit.trainer.league import FOLDER, League
from snakekit.trainer.ppo.config import MAY_CHANGE, PpoConfig
from snakekit.trainer.ppo.loop import train
from snakekit.trainer.ppo.training import Ppo
from snakekit.trainer.session import changed


def sha(run: Ppo) -> str:
    return store.hash_weights(run.weights())


def saved(run: Ppo, folder: Path) -> None:
    run.league.save(folder)
    store.save(folder / "checkpoints" / f"step-{run.learner.updates:09d}", run.checkpoint())


def resumed(folder: Path) -> Ppo:
    place = store.latest(folder)
    found = store.load(place)
    config = msgspec.convert(found.config, PpoConfig)
    run = Ppo(config)
    league = League.load(config.league, folder, found.counters[FOLDER])
    run.restore(found, league, origin=str(place))
    return run


def finish(run: Ppo) -> list[dict[str, float]]:
    figures = []
    while not run.done:
        figures.append(untimed(run.iterate()))
    run.close()
    return figures


@pytest.mark.parametrize("overlap", [False, True])
def test_a_resumed_run_equals_an_unbroken_one(tmp_path: Path, overlap: bool) -> None:
    """Saved after every iteration; each checkpoint leads to the same weights and figures."""
    config = tiny(overlap=overlap)
    whole = Ppo(config)
    expected = []
    saved(whole, tmp_path / "0")
    while not whole.done:
        expected.append(untimed(whole.iterate()))
        saved(whole, tmp_path / str(whole.iteration))
    whole.close()
    assert whole.league.best.number >= 2
    for begun in (0, 2):
        again = resumed(tmp_path / str(begun))
        assert again.iteration == begun
        assert finish(again) == expected[begun:]
        assert sha(again) == sha(whole)
        assert again.league.entries == whole.league.entries


def test_acting_ahead_lags_by_one_iteration() -> None:
    """With overlap the second batch is acted by the first weights, the third by the second."""
    used: list[str] = []
    run = Ppo(tiny(overlap=True, iterations=4, gate_every=0))
    collect = run.workers.collect

    def noted(weights: Any, *rest: Any) -> Any:
        used.append(store.hash_weights(weights))
        return collect(weights, *rest)

    run.workers.collect = noted  # type: ignore[method-assign]
    before = []
    while not run.done:
        before.append(sha(run))
        run.iterate()
    run.close()
    assert used == [before[0], *before[:3]]
    assert len(set(before)) == 4


@pytest.mark.parametrize(("overlap", "asked"), [(False, 3), (False, 30), (True, 15)])
def test_a_stopped_iteration_leaves_no_trace(overlap: bool, asked: int) -> None:
    run, straight = Ppo(tiny(overlap=overlap)), Ppo(tiny(overlap=overlap))
    run.iterate()
    straight.iterate()
    count = 0

    def stop() -> bool:
        nonlocal count
        count += 1
        return count > asked

    def until_stopped() -> None:
        while True:
            run.iterate(stop)

    with pytest.raises(Cancelled):
        until_stopped()
    assert not run.done
    while straight.iteration < run.iteration:
        straight.iterate()
    assert sha(run) == sha(straight)
    assert finish(run) == finish(straight)
    assert sha(run) == sha(straight)


def test_the_gate_promotes_and_the_league_plays_on() -> None:
    said: list[tuple[int, str, str]] = []
    run = Ppo(tiny(iterations=7, selfplay_share=0.0, builtin_share=0.0, league_size=2, steps=4))
    while not run.done:
        run.iterate(say=lambda *words: said.append(words))
    assert [(step, kind) for step, _, kind in said] == [(n, "promotion") for n in (2, 4, 6)]
    assert "level" in said[0][1]
    assert [e.number for e in run.league.drawn] == [3, 4]
    playing = set(np.unique(run.places[0].seats).tolist()) - {0}
    assert {e.number for e in run.league.entries} >= playing | {3, 4}
    strict = Ppo(tiny(gate_level=9.0, gate_every=1, iterations=2, steps=4))
    finish(strict)
    assert strict.last_gate is not None
    assert not strict.last_gate.passed
    assert [e.number for e in strict.league.entries] == [1]


def test_broken_arithmetic_keeps_the_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Ppo(tiny(gate_every=0))
    run.iterate()
    before = sha(run)
    update = run.learner.update

    def poisoned(batch: Any, *rest: Any) -> Any:
        batch.returns[0] = np.nan
        return update(batch, *rest)

    monkeypatch.setattr(run.learner, "update", poisoned)
    kept: list[str] = []
    with pytest.raises(FloatingPointError):
        train(
            run,
            log=lambda *_: None,
            say=lambda step, words, kind: kept.append(kind),
            save=lambda found: kept.append(sha(found)),
            stop=lambda: False,
        )
    assert kept == [before, "alarm", before]
    monkeypatch.undo()
    run.iterate()


def test_a_run_can_start_from_other_weights() -> None:
    first = Ppo(TINY)
    first.iterate()
    given = first.checkpoint()
    second = Ppo(tiny(seed=9), start=given)
    assert sha(second) == sha(first)
    assert second.league.best.sha256 == sha(first)
    assert second.checkpoint().counters["started_from"] == given.card.weights_sha256
    with pytest.raises(CheckpointError, match="not this run's"):
        Ppo(tiny(channels=16), start=given)


def test_a_checkpoint_of_other_games_is_refused(tmp_path: Path) -> None:
    run = Ppo(TINY)
    run.iterate()
    found = run.checkpoint()
    broken = {k: v for k, v in found.replay.items() if not k.endswith("moves")}
    other = store.Checkpoint(
        card=found.card,
        weights=found.weights,
        optimizer=found.optimizer,
        replay=broken,
        config=found.config,
        counters=found.counters,
    )
    with pytest.raises(CheckpointError, match="moves"):
        Ppo(TINY).restore(other, run.league, origin="x")


def test_the_card_tells_how_it_was_trained() -> None:
    run = Ppo(tiny(symmetry="canonical"))
    run.iterate()
    card = run.checkpoint().card
    assert card.method.startswith("PPO")
    assert card.net_options == {"channels": 8, "blocks": 1, "hidden": 8, "canonical": 1}
    assert (card.snakes, card.boards, card.step) == ([2, 4], [(7, 7)], run.learner.updates)
    store.restore_model(run.checkpoint(), origin="x")


def test_what_may_change_is_known() -> None:
    assert set(MAY_CHANGE) <= {field.name for field in msgspec.structs.fields(PpoConfig)}
    assert changed(TINY, tiny(iterations=99, keep=1), MAY_CHANGE) == []
    assert changed(TINY, tiny(lr=0.1, gamma=0.5), MAY_CHANGE) == ["gamma", "lr"]


def test_time_ends_a_run() -> None:
    run = Ppo(tiny(iterations=10_000, minutes=1e-6, gate_every=0))
    quiet = {"log": lambda *_: None, "say": lambda *_: None, "save": lambda _: None}
    assert train(run, stop=lambda: False, **quiet)
    assert run.iteration <= 1
