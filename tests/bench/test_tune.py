"""Tuning of weights: the same run whether killed or not, and weights as players use them."""

import json
from pathlib import Path

import numpy as np
import pytest

from snakekit.__main__ import main
from snakekit.bench.arena.entrants import parse_entrant
from snakekit.bench.players import PlayerError, parse_player
from snakekit.bench.search_plan import parse_plan
from snakekit.bench.tune.cli import interval
from snakekit.bench.tune.evolve import evolve, strategy
from snakekit.bench.tune.space import Space, all_weights
from snakekit.bench.weights import read_weights
from snakekit.core import TERMS, WEIGHTS, State

pytest.importorskip("cma")

SMALL = ["--population", "4", "--starts", "1", "--nodes", "20", "--max-turns", "40"]
SMALL += ["--threads", "1", "--terms", "area,length", "--validate", "2", "--validate-nodes", "20"]


def tune(out: Path, *options: str) -> int:
    return main(["bench", "tune", "--out", str(out), *SMALL, *options])


def test_a_resumed_run_equals_an_unbroken_one(tmp_path, capsys):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert tune(whole, "--generations", "3") in (0, 1)
    assert tune(parts, "--generations", "1", "--validate", "0") == 0
    # A kill in the middle of a line.
    with (parts / "scores.jsonl").open("ab") as log:
        log.write(b"[0.5,0.")
    assert tune(parts, "--generations", "3", "--resume") in (0, 1)
    for name in ("scores.jsonl", "weights.json"):
        assert (whole / name).read_bytes() == (parts / name).read_bytes()
    found = json.loads((whole / "weights.json").read_text())
    assert set(found["weights"]) == set(WEIGHTS)
    changed = {n for n, v in found["weights"].items() if v != WEIGHTS[n]}
    assert changed == {"duel.area", "duel.length"}
    assert found["against_old"]["games"] == 4
    assert "new against old" in capsys.readouterr().out


def test_a_match_that_shows_no_gain_exits_1(tmp_path):
    # No generation: the weights play against themselves.
    assert tune(tmp_path / "run", "--generations", "0", "--mode", "four", "--validate", "1") == 1


def test_evolution_finds_what_scores():
    space = Space("duel", ("area", "length"), all_weights({}), seed=1)
    target = space.weights(np.array([1.0, -0.5]))

    def score(generation: int, weights: dict[str, int]) -> float:
        misses = [(weights[f"duel.{n}"] - target[f"duel.{n}"]) / 500 for n in space.names]
        return -sum(m * m for m in misses)

    found = evolve(space, strategy(space, sigma=0.3, population=8, seed=1), score, [])
    for _ in range(40):
        _, mean = next(found)
    assert space.weights(mean)["duel.length"] == pytest.approx(target["duel.length"], abs=30)


def test_the_interval_holds_the_mean():
    assert interval([0.5]) == (0.0, 1.0)
    low, high = interval([0.0, 1.0] * 50)
    assert low == pytest.approx(0.4, abs=0.01)
    assert high == pytest.approx(0.6, abs=0.01)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--terms", "space"], "terms: 'space' is unknown, expected some of area"),
        (["--start", "missing.json"], "missing.json"),
        (["--resume"], "holds no run to go on with"),
        (["--population", "1"], "population"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(tmp_path, capsys, options, words):
    assert main(["bench", "tune", "--out", str(tmp_path / "run"), *options]) == 2
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1


def test_a_run_is_not_overwritten_nor_mixed_with_another(tmp_path, capsys):
    assert tune(tmp_path, "--generations", "0", "--validate", "0") == 0
    assert tune(tmp_path, "--generations", "0") == 2
    assert "holds a run already" in capsys.readouterr().err
    assert tune(tmp_path, "--resume", "--sigma", "0.5") == 2
    assert "resume: sigma was 0.2" in capsys.readouterr().err


def write(path: Path, weights: object) -> str:
    path.write_text(json.dumps({"weights": weights}))
    return str(path)


def test_players_search_with_the_weights_of_a_file(tmp_path):
    blind = {f"{table}.{name}": 0 for table in ("duel", "many") for name in TERMS}
    file = write(tmp_path / "w.json", blind)
    spec = parse_plan(f"depth=2,weights={file}")
    assert (spec.depth, spec.weights) == (2, blind)
    state = State.new_game(11, 11, ["a", "b"], 3)
    found = spec.search(spec.searcher(), state, 0, 1)
    assert {s for s in found.scores if s is not None} == {0}
    entrant = parse_entrant(f"new=search:nodes=50,weights={file}")
    assert (entrant.name, entrant.plan.nodes) == ("new", 50)
    assert entrant.plan.fingerprint != parse_entrant("search:nodes=50").plan.fingerprint == ""
    mind = parse_player(f"search:nodes=50,weights={file}").sit(1)
    assert 0 <= mind(state, 0) <= 3


def test_weights_that_cannot_be_used_are_refused(tmp_path):
    for content, words in (
        ({"area": 1}, "weights.area: unknown"),
        ({"duel.area": 99_999}, "weights.duel.area: expected"),
        ({"duel.area": "much"}, "not a file of weights"),
    ):
        file = write(tmp_path / "w.json", content)
        with pytest.raises(ValueError, match=words):
            read_weights(Path(file))
        with pytest.raises(PlayerError, match="player search:5"):
            parse_player(f"search:5,weights={file}")
    with pytest.raises(PlayerError, match=r"gone\.json: No such file"):
        parse_entrant("search:5,weights=gone.json")
    with pytest.raises(PlayerError, match="found 'weight'"):
        parse_entrant("search:5,weight=x")
