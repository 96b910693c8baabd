"""Weights in small files, there and back."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from snakekit.trainer import checkpoint as store
from snakekit.trainer.checkpoint import Checkpoint

SCRIPT = Path(__file__).parents[2] / ".ci" / "handover.py"


def test_weights_survive_in_parts(
    tmp_path: Path, tiny: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, out, again = tmp_path / "run", tmp_path / "out", tmp_path / "again"
    store.save(run / "checkpoints" / "step-000000007", tiny)
    tools = runpy.run_path(str(SCRIPT))
    tools["pack"].__globals__["PART"] = 2_000
    tools["pack"](run, out)
    assert len(list(out.iterdir())) > 1
    monkeypatch.setattr(sys, "argv", ["handover.py", "unpack", str(out), str(again)])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    found = store.load(store.latest(again))
    assert (found.card.step, found.card.net) == (tiny.card.step, tiny.card.net)
    for name, value in tiny.weights.items():
        np.testing.assert_allclose(found.weights[name], value, atol=1e-3, rtol=1e-3)
    store.restore_model(found, origin="x")
