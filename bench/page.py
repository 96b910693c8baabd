"""The report as one HTML file: no script, no requests, light and dark."""

import html
from typing import Any

from snakekit.bench import compare as comparing
from snakekit.bench.compare import Comparison
from snakekit.bench.report import Grid, Missing, Section
from snakekit.trainer.page import document


def page(
    sections: list[Section], environment: dict[str, Any], comparison: Comparison | None = None
) -> str:
    """Return the whole page."""
    body = [_about(environment)]
    if comparison is not None:
        body.append(_compared(comparison))
    body += [_section(section) for section in sections]
    return document("snakekit measurements", body)


def _about(environment: dict[str, Any]) -> str:
    versions = ", ".join(f"{k} {v}" for k, v in environment["versions"].items())
    facts = [
        f"{environment['cpu']}, {environment['cpus']} cores, {environment['system']}",
        f"GPU: {environment.get('gpu') or 'none'}",
        versions,
        f"commit {environment['commit']}, {environment['time']}",
    ]
    text = "".join(f'<p class="about">{html.escape(fact)}</p>' for fact in facts)
    return f"<h1>snakekit measurements</h1>{text}"


def _section(section: Section) -> str:
    title = html.escape(section.title)
    plots = f'<div class="plots">{"".join(section.plots)}</div>' if section.plots else ""
    table = _table(section.table(), section.missing)
    return f'<section id="{html.escape(section.name)}"><h2>{title}</h2>{plots}{table}</section>'


def _compared(comparison: Comparison) -> str:
    notes = [comparing.summary(comparison), *(f"differs: {d}" for d in comparison.differences)]
    text = "".join(f'<p class="note">{html.escape(note)}</p>' for note in notes)
    table = _table(comparing.grid(comparison), []) if comparison.changes else ""
    return f'<section id="comparison"><h2>Comparison</h2>{text}{table}</section>'


def _table(grid: Grid, missing: list[Missing]) -> str:
    kinds = [
        ' class="w"' if i < grid.words or column in ("unit", "verdict") else ""
        for i, column in enumerate(grid.columns)
    ]
    head = "".join(
        f"<th{kind}>{html.escape(column)}</th>"
        for column, kind in zip(grid.columns, kinds, strict=True)
    )
    rows = []
    for row in grid.rows:
        cells = "".join(
            f"<td{kind}>{html.escape(cell)}</td>" for cell, kind in zip(row, kinds, strict=True)
        )
        mark = f' class="{row[-1]}"' if row[-1] in ("better", "worse") else ""
        rows.append(f"<tr{mark}>{cells}</tr>")
    for m in missing:
        span = len(grid.columns) - 1
        rows.append(
            f'<tr><td class="w">{html.escape(m.what)}</td>'
            f'<td class="why" colspan="{span}">not measured: {html.escape(m.why)}</td></tr>'
        )
    return f'<div class="box"><table><tr>{head}</tr>{"".join(rows)}</table></div>'
