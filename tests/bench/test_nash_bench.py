"""`snakekit bench nash`: what it measures and how it refuses."""

import json
from pathlib import Path

import pytest

from snakekit.__main__ import main


@pytest.mark.slow
def test_all_figures_with_random_weights(tmp_path: Path) -> None:
    out = tmp_path / "nash.json"
    assert main(["bench", "nash", "--answers", "20", "--rounds", "1", "--json", str(out)]) == 0
    found = {r["name"]: r for r in json.loads(out.read_text())["results"]}
    assert set(found) == {
        "nash.regret_1000_us",
        *(f"nash.{size}.{share}_ms" for size in ("duel", "four") for share in ("p50", "p99")),
        "train.nash.states_per_s",
    }
    assert all(r["value"] > 0 for r in found.values())
    assert found["nash.duel.p99_ms"]["params"]["leaves"] <= 9
    assert found["nash.four.p99_ms"]["params"]["leaves"] > 9


def test_a_model_for_one_seat_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "nash", "--model", "compact", "--rounds", "0"]) == 2
    assert "answers for one seat, not for all" in capsys.readouterr().err
