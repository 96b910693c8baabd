"""`snakekit train nash` killed at any moment goes on as if nothing had happened."""

from pathlib import Path

import msgspec
import pytest
from kills import killed_until_done
from nash_cases import TINY

from snakekit.__main__ import main
from snakekit.trainer import checkpoint as store
from snakekit.trainer.run import read_lines, to_toml

CONFIG = msgspec.structs.replace(TINY, pretrain=2, pretrain_turns=12, imitate=1, imitate_nodes=20)
TIMES = ("seconds", "_per_s")


def shown(run: Path) -> list[dict]:
    """The run's figures without times."""
    return [
        {key: value for key, value in line.items() if not key.endswith(TIMES)}
        for line in read_lines(run / "metrics.jsonl")
    ]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("plans", ["off", "local"])
def test_a_killed_run_equals_an_unbroken_one(tmp_path: Path, plans: str) -> None:
    config = msgspec.structs.replace(CONFIG, plans=plans, plan_turns=2)
    path = tmp_path / "config.toml"
    path.write_text(to_toml(config))
    whole, run = tmp_path / "whole", tmp_path / "run"
    assert main(["train", "nash", "--config", str(path), "--run", str(whole)]) == 0
    kills = killed_until_done("nash", str(path), run)
    assert kills >= 3
    assert shown(run) == shown(whole)
    assert read_lines(run / "events.jsonl") == read_lines(whole / "events.jsonl")
    ends = [store.load(store.latest(folder)) for folder in (whole, run)]
    assert ends[0].card.weights_sha256 == ends[1].card.weights_sha256
    assert ends[0].counters["league"] == ends[1].counters["league"]
    assert len(ends[0].counters["league"]) > 1
    for part in ("optimizer", "replay"):
        for name, array in getattr(ends[0], part).items():
            assert (getattr(ends[1], part)[name] == array).all(), name
