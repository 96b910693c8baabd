"""Comparing reports: ratios, noise, drift of the machine, and files that are no reports."""

import json
import math
from pathlib import Path

import msgspec
import pytest

from snakekit.bench import compare as comparing
from snakekit.bench.compare import Report, ReportError, compare, read_report
from snakekit.bench.output import Output, OutputConfig
from snakekit.bench.report import Result, Section, noise_of_share, spread, write_report


def result(name: str, value: float, better: str = "lower", **params: float) -> Result:
    return Result(name=name, value=value, unit="ms", better=better, samples=9, params=params)


def verdict(old: Result, new: Result, *reference: float) -> str:
    times = [{"reference_ms": t} for t in reference] or [{}, {}]
    found = compare(Report(times[0], [old]), [new], times[1], origin="old.json")
    return found.changes[0].verdict


@pytest.mark.parametrize(
    ("old", "new", "better", "expected"),
    [
        (10.0, 10.9, "lower", "same"),
        (10.0, 11.2, "lower", "worse"),
        (10.0, 11.2, "higher", "better"),
        (10.0, 8.9, "lower", "better"),
        (10.0, 8.9, "higher", "worse"),
        (10.0, 9.2, "higher", "same"),
        (0.0, 0.0, "lower", "same"),
        (0.0, 1.0, "lower", "worse"),
    ],
)
def test_a_change_counts_beyond_the_noise(old, new, better, expected):
    quiet = result("a", old, better, spread=0.03)
    assert verdict(quiet, result("a", new, better, spread=0.1)) == expected
    assert verdict(result("a", old, better, spread=0.1), result("a", new, better)) == expected


def test_without_measured_noise_there_is_no_verdict():
    assert verdict(result("a", 1.0), result("a", 5.0)) == "unknown"
    assert verdict(result("a", 1.0, spread=math.nan), result("a", 5.0)) == "unknown"


def test_a_slower_machine_is_not_a_slower_program():
    old, new = result("a", 10.0, spread=0.01), result("a", 13.0, spread=0.01)
    assert verdict(old, new, 1.0, 1.0) == "worse"
    assert verdict(old, new, 1.0, 1.4) == "same"
    assert verdict(old, new, 1.4, 1.0) == "same"
    exact_old, exact_new = result("a", 10.0, spread=0.0), result("a", 13.0, spread=0.0)
    assert verdict(exact_old, exact_new, 1.0, 1.4) == "worse"


def test_figures_of_one_report_only_are_counted_and_nan_is_none():
    old = Report({}, [result("a", 1.0, spread=0.0), result("gone", 1.0)])
    new = [result("a", math.nan), result("b", 1.0)]
    found = compare(old, new, {}, origin="old.json")
    assert (found.changes, found.only_old, found.only_new) == ([], 1, 1)
    assert "0 worse" in comparing.summary(found)


def test_other_machines_and_versions_are_named():
    old = Report({"cpu": "A", "cpus": 2, "versions": {"numpy": "1", "torch": "2"}}, [])
    found = compare(old, [], {"cpu": "B", "cpus": 2, "versions": {"numpy": "2"}}, origin="x")
    assert found.differences == ["cpu: A -> B", "numpy: 1 -> 2", "torch: 2 -> none"]


def test_spread_is_the_quartiles_over_the_median():
    assert spread([1.0, 2.0, 3.0, 4.0, 5.0]) == pytest.approx(2 / 3)
    assert spread([7.0] * 4) == 0
    assert math.isnan(spread([1.0, 2.0]))
    assert math.isnan(spread([1.0, math.inf, 2.0]))
    assert math.isnan(spread([0.0] * 5))


def test_a_tail_that_a_part_does_not_have_has_no_noise():
    parts = [[float(i + j) for i in range(50)] for j in range(4)]
    assert "spread" in noise_of_share(parts, 0.98)
    assert noise_of_share(parts, 0.99) == {}
    assert noise_of_share(parts, 1.0) == {}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[1]", "not a report"),
        (b'{"results": []}', "not a report"),
        (b'{"environment": {}, "results": [{"name": "a"}]}', "not a report"),
        (None, "cannot be read"),
    ],
)
def test_what_is_no_report_is_refused_in_one_sentence(tmp_path, content, words):
    path = tmp_path / "old.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ReportError, match=words) as caught:
        read_report(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_what_is_written_can_be_read_and_drops_what_is_not_finite(tmp_path):
    path = tmp_path / "new.json"
    kept = result("a", 1.5, spread=0.25)
    write_report(path, [kept, result("b", math.nan), result("c", math.inf)])
    assert read_report(path).results == [kept]
    assert list(tmp_path.iterdir()) == [path]


def finish(tmp_path: Path, new: float, **options: object) -> int:
    old = tmp_path / "old.json"
    old.write_bytes(
        msgspec.json.encode({"environment": {}, "results": [result("x.a", 10.0, spread=0.01)]})
    )
    config = OutputConfig(compare=str(old), json=str(tmp_path / "new.json"), **options)
    return Output(config).finish([Section("x", "X", [result("x.a", new, spread=0.01)])])


def test_a_regression_fails_only_on_request(tmp_path, capsys):
    assert finish(tmp_path, 20.0) == 0
    assert "1 worse" in capsys.readouterr().out
    assert finish(tmp_path, 20.0, fail_on_regression=True) == 1
    assert finish(tmp_path, 5.0, fail_on_regression=True) == 0
    report = json.loads((tmp_path / "new.json").read_text())
    assert report["comparison"]["changes"][0]["ratio"] == 0.5
