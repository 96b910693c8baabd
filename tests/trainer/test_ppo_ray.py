"""PPO on a real Ray cluster of this machine: the same run, whoever plays and whatever dies."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from ppo_cases import tiny, untimed

from snakekit.__main__ import main
from snakekit.trainer import checkpoint as store
from snakekit.trainer.ppo.config import PpoConfig
from snakekit.trainer.ppo.training import Ppo
from snakekit.trainer.run import read_lines, to_toml

TWO = tiny(ray_workers=2, gate_every=2)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    # Ray leaves files and sockets to the end of the process.
    pytest.mark.filterwarnings("ignore"),
]


def sha(run: Ppo) -> str:
    return store.hash_weights(run.weights())


def on_ray(config: PpoConfig) -> Ppo:
    from snakekit.trainer.ppo.remote import RayWorkers

    return Ppo(config, RayWorkers(config))


@pytest.mark.long
def test_a_killed_worker_is_replaced_and_training_goes_on(cluster: Any) -> None:
    straight, killed = on_ray(TWO), on_ray(TWO)
    expected = []
    while not straight.done:
        expected.append(untimed(straight.iterate()))
    straight.close()
    found = [untimed(killed.iterate())]
    first = killed.workers.processes()  # type: ignore[attr-defined]
    asked = 0

    def kill_while_acting() -> bool:
        nonlocal asked
        asked += 1
        if asked == 1:
            os.kill(first[1], signal.SIGKILL)
        return False

    while not killed.done:
        found.append(untimed(killed.iterate(kill_while_acting)))
    last = killed.workers.processes()  # type: ignore[attr-defined]
    assert (first[0] == last[0], first[1] == last[1]) == (True, False)
    killed.close()
    assert found == expected
    assert sha(killed) == sha(straight)
    assert killed.league.entries == straight.league.entries
    assert len(killed.league.entries) > 1


def test_one_actor_is_what_one_process_is(cluster: Any) -> None:
    """The same weights: actors run the same code, as does the gate."""
    local, remote = Ppo(tiny()), on_ray(tiny(ray_workers=1))
    for _ in range(3):
        assert untimed(local.iterate()) == untimed(remote.iterate())
    remote.close()
    assert sha(local) == sha(remote)
    assert local.last_gate == remote.last_gate


@pytest.mark.long
def test_two_learners_share_their_weights(cluster: Any, tmp_path: Path) -> None:
    config = tiny(learners=2, iterations=3)
    path = tmp_path / "config.toml"
    path.write_text(to_toml(config))
    run = tmp_path / "run"
    assert main(["train", "ppo", "--config", str(path), "--run", str(run)]) == 0
    lines = read_lines(run / "metrics.jsonl")
    assert [line["step"] for line in lines] == [1, 2, 3]
    alone = Ppo(tiny(iterations=3))
    assert lines[0]["decisions"] > alone.iterate()["decisions"]
    places = {key.split("/")[1] for key in store.load(store.latest(run)).replay if "place" in key}
    assert places == {"0", "1"}
    again = ["train", "ppo", "--run", str(run), "--resume", "--iterations", "4"]
    assert main(again) == 0
    assert [line["step"] for line in read_lines(run / "metrics.jsonl")] == [1, 2, 3, 4]


def test_a_cluster_that_is_not_there_is_said(
    cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--ray-workers", "1", "--ray-address", "127.0.0.1:1", "--run", str(tmp_path / "r")]
    assert main(["train", "ppo", *words]) == 2
    assert "ray_address: no Ray cluster at '127.0.0.1:1'" in capsys.readouterr().err
