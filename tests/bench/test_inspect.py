"""One board from a request: what is shown of the server's answer, and refusals."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from snakekit.__main__ import main
from snakekit.core import TERMS, Snake, State, evaluate
from snakekit.runtime.decide import Reason

Json = dict[str, Any]


def snake(name: str, cells: list[tuple[int, int]], health: int = 80) -> Json:
    return {"id": name, "health": health, "body": [{"x": x, "y": y} for x, y in cells]}


def request(us: list[tuple[int, int]], others: list[list[tuple[int, int]]]) -> Json:
    snakes = [snake("us", us)] + [snake(f"them{i}", cells) for i, cells in enumerate(others)]
    # Old clients send no more than this.
    board = {"width": 11, "height": 11, "food": [{"x": 5, "y": 5}], "snakes": snakes}
    return {"game": {"id": "g", "timeout": 500}, "turn": 30, "board": board, "you": snakes[0]}


OPEN = request([(2, 2), (2, 3), (2, 4)], [[(8, 8), (8, 7), (8, 6)]])
FORCED = request([(0, 0), (0, 1), (0, 2)], [[(8, 8), (8, 7), (8, 6)]])
FAST = ["--backend", "random", "--budget-ms", "20"]


def inspect(tmp_path: Path, body: Json, *options: str) -> int:
    file = tmp_path / "move.json"
    file.write_text(json.dumps(body))
    return main(["inspect", str(file), *FAST, *options])


def test_json_holds_what_the_decision_was_made_from(tmp_path, capsys):
    assert inspect(tmp_path, OPEN, "--json", "--planes") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["reason"] in {r.value for r in Reason}
    assert found["move"] in ("up", "down", "left", "right")
    assert sum(found["policy"]) == pytest.approx(1, abs=0.001)
    assert found["search_depth"] >= 1
    assert found["search_line"]
    assert len(found["search_exact"]) == 4
    assert set(found["evaluation_terms"]) <= set(TERMS)
    assert set(found["stages_ms"]) >= {"parse", "board", "encode", "policy", "search", "answer"}
    assert found["stages_ms"]["search"] <= found["stages_ms"]["answer"]
    assert len(found["planes"][0]) == 11


def test_the_evaluation_is_that_of_the_board(tmp_path, capsys):
    assert inspect(tmp_path, OPEN, "--json", "--mode", "search") == 0
    found = json.loads(capsys.readouterr().out)
    bodies = [[tuple(p.values()) for p in s["body"]] for s in OPEN["board"]["snakes"]]
    state = State(11, 11, [Snake(str(i), 80, b) for i, b in enumerate(bodies)], [(5, 5)])
    assert found["evaluation"] == evaluate(state, 0)
    assert found["policy"] is None
    assert "planes" not in found


def test_the_board_and_the_reason_are_drawn(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert inspect(tmp_path, OPEN, "--planes", "--mode", "policy") == 0
    text = capsys.readouterr().out
    for part in ("A▼", "us, turn 30", "policy", "Evaluation of", "plane 0", "ms: parse"):
        assert part in text, part


def test_a_forced_move_asks_nobody(tmp_path, capsys):
    assert inspect(tmp_path, FORCED, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["move"], found["reason"]) == ("right", "forced")
    assert found["search_depth"] is None
    assert found["search_exact"] is None


def test_a_request_comes_from_stdin_as_well(capsys, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(json.dumps(FORCED).encode()))
    monkeypatch.setattr("sys.stdin", stream)
    assert main(["inspect", "-", *FAST]) == 0
    assert "forced" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "body: empty"),
        (b"{", "body: not JSON"),
        (b'{"turn": 1}', "missing"),
        (json.dumps(OPEN | {"you": snake("gone", [(30, 30)])}).encode(), "you: expected one of"),
        (json.dumps(OPEN | {"board": OPEN["board"] | {"width": 90}}).encode(), "board.width"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(tmp_path, capsys, body, words):
    file = tmp_path / "move.json"
    file.write_bytes(body)
    assert main(["inspect", str(file), *FAST]) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_files_and_models_that_are_not_there(tmp_path, capsys):
    assert main(["inspect", str(tmp_path / "none.json")]) == 2
    assert "No such file" in capsys.readouterr().err
    assert inspect(tmp_path, OPEN, "--backend", "cpu", "--model", str(tmp_path / "no.onnx")) == 2
    assert "no.onnx" in capsys.readouterr().err
