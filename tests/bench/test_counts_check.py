"""`snakekit bench counts`: what counts as a regression, and the baseline in the repository."""

import math
import shutil
from pathlib import Path

import msgspec
import pytest

from snakekit.__main__ import main
from snakekit.bench import counts, counts_check
from snakekit.bench.compare import Report
from snakekit.bench.counts import Work
from snakekit.bench.counts_check import judge, read_baseline
from snakekit.bench.report import Result

BASELINE = Path(__file__).parents[2] / ".ci" / "counts.json"


def result(name: str, value: float) -> Result:
    return Result(name=name, value=value, unit="", better="lower", samples=1)


@pytest.mark.parametrize(
    ("name", "old", "new", "same_compiler", "expected"),
    [
        ("rules.instructions", 100, 105, True, "same"),
        ("rules.instructions", 100, 105.1, True, "regression"),
        ("rules.instructions", 100, 94, True, "better"),
        ("rules.instructions", 100, 500, False, "not compared"),
        ("search.nodes", 1000, 1051, False, "regression"),
        ("rules.allocations", 0, 0, True, "same"),
        ("rules.allocations", 0, 0.001, False, "regression"),
        ("rules.instructions", 100, math.nan, True, "regression"),
    ],
)
def test_verdicts(name, old, new, same_compiler, expected):
    baseline = Report({}, [result(name, old)])
    found = judge(baseline, [result(name, new)], allowed=0.05, same_compiler=same_compiler)
    assert [v.kind for v in found] == [expected]


def test_new_and_lost_counts_are_seen():
    baseline = Report({}, [result("a.nodes", 1)])
    found = judge(baseline, [result("b.nodes", 1)], allowed=0.05, same_compiler=True)
    assert [(v.name, v.kind) for v in found] == [("a.nodes", "gone"), ("b.nodes", "new")]


class FakeCounter:
    """Counts what a test says instead of compiling."""

    factor = 1.0

    def __enter__(self) -> "FakeCounter":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def instructions(self, what: str) -> tuple[float, int]:
        return 100.0 * self.factor, 10

    def work(self, what: str) -> Work:
        return Work(1000, 10, 0)


def test_a_regression_fails_and_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(counts_check, "Counter", FakeCounter)
    monkeypatch.setattr(counts_check, "compiler", lambda: "g++ 1")
    path = str(tmp_path / "counts.json")
    assert main(["bench", "counts", "--write", path]) == 0
    assert main(["bench", "counts", "--check", path]) == 0
    assert "no count exceeds" in capsys.readouterr().out
    monkeypatch.setattr(FakeCounter, "factor", 1.06)
    assert main(["bench", "counts", "--check", path]) == 1
    assert "counts.rules.instructions: 106 is more than 100" in capsys.readouterr().out
    monkeypatch.setattr(counts_check, "compiler", lambda: "g++ 2")
    assert main(["bench", "counts", "--check", path]) == 0
    assert "baseline made with g++ 1, here is g++ 2" in capsys.readouterr().out


@pytest.mark.parametrize("content", [b"{", b'{"environment": {}, "results": []}', None])
def test_a_bad_baseline_is_one_sentence_and_exit_2(tmp_path, capsys, content):
    path = tmp_path / "counts.json"
    if content is not None:
        path.write_bytes(content)
    assert main(["bench", "counts", "--check", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("tool", ["g++", "valgrind"])
def test_missing_tools_are_one_sentence_and_exit_2(monkeypatch, capsys, tool):
    which = counts.shutil.which
    monkeypatch.setattr(counts.shutil, "which", lambda name: None if name == tool else which(name))
    assert main(["bench", "counts"]) == 2
    assert f"{tool} is not installed" in capsys.readouterr().err


def test_the_baseline_has_every_count_and_no_allocation_per_step():
    baseline = read_baseline(BASELINE)
    values = {r.name: r.value for r in baseline.results}
    for what in counts.UNITS:
        assert values[f"counts.{what}.instructions"] > 0
    for what in ("rules", "v1", "v2", "v3"):
        assert values[f"counts.{what}.allocations"] == 0
    assert msgspec.json.decode(BASELINE.read_bytes())["environment"].keys() == {"compiler"}


@pytest.mark.slow
def test_allocations_and_nodes_repeat():
    if not (shutil.which("g++") and shutil.which("valgrind")):
        pytest.skip("counting needs valgrind and g++")
    with counts.Counter() as counter:
        for what in counts.UNITS:
            once, twice = counter.work(what, 1), counter.work(what, 2)
            assert (2 * once.units, 2 * once.calls) == (twice.units, twice.calls)
            assert 2 * once.allocations == twice.allocations
