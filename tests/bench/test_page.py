"""The page: plots that hold what was measured, no requests, and a look by a real browser."""

import math
import re
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest

from snakekit.__main__ import main
from snakekit.bench.page import page
from snakekit.bench.report import Missing, Result, Section, environment
from snakekit.trainer import plots
from snakekit.trainer.plots import Axis, Series

CHROMIUM = shutil.which("chromium")


def svg(figure: str) -> ElementTree.Element:
    found = ElementTree.fromstring(figure).find("svg")
    assert found is not None
    return found


def test_every_finite_point_is_drawn_inside_the_picture():
    points = [(1.0, 0.2), (2.0, 0.5), (8.0, math.nan), (256.0, 50.0), (4.0, -1.0)]
    figure = plots.lines(
        "T", [Series("a < b", points)], Axis("batch", log=True), Axis("ms", log=True)
    )
    dots = svg(figure).findall("circle")
    assert len(dots) == 3
    places = [(float(d.attrib["cx"]), float(d.attrib["cy"])) for d in dots]
    assert all(plots.LEFT <= x <= plots.WIDTH and 0 <= y <= plots.HEIGHT for x, y in places)
    assert places == sorted(places)
    assert [y for _, y in places] == sorted((y for _, y in places), reverse=True)


@pytest.mark.parametrize("value", [0.0, 3.0, 1e-9, 1e12])
def test_one_point_or_equal_points_are_a_plot_as_well(value):
    series = [Series("a", [(value, value), (value, value)])]
    assert len(svg(plots.lines("T", series, Axis("x"), Axis("y"))).findall("circle")) == 2
    assert svg(plots.lines("T", series, Axis("x", zero=False), Axis("y"))).findall("circle")


def test_bars_are_as_long_as_their_values():
    groups = [("one", [10.0, 20.0]), ("two", [40.0, math.nan])]
    bars = svg(plots.bars("T", groups, ["CPU", "GPU"])).findall("rect")
    lengths = [float(b.attrib["width"]) for b in bars]
    assert lengths[1] == pytest.approx(2 * lengths[0], rel=0.01)
    assert lengths[2] == pytest.approx(4 * lengths[0], rel=0.01)
    assert len(lengths) == 3


def test_nothing_measured_is_said():
    empty = [Series("a", [(1.0, math.nan)])]
    assert "nothing was measured" in plots.lines("T", empty, Axis("x"), Axis("y"))
    assert "nothing was measured" in plots.bars("T", [("a", [0.0])], ["x"], log=True)


def test_names_cannot_become_markup():
    name = "<script>alert(1)</script>"
    bad = Result(name=name, value=1.0, unit="ms", better="lower", samples=1)
    plot = plots.bars(name, [(name, [1.0])], [name])
    section = Section("x", name, [bad], [Missing(what=name, why=name)], plots=[plot])
    text = page([section], environment())
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "default-src &#x27;none&#x27;" in text


def whole_page(tmp_path) -> str:
    path = tmp_path / "page.html"
    assert main(["bench", "all", "--quick", "--html", str(path)]) == 0
    return path.read_text()


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="the browser chromium is not installed")
def test_a_browser_shows_the_plots_in_light_and_dark(tmp_path):
    text = whole_page(tmp_path)
    assert not re.search(r"https?://|\bsrc=|@import|url\(", text)
    options = [
        "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", "--window-size=1200,3000",
    ]  # fmt: skip
    pictures = []
    for scheme in ("0", "1"):
        picture = tmp_path / f"{scheme}.png"
        command = [
            str(CHROMIUM), *options, f"--user-data-dir={tmp_path / scheme}",
            f"--blink-settings=preferredColorScheme={scheme}", f"--screenshot={picture}",
            "--dump-dom", (tmp_path / "page.html").as_uri(),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
        pictures.append(picture.read_bytes())
    for caption in ("Latency against batch", "Throughput against latency", "CPU against GPU"):
        assert re.search(rf"<figcaption>{caption}[^<]*</figcaption><svg", done.stdout)
    assert done.stdout.count('class="plot"') >= 7
    assert pictures[0] != pictures[1]
    assert all(len(picture) > 50_000 for picture in pictures)
