"""The report as one HTML file: no script, no requests, light and dark."""

import html
from typing import Any

from snakekit.bench import compare as comparing
from snakekit.bench.compare import Comparison
from snakekit.bench.report import Grid, Missing, Section

# Tells the browser itself to refuse every request, whatever a label may hold.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"

_STYLE = """
:root{color-scheme:light dark;--bg:#fbfbfa;--card:#fff;--ink:#1d2125;--soft:#5b646d;--line:#e1e4e8;
--good:#1a7f4b;--bad:#c2282d;--c0:#1f6fd6;--c1:#d9480f;--c2:#1a8f5a;--c3:#8f3fc2;--c4:#b7791f;
--c5:#0b8793;--c6:#c2336f;--c7:#5f6b7a}
@media (prefers-color-scheme:dark){:root{--bg:#14171a;--card:#1c2024;--ink:#e6e9ec;--soft:#9aa4ae;
--line:#31373d;--good:#4cc38a;--bad:#ff7b72;--c0:#6cb0ff;--c1:#ff9057;--c2:#56cf94;--c3:#c796ee;
--c4:#e8b64c;--c5:#4fc8d4;--c6:#f587b4;--c7:#a7b2be}}
*{box-sizing:border-box}
body{margin:0 auto;padding:24px 20px 60px;max-width:1360px;background:var(--bg);color:var(--ink);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:26px;margin:0 0 4px}h2{font-size:19px;margin:36px 0 10px}
p.about,p.note{color:var(--soft);margin:0 0 6px;overflow-wrap:anywhere}
.plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,420px),1fr));gap:16px;align-items:start;
margin-bottom:16px}
figure,.box{margin:0;padding:14px 16px;background:var(--card);border:1px solid var(--line);
border-radius:10px}
.box{overflow-x:auto;padding:4px 16px 8px}
figcaption{font-weight:600;margin-bottom:6px}
svg{display:block;width:100%;height:auto}
svg text{fill:var(--soft);font:12px system-ui,sans-serif}svg text.name{fill:var(--ink)}
.grid{stroke:var(--line)}.axis{stroke:var(--soft);fill:none}
.line{fill:none;stroke-width:2;stroke:var(--c)}.dot,.bar{fill:var(--c)}
.legend{margin:8px 0 0;color:var(--soft);font-size:13px;display:flex;flex-wrap:wrap;gap:2px 16px}
.key{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:6px;
background:var(--c)}
.s0{--c:var(--c0)}.s1{--c:var(--c1)}.s2{--c:var(--c2)}.s3{--c:var(--c3)}.s4{--c:var(--c4)}
.s5{--c:var(--c5)}.s6{--c:var(--c6)}.s7{--c:var(--c7)}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:5px 14px 5px 0;text-align:right;border-bottom:1px solid var(--line);
white-space:nowrap}
th{color:var(--soft);font-weight:600}tr:last-child td{border-bottom:0}
.w{text-align:left}td.why{text-align:left;color:var(--soft);white-space:normal}
tr.better td:last-child{color:var(--good);font-weight:600}
tr.worse td:last-child{color:var(--bad);font-weight:600}
"""


def page(
    sections: list[Section], environment: dict[str, Any], comparison: Comparison | None = None
) -> str:
    """Return the whole page."""
    body = [_about(environment)]
    if comparison is not None:
        body.append(_compared(comparison))
    body += [_section(section) for section in sections]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(_POLICY)}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>snakekit measurements</title><style>{_STYLE}</style></head><body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


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
