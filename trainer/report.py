"""`report.html` of a run: the course of its figures, what happened, and its configuration."""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snakekit.trainer import plots
from snakekit.trainer.page import document
from snakekit.trainer.plots import Axis, Series
from snakekit.trainer.run import EVENTS, METRICS, read_lines

FILE = "report.html"
_POINTS = 160


@dataclass(frozen=True)
class Chart:
    """One plot: figures of metrics.jsonl by key, with the label that each line gets."""

    title: str
    unit: str
    lines: tuple[tuple[str, str], ...]
    zero: bool = True


def thin(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return at most `_POINTS` points, each the mean of as many neighbours."""
    width = max(1, math.ceil(len(points) / _POINTS))
    groups = [points[i : i + width] for i in range(0, len(points), width)]
    return [
        (sum(x for x, _ in group) / len(group), sum(y for _, y in group) / len(group))
        for group in groups
    ]


def course(metrics: Sequence[dict[str, Any]], key: str, x: str) -> list[tuple[float, float]]:
    """Return the points (x, key) of all lines that have both."""
    found = [(line.get(x), line.get(key)) for line in metrics]
    return [(float(a), float(b)) for a, b in found if a is not None and b is not None]


def write_report(folder: Path, title: str, charts: Sequence[Chart], *, x: str, x_unit: str) -> Path:
    """Write the report of the run in `folder` and return its path.

    Args:
        folder: the run's.
        title: of the page.
        charts: what to plot; those without any figure are left out.
        x: key of the figure along the horizontal axis.
        x_unit: its label.

    Raises:
        OSError: the disk refuses.
    """
    metrics = read_lines(folder / METRICS)
    pictures = []
    for chart in charts:
        series = [Series(label, thin(course(metrics, key, x))) for key, label in chart.lines]
        if any(s.points for s in series):
            pictures.append(
                plots.lines(
                    chart.title, series, Axis(x_unit, zero=False), Axis(chart.unit, zero=chart.zero)
                )
            )
    rows = "".join(
        f'<tr><td>{event["step"]}</td><td class="w">{html.escape(event["kind"])}</td>'
        f'<td class="why">{html.escape(event["text"])}</td></tr>'
        for event in read_lines(folder / EVENTS)
    )
    config = folder / "config.toml"
    words = config.read_text(encoding="utf-8") if config.exists() else ""
    body = [
        f"<h1>{html.escape(title)}</h1>",
        f'<p class="about">{html.escape(_summary(metrics))}</p>',
        f'<div class="plots">{"".join(pictures)}</div>',
        "<h2>Events</h2>",
        f'<div class="box"><table>{rows}</table></div>' if rows else "<p>none</p>",
        "<h2>Configuration</h2>",
        f'<div class="box"><pre>{html.escape(words)}</pre></div>',
    ]
    path = folder / FILE
    path.write_text(document(title, body), encoding="utf-8")
    return path


def _summary(metrics: Sequence[dict[str, Any]]) -> str:
    if not metrics:
        return "no round was finished"
    last = metrics[-1]
    seconds = last.get("seconds")
    spent = f", {seconds / 60:.1f} minutes" if seconds else ""
    return f"{len(metrics)} rounds, the last one at step {last['step']}{spent}"
