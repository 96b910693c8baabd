"""The measure of training: its figures and its refusals."""

import json
from pathlib import Path

import pytest

from snakekit.__main__ import main

SMALL = ("--channels", "8", "--blocks", "1", "--envs", "4", "--steps", "8", "--threads", "1")


def test_the_speed_and_its_split_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "train.json"
    assert main(["bench", "train", *SMALL, "--rounds", "3", "--json", str(path)]) == 0
    results = {r["name"]: r for r in json.loads(path.read_text())["results"]}
    speed = results["train.ppo.decisions_per_s"]
    assert speed["value"] > 1
    assert speed["better"] == "higher"
    assert speed["params"]["scenario"] == "11x11x4"
    assert speed["params"]["threads"] == 1
    gain = results["train.ppo.overlap_gain"]
    assert gain["value"] == pytest.approx(
        gain["params"]["with"] / gain["params"]["without"], rel=0.01
    )
    assert speed["value"] == pytest.approx(gain["params"]["without"], rel=0.01)
    assert 0 < results["train.ppo.env_share"]["value"] < results["train.ppo.act_share"]["value"] < 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--scenario", "7x7"), "scenario"),
        (("--compile",), "only on cuda"),
        (("--envs", "0"), "envs"),
    ],
)
def test_bad_options_are_refused(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "train", *words]) == 2
    assert message in capsys.readouterr().err
