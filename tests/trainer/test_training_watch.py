"""A run's folder, display, alarms and report."""

import io
import json
import math
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from snakekit.trainer.alarms import Alarms, Falling, Limit, NotFinite
from snakekit.trainer.report import Chart, thin, write_report
from snakekit.trainer.run import RunFolder
from snakekit.trainer.watch import Watch, sparkline


class Config(msgspec.Struct, frozen=True):
    name: str = "x"
    lr: float = 0.5


def test_limits_wait_and_are_told_once() -> None:
    alarms = Alarms([Limit("entropy", "entropy {}", below=0.1, patience=2), NotFinite()])
    course = [0.5, 0.05, 0.05, 0.05, 0.5, 0.05, 0.05]
    told = [alarms.check({"entropy": value}) for value in course]
    assert told == [[], [], ["entropy 0.05"], [], [], [], ["entropy 0.05"]]
    assert alarms.check({"b": math.nan, "a": math.inf, "entropy": 1}) == [
        "not a finite number: a, b"
    ]


def test_a_falling_mean_is_noticed() -> None:
    rule = Falling("turns", "{} of {}", share=0.5, memory=0.5, least=3)
    values = [100.0, 100, 100, 100, 60, 30, 20, 20]
    words = [rule.check({"turns": v}) for v in values]
    assert words[:6] == [""] * 6
    assert words[-1].endswith("of 100")
    assert rule.check({"other": 1}) == ""


def test_the_past_of_a_resumed_run_counts_but_is_silent() -> None:
    past = [{"entropy": 0.0}] * 3
    rule = Limit("entropy", "low", below=0.1)
    alarms = Alarms([rule], past)
    assert alarms.check({"entropy": 0.0}) == []
    assert rule.rounds == 4


def test_what_was_written_after_the_checkpoint_is_dropped(tmp_path: Path) -> None:
    with RunFolder.make(tmp_path / "r", Config()) as folder:
        for step in range(1, 6):
            folder.log(step, {"a": step / 2, "odd": math.nan})
            folder.note(step, "alarm", "words", level=3)
    path = tmp_path / "r" / "metrics.jsonl"
    path.write_text(path.read_text() + '{"step": 6, "a"')
    with RunFolder(tmp_path / "r", resumed_at=3) as folder:
        folder.log(4, {"a": 9.0})
        assert [line["a"] for line in folder.metrics()] == [0.5, 1.0, 1.5, 9.0]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0] == {"step": 1, "a": 0.5, "odd": None}
    events = (tmp_path / "r" / "events.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in events] == [1, 2, 3]


def test_a_used_folder_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    RunFolder.make(tmp_path / "r", Config()).__exit__(None, None, None)
    with pytest.raises(FileExistsError, match="--resume"):
        RunFolder.make(tmp_path / "r", Config())


@pytest.mark.parametrize("terminal", [True, False])
def test_the_display_shows_figures_and_alarms(tmp_path: Path, terminal: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=100)
    shown = (("kl", "kl", ".3f"), ("turns", "length", ".0f"), ("never", "never", ".0f"))
    alarms = Alarms([Limit("kl", "kl is {}", above=1, patience=1)])
    with (
        RunFolder.make(tmp_path / "r", Config()) as folder,
        Watch(console, 10, folder, shown, unit="iterations", alarms=alarms) as watch,
    ):
        watch.log(1, {"kl": 0.5, "turns": 12})
        watch.log(2, {"kl": 2.0, "turns": math.nan})
        watch.say(2, "promoted", sha="x")
    text = out.getvalue()
    for word in ("2.000", "length", "kl is 2", "promoted", "iterations"):
        assert word in text, word
    assert "never" not in text
    events = (tmp_path / "r" / "events.jsonl").read_text().splitlines()
    assert [json.loads(line)["kind"] for line in events] == ["alarm", "event"]


def test_games_of_a_gate_have_a_bar_while_they_are_played(tmp_path: Path) -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100)
    with RunFolder.make(tmp_path / "r", Config()) as folder, Watch(console, 9, folder, ()) as watch:
        progress = watch.part("gate games")
        progress(20, 80)
        console.print(watch._picture())
        shown = out.getvalue()
        progress(80, 80)
        out.truncate(0)
        console.print(watch._picture())
        after = out.getvalue()
    assert "gate games" in shown
    assert "20/80" in shown
    assert "gate games" not in after


def test_a_gate_at_the_checkpoint_is_told_again_by_the_resumed_run(tmp_path: Path) -> None:
    with RunFolder.make(tmp_path / "r", Config()) as folder:
        folder.note(2, "gate", "early")
        folder.note(3, "alarm", "stays")
        folder.note(3, "promotion", "again")
    with RunFolder(tmp_path / "r", resumed_at=3):
        text = (tmp_path / "r" / "events.jsonl").read_text()
    assert "early" in text
    assert "stays" in text
    assert "again" not in text


def test_sparklines_scale() -> None:
    assert sparkline([0, 1, 2]) == "▁▅█"
    assert sparkline([3, 3]) == "▄▄"
    assert sparkline([0, math.nan, 1]) == "▁×█"
    assert sparkline([math.nan]) == ""


def test_the_report_holds_plots_events_and_configuration(tmp_path: Path) -> None:
    with RunFolder.make(tmp_path / "r", Config(name="<b>")) as folder:
        for step in range(400):
            folder.log(step, {"a": step**0.5, "decisions": step * 10.0, "seconds": 60.0})
        folder.note(7, "alarm", "<script>")
    charts = [
        Chart("A", "unit", (("a", "first"), ("none", "second"))),
        Chart("N", "u", (("z", "z"),)),
    ]
    path = write_report(tmp_path / "r", "A <run>", charts, x="decisions", x_unit="decisions")
    text = path.read_text()
    root = ElementTree.fromstring(text.split("<body>")[1].join(("<body>", "")).split("</html>")[0])
    assert len(root.findall(".//svg")) == 1
    assert 100 <= len(root.findall(".//circle")) <= 160
    assert "<script>" not in text
    assert "A &lt;run&gt;" in text
    assert "400 rounds" in text
    assert thin([(0, 0), (1, 1)]) == [(0, 0), (1, 1)]
