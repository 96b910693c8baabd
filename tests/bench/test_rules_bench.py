"""`snakekit bench rules` and `bench encoder`: exactness against recordings, and the figures."""

import gzip
import json
from pathlib import Path

import msgspec
import pytest

from snakekit.__main__ import main

SAMPLE = Path(__file__).parents[1] / "data" / "rules_corpus_sample.jsonl.gz"


def first_lines(count: int) -> list[dict]:
    with gzip.open(SAMPLE, "rt") as lines:
        return [json.loads(next(lines)) for _ in range(count)]


def write(path: Path, lines: list[dict]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_verify_accepts_what_the_engine_did(capsys):
    assert main(["bench", "rules", "--verify", str(SAMPLE)]) == 0
    count, text = capsys.readouterr().out.strip().split(" ", 1)
    assert int(count) > 2500
    assert text == "lines, 0 mismatches"


@pytest.mark.parametrize("field", ["health", "body", "cause", "food", "over"])
def test_verify_shows_each_kind_of_mismatch(tmp_path, capsys, field):
    lines = [line for line in first_lines(200) if line["moves"] and line["rules"]["food"]][:20]
    assert len(lines) == 20
    snake = lines[7]["rules"]["snakes"][0]
    if field == "health":
        snake["health"] += 1
    elif field == "body":
        snake["body"][-1][0] += 1
    elif field == "cause":
        snake["eliminatedCause"] = "wall-collision" if snake.get("eliminatedCause") else "hazard"
    elif field == "food":
        lines[7]["rules"]["food"].append([0, 0])
    else:
        lines[7]["gameOver"] = not lines[7]["gameOver"]
    path = write(tmp_path / "x.jsonl", lines)
    assert main(["bench", "rules", "--verify", str(path)]) == 1
    out = capsys.readouterr().out
    assert "20 lines, 1 mismatches" in out
    assert f"line 8: {lines[7]['game']} turn {lines[7]['turn']}" in out
    assert "engine " in out
    assert {"over": "game over"}.get(field, field) in out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "line 1"),
        (b"[]\n", "line 1"),
        (b'{"game": "a"}\n', "line 1"),
        (b"\xff\xfe\n", "line 1"),
        (None, "cannot be read"),
    ],
)
def test_verify_refuses_what_is_no_recording(tmp_path, capsys, content, message):
    path = tmp_path / "x.jsonl"
    if content is not None:
        path.write_bytes(content)
    assert main(["bench", "rules", "--verify", str(path)]) == 2
    error = capsys.readouterr().err
    assert str(path) in error
    assert message in error


def test_verify_refuses_a_cut_archive(tmp_path, capsys):
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(SAMPLE.read_bytes()[:5000])
    assert main(["bench", "rules", "--verify", str(path)]) == 2
    assert "cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("measure", "names"),
    [
        ("rules", ["rules.turns_per_s", "env.steps_per_s", "env.memory_per_game"]),
        ("encoder", [f"encoder.v{version}.us_per_state" for version in (1, 2, 3)]),
    ],
)
def test_figures_are_written(tmp_path, measure, names):
    path = tmp_path / "figures.json"
    options = ["--windows", "1", "--seconds", "0.01", "--json", str(path)]
    assert main(["bench", measure, *options]) == 0
    report = msgspec.json.decode(path.read_bytes())
    found = {result["name"]: result for result in report["results"]}
    for name in names:
        assert found[name]["value"] > 0
    assert report["environment"]["cpus"] >= 1


@pytest.mark.slow
def test_counted_instructions_repeat():
    counts = pytest.importorskip("snakekit.bench.counts")
    try:
        counter = counts.Counter().__enter__()
    except counts.CountError as error:
        pytest.skip(f"counting needs valgrind and g++: {error}")
    with_first = counter.instructions("rules")
    assert with_first == counter.instructions("rules")
    counter.__exit__()
    assert 100 < with_first[0] < 5000
