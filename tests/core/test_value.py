"""The learned value of duels: against plain arithmetic, symmetries, and where it judges."""

import hashlib
import importlib.util
import json
import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from core_boards import SYMMETRIES, play, scattered, turned_state

from snakekit import core
from snakekit.core import LearnedValue, Searcher, Settings, State, evaluate, value_rows

CARD = Path(__file__).parents[2] / "csrc" / "value" / "shipped.json"
HEAD = 20


def duels(seed: int, turns: int = 60) -> Iterator[State]:
    rng = random.Random(seed)
    for _ in range(4):
        for state in play(scattered(rng, 11, 11, 2, Settings(minimum_food=3)), rng, turns):
            if len(state.living()) == 2:
                yield state


def parts(data: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows, bias, weights of the units and of the rows, as the file has them."""
    rows, units = core.VALUE_ROWS, core.VALUE_UNITS
    words = np.frombuffer(data, "<i2", rows * units, HEAD).reshape(rows, units)
    bias = np.frombuffer(data, "<i2", units, HEAD + 2 * rows * units)
    out = np.frombuffer(data, "<i2", units, HEAD + 2 * (rows + 1) * units)
    skip = np.frombuffer(data, "<i4", rows, HEAD + 2 * (rows + 2) * units)
    assert HEAD + 2 * (rows + 2) * units + 4 * rows == len(data)
    return words, bias, out, skip


def slow(data: bytes, state: State, seat: int) -> float:
    """The network in floating point, points."""
    words, bias, out, skip = parts(data)
    picked = value_rows(state, seat)
    unit = np.clip(words[picked].sum(0) + bias.astype(np.int64), 0, core.VALUE_ONE) / core.VALUE_ONE
    return float(unit**2 @ out.astype(float) + skip[picked].sum()) / core.VALUE_PARTS


def test_the_search_judges_duels_as_the_file_says():
    seen = 0
    for state in duels(3):
        seen += 1
        for seat in (0, 1):
            expected = max(-1900.0, min(1900.0, slow(core.SHIPPED_VALUE, state, seat)))
            # Squares lose four bits each.
            assert evaluate(state, seat) == pytest.approx(expected, abs=4)
            same = evaluate(state, seat, learned=LearnedValue(core.SHIPPED_VALUE))
            assert same == evaluate(state, seat)
    assert seen > 40


def test_the_card_names_the_bytes():
    card = json.loads(CARD.read_text(encoding="utf-8"))
    assert hashlib.sha256(core.SHIPPED_VALUE).hexdigest() == card["sha256"]


def test_a_turned_board_is_worth_the_same():
    for state in islice(duels(4), 0, None, 5):
        for symmetry in SYMMETRIES:
            assert value_rows(turned_state(symmetry, state), 0) == value_rows(state, 0)


def test_rows_lie_in_their_blocks():
    counts = {len(value_rows(s, seat)) for s in duels(5) for seat in (0, 1)}
    assert counts == {40}
    rows = np.array([value_rows(s, 0) for s in duels(6)])
    assert (np.diff(rows, axis=1) > 0).all()
    assert 0 <= rows.min() <= rows.max() < core.VALUE_ROWS


@pytest.mark.parametrize("ruleset", ["wrapped", "constrictor"])
def test_other_rules_are_judged_by_the_weights(ruleset):
    rng = random.Random(6)
    for state in play(scattered(rng, 11, 11, 2, Settings(ruleset=ruleset)), rng, 20):
        if len(state.living()) == 2:
            assert evaluate(state, 0) == evaluate(state, 0, weights={})


def test_more_snakes_are_judged_by_the_weights_until_two_are_left():
    rng = random.Random(7)
    seen = set()
    for state in play(scattered(rng, 11, 11, 4, Settings(minimum_food=3)), rng, 80):
        living = state.living()
        if len(living) > 2:
            assert evaluate(state, living[0]) == evaluate(state, living[0], weights={})
        seen.add(len(living))
    assert max(seen) > 2


def test_a_search_with_weights_alone_or_with_a_file():
    state = next(islice(duels(8), 10, None))
    shipped, same, weights = (
        Searcher(1, **given).search(state, 0, max_depth=4)
        for given in ({}, {"learned": LearnedValue(core.SHIPPED_VALUE)}, {"weights": {}})
    )
    assert (shipped.nodes, shipped.scores) == (same.nodes, same.scores)
    assert shipped.scores != weights.scores


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not a learned value"),
        (b"snakeval", "not a learned value"),
        (b"x" * 200, "not a learned value"),
        (b"snakeval" + np.array([9, 1, 1], "<i4").tobytes(), "features of version 9, expected 1"),
        (core.SHIPPED_VALUE[:-1], "length"),
        (core.SHIPPED_VALUE + b"x", "length"),
    ],
)
def test_damaged_files_are_refused(data, words):
    with pytest.raises(ValueError, match=words):
        LearnedValue(data)


def test_labels_do_not_depend_on_threads():
    one, two = (
        core.label_positions(games=6, label_nodes=100, max_nodes=50, seed=3, threads=n)
        for n in (1, 2)
    )
    assert set(one) == {"rows", "score", "result", "played", "game"}
    assert all((one[name] == two[name]).all() for name in one)
    assert len(one["rows"]) == len(one["score"]) > 100
    assert set(np.unique(one["result"])) <= {0, 0.5, 1}
    later = core.label_positions(first=3, games=3, label_nodes=100, max_nodes=50, seed=3)
    assert (later["rows"] == one["rows"][one["game"] >= 3]).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"games": 0}, "games"),
        ({"share": 0}, "share"),
        ({"wander": -1}, "wander"),
        ({"label_nodes": 0}, "label_nodes"),
        ({"random_percent": 101}, "random_percent"),
    ],
)
def test_bad_sampling_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        core.label_positions(**options)


def test_rows_are_asked_for_duels_only():
    rng = random.Random(1)
    with pytest.raises(ValueError, match="two living"):
        value_rows(scattered(rng, 11, 11, 3, Settings()), 0)


def test_a_new_value_leaves_the_one_that_observations_look_at(tmp_path, monkeypatch):
    path = Path(__file__).parents[2] / ".ci" / "embed_value.py"
    spec = importlib.util.spec_from_file_location("embed_value", path)
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    library, runs = tmp_path / "library", [tmp_path / "first", tmp_path / "second"]
    library.mkdir()
    (library / "standing.inc").write_text('#include "shipped.inc"\n')
    (library / "shipped.inc").write_text("old")
    monkeypatch.setattr(tool, "PLACE", library)
    for number, run in enumerate(runs):
        run.mkdir()
        (run / "search.value").write_bytes(bytes([number + 1] * 9))
        (run / "search.json").write_text("{}")
        tool.main(run)
        assert (library / "standing.inc").read_text() == "old"
    wanted = "// 9 bytes\n0x0202020202020202, 0x0000000000000002\n"
    assert (library / "shipped.inc").read_text() == wanted
