"""`snakekit train value`: what it fits, resuming, and what it refuses."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from snakekit import core
from snakekit.__main__ import main
from snakekit.core import LearnedValue
from snakekit.trainer.value.config import ValueConfig
from snakekit.trainer.value.fit import ValueNet, fit, targets, to_bytes
from snakekit.trainer.value.samples import Samples

SMALL = ["--games", "70", "--play-nodes", "30", "--label-nodes", "60", "--share", "100"]
QUICK = [*SMALL, "--batch", "64", "--epochs", "2", "--threads", "1"]


def made(n: int, seed: int = 0) -> Samples:
    """Positions whose score depends on one of the features only."""
    rng = np.random.default_rng(seed)
    blocks = np.linspace(0, core.VALUE_ROWS, 41).astype(int)
    picked = np.stack([rng.integers(a, b, n) for a, b in pairwise(blocks)], 1)
    score = np.where(picked[:, 7] < (blocks[7] + blocks[8]) / 2, 900, -900)
    return Samples(
        picked.astype(np.uint16),
        score.astype(np.int32),
        np.zeros(n, np.float32),
        np.zeros(n, np.uint8),
        np.arange(n) // 5,
    )


def test_targets_follow_the_label_and_the_result():
    samples = Samples(
        np.zeros((6, 40), np.uint16),
        np.array([600, -600, 29_990, -29_990, 0, 0], np.int32),
        np.array([0, 0, 0, 0, 0, 1], np.float32),
        np.array([0, 0, 0, 0, 0, 1], np.uint8),
        np.arange(6),
    )
    found = targets(samples, ValueConfig(scale=600, trust=0.75))
    odds = 1 / (1 + np.exp(-1))
    assert found == pytest.approx([odds, 1 - odds, 1, 0, 0.5, 0.75 * 0.5 + 0.25], abs=1e-6)


def test_what_positions_tell_is_found():
    config = ValueConfig(games=20, epochs=8, batch=128, lr=2e-2)
    epochs: list[int] = []
    found = fit(
        made(6000), config, stop=lambda: False, on_epoch=lambda epoch, *_: epochs.append(epoch)
    )
    assert found is not None
    net, figures = found
    assert epochs == list(range(1, 9))
    assert figures.explained > 0.9
    LearnedValue(to_bytes(net, config))


def test_whole_numbers_are_close_to_the_net():
    torch.manual_seed(1)
    net = ValueNet()
    torch.nn.init.normal_(net.skip.weight, 0, 0.02)
    config = ValueConfig()
    data = to_bytes(net, config)
    picked = made(50).rows.astype(np.int32)
    exact = net(torch.from_numpy(picked)).detach().numpy() * config.scale
    words = np.frombuffer(data, "<i2", core.VALUE_ROWS * 32, 20).reshape(-1, 32).astype(np.int64)
    rest = np.frombuffer(data, "<i2", 64, 20 + 64 * core.VALUE_ROWS)
    skip = np.frombuffer(data, "<i4", core.VALUE_ROWS, 20 + 64 * core.VALUE_ROWS + 128)
    unit = np.clip(words[picked].sum(1) + rest[:32], 0, 255) / 255
    rough = (unit**2 @ rest[32:] + skip[picked].sum(1)) / 16
    # Each of 41 numbers of a unit is off by up to half a part of 255.
    assert np.abs(rough - exact).max() < 10


def test_a_run_is_sampled_fitted_and_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert main(["train", "value", "--run", str(whole), *QUICK]) == 0
    assert "positions" in capsys.readouterr().err
    files = sorted((whole / "samples").iterdir())
    assert [f.name for f in files] == ["000000.npz", "000001.npz"]
    LearnedValue((whole / "search.value").read_bytes())
    card = json.loads((whole / "search.json").read_text(encoding="utf-8"))
    assert card["config"]["games"] == 70
    assert card["fit"]["positions"] > 200

    assert main(["train", "value", "--run", str(broken), *QUICK]) == 0
    (broken / "samples" / "000001.npz").unlink()
    (broken / "search.value").unlink()
    assert main(["train", "value", "--run", str(broken), "--resume"]) == 0
    assert (broken / "search.value").read_bytes() == (whole / "search.value").read_bytes()

    for args, words in [
        (["--run", str(whole)], "not empty"),
        (["--resume"], "--run DIR"),
        (["--run", str(tmp_path / "none"), "--resume"], "no run to continue"),
        (["--run", str(whole), "--resume", "--seed", "5"], "seed: the run has 0, not 5"),
        (["--run", str(tmp_path / "t"), "--teacher", "gone.value"], "gone.value"),
        (["--run", str(tmp_path / "t"), "--games", "3"], "games"),
    ]:
        assert main(["train", "value", *args]) == 2
        assert words in capsys.readouterr().err
    (whole / "samples" / "000000.npz").write_bytes(b"torn")
    assert main(["train", "value", "--run", str(whole), "--resume"]) == 2
    assert "000000.npz: damaged" in capsys.readouterr().err
