"""PPO learns: a short form of the learning proof in docs/ppo.md."""

from pathlib import Path

import pytest

from snakekit.__main__ import main
from snakekit.trainer import checkpoint as store
from snakekit.trainer.device import Forward
from snakekit.trainer.evaluate import measure
from snakekit.trainer.model import count_parameters
from snakekit.trainer.scenario import parse

PRESET = Path(__file__).parents[2] / "configs" / "ppo-duel-small.toml"


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_from_random_weights_it_learns_to_win_duels(tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = ["--iterations", "60", "--measure-every", "0", "--gate-every", "20"]
    assert main(["train", "ppo", "--config", str(PRESET), "--run", str(run), *words]) == 0
    saved = store.load(store.latest(run))
    assert saved.counters["decisions"] < 600_000
    net = Forward(store.restore_model(saved, origin="run"))
    assert count_parameters(net.model) < 20_000
    won = {}
    for opponent in ("random", "greedy"):
        score = measure(lambda obs: net(obs)[0], 2, parse("7x7x2"), opponent, games=400, seed=9)
        won[opponent] = score.wins / score.games
    assert won["random"] >= 0.9
    assert won["greedy"] >= 0.5
