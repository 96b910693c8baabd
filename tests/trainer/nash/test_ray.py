"""Nash on a real Ray cluster of this machine: the same run, whoever plays and whatever dies."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch
from nash_cases import TINY

from snakekit.__main__ import main
from snakekit.trainer import checkpoint as store
from snakekit.trainer.nash.config import NashConfig
from snakekit.trainer.nash.training import Nash
from snakekit.trainer.run import read_lines, to_toml

TWO = msgspec.structs.replace(TINY, ray_workers=2)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    # Ray leaves files and sockets to the end of the process.
    pytest.mark.filterwarnings("ignore"),
]


def on_ray(config: NashConfig) -> Nash:
    from snakekit.trainer.nash.remote import RayWorkers

    return Nash(config, workers=RayWorkers(config))


def sha(run: Nash) -> str:
    return store.hash_weights(run.weights())


def finish(run: Nash, stop: Any = lambda: False) -> list[dict[str, float]]:
    torch.set_num_threads(1)
    figures = []
    with ThreadPoolExecutor(1, "games", torch.set_num_threads, (1,)) as pool:
        while not run.done:
            found = run.round(pool, stop)
            figures.append(
                {k: v for k, v in found.items() if not k.endswith(("seconds", "_per_s"))}
            )
    return figures


def test_a_killed_worker_is_replaced_and_training_goes_on(cluster: Any) -> None:
    straight, killed = on_ray(TWO), on_ray(TWO)
    expected = finish(straight)
    straight.close()
    first = killed.workers.processes()  # type: ignore[attr-defined]
    asked = 0

    def kill_while_playing() -> bool:
        nonlocal asked
        asked += 1
        if asked == 5:
            os.kill(first[1], signal.SIGKILL)
        return False

    found = finish(killed, kill_while_playing)
    last = killed.workers.processes()  # type: ignore[attr-defined]
    assert (first[0] == last[0], first[1] == last[1]) == (True, False)
    killed.close()
    assert found == expected
    assert sha(killed) == sha(straight)
    assert killed.league.entries == straight.league.entries
    assert len(killed.league.entries) > 1


def test_one_actor_is_what_one_process_is(cluster: Any) -> None:
    config = msgspec.structs.replace(TWO, ray_workers=1)
    local, remote = Nash(config), on_ray(config)
    assert finish(local) == finish(remote)
    remote.close()
    assert sha(local) == sha(remote)


def test_the_command_plays_on_a_cluster_and_resumes_without(cluster: Any, tmp_path: Path) -> None:
    path, run = tmp_path / "config.toml", tmp_path / "run"
    path.write_text(to_toml(msgspec.structs.replace(TWO, steps=8)))
    assert main(["train", "nash", "--config", str(path), "--run", str(run)]) == 0
    assert read_lines(run / "metrics.jsonl")[-1]["step"] == 8
    places = [key for key in store.load(store.latest(run)).replay if key.startswith("place/1/")]
    assert places
    assert main(["train", "nash", "--run", str(run), "--resume", "--ray-workers", "0"]) == 0


def test_a_cluster_that_is_not_there_is_said(
    cluster: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--ray-workers", "1", "--ray-address", "127.0.0.1:1", "--run", str(tmp_path / "r")]
    assert main(["train", "nash", *words]) == 2
    assert "ray_address: no Ray cluster at '127.0.0.1:1'" in capsys.readouterr().err
    assert not (tmp_path / "r").exists()
