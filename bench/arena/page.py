"""An arena's result as one HTML file: no script, no requests, light and dark."""

import html
import math
from collections.abc import Sequence

from snakekit.bench.arena.summary import Summary
from snakekit.bench.arena.tables import notes
from snakekit.bench.protocol import Json
from snakekit.trainer.page import document

_STYLE = """
:root{color-scheme:light dark;--bg:#fbfbfa;--card:#fff;--ink:#1d2125;--soft:#5b646d;--line:#e1e4e8;
--mark:#1f6fd6;--win:31,111,214;--loss:217,72,15}
@media (prefers-color-scheme:dark){:root{--bg:#14171a;--card:#1c2024;--ink:#e6e9ec;--soft:#9aa4ae;
--line:#31373d;--mark:#6cb0ff;--win:77,148,240;--loss:255,122,64}}
*{box-sizing:border-box}
body{margin:0 auto;padding:24px 20px 60px;max-width:1100px;background:var(--bg);color:var(--ink);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:26px;margin:0 0 4px}h2{font-size:19px;margin:32px 0 10px}
p{margin:0 0 6px;overflow-wrap:anywhere}p.about{color:var(--soft)}
.box{padding:10px 16px;background:var(--card);border:1px solid var(--line);border-radius:10px;
overflow-x:auto}
svg{display:block;width:100%;height:auto}
svg text{fill:var(--ink);font:12px system-ui,sans-serif}svg text.soft{fill:var(--soft)}
.grid{stroke:var(--line)}.bar{stroke:var(--mark);stroke-width:2}.dot{fill:var(--mark)}
.win{fill:rgb(var(--win))}.loss{fill:rgb(var(--loss))}.none{fill:var(--line)}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:5px 14px 5px 0;text-align:right;border-bottom:1px solid var(--line);
white-space:nowrap}
th{color:var(--soft);font-weight:600}tr:last-child td{border-bottom:0}
th:first-child,td:first-child{text-align:left}
"""
_ADVANCE = 6.8
_LONGEST = 28


def page(found: Summary, environment: Json, params: Json) -> str:
    """Return the whole page; `params` are the options played with."""
    facts = [
        ", ".join(f"{key} {value}" for key, value in params.items() if key != "players"),
        f"{environment['cpu']}, {environment['cpus']} cores, commit {environment['commit']}, "
        f"{environment['time']}",
    ]
    body = [
        "<h1>snakekit arena</h1>",
        *(f'<p class="about">{html.escape(fact)}</p>' for fact in facts),
        *(f"<p>{html.escape(note)}</p>" for note in notes(found)),
        _box("Ratings, Elo with 95 % intervals", rating_plot(found) + _ratings(found)),
        _box("Points of row against column", heat_map(found)),
        _box("Deaths", _deaths(found)),
    ]
    return document("snakekit arena", body, _STYLE)


def _box(title: str, content: str) -> str:
    return f'<section><h2>{html.escape(title)}</h2><div class="box">{content}</div></section>'


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


def _margin(found: Summary) -> float:
    return 20 + _ADVANCE * max(len(_short(name)) for name in found.names)


def _text(x: float, y: float, words: str, anchor: str = "middle", kind: str = "") -> str:
    attribute = f' class="{kind}"' if kind else ""
    return (
        f'<text{attribute} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
        f"{html.escape(words)}</text>"
    )


def _svg(label: str, width: float, height: float, parts: Sequence[str]) -> str:
    # The widest a picture gets is its own size, so that few players do not give huge cells.
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" style="max-width:{width:.0f}px" role="img" '
        f'aria-label="{html.escape(label)}">{"".join(parts)}</svg>'
    )


def _step(span: float) -> float:
    """Return a round distance of grid lines for about six of them."""
    raw = max(span, 1.0) / 6
    power = 10.0 ** math.floor(math.log10(raw))
    return next(f * power for f in (1, 2, 5, 10) if f * power >= raw)


def rating_plot(found: Summary) -> str:
    """Return each player's rating as a dot on its interval, the strongest on top."""
    left, width, row = _margin(found), 1000.0, 26
    low = min(rating.low for rating in found.ratings)
    high = max(rating.high for rating in found.ratings)
    step = _step(high - low)
    first, last = math.floor(low / step), math.ceil(high / step)
    last = max(last, first + 1)
    height = 12 + row * len(found.names)

    def x(elo: float) -> float:
        return left + (elo / step - first) / (last - first) * (width - left - 20)

    parts = []
    for tick in range(first, last + 1):
        at = x(tick * step)
        parts.append(f'<path class="grid" d="M{at:.1f} 4V{height}"/>')
        parts.append(_text(at, height + 18, f"{tick * step:g}", kind="soft"))
    for place, index in enumerate(found.ranking):
        rating, y = found.ratings[index], 12 + row * place + row / 2 - 4
        words = f"{rating.name}: {rating.elo:+.0f} ({rating.low:+.0f} to {rating.high:+.0f})"
        parts.append(_text(left - 10, y + 4, _short(rating.name), "end"))
        parts.append(
            f"<g><title>{html.escape(words)}</title>"
            f'<path class="bar" d="M{x(rating.low):.1f} {y}H{x(rating.high):.1f}"/>'
            f'<circle class="dot" cx="{x(rating.elo):.1f}" cy="{y}" r="5"/></g>'
        )
    return _svg("ratings with intervals", width, height + 26, parts)


def heat_map(found: Summary) -> str:
    """Return the pairwise matrix; blue where the row's player is ahead, red where behind."""
    # The names carry a rank here.
    left, cell, top = _margin(found) + 3 * _ADVANCE, 44, 26
    order, scores, games = found.ranking, found.payoff.scores, found.payoff.games
    parts = []
    for row, i in enumerate(order):
        y = top + row * cell
        parts.append(
            _text(left - 10, y + cell / 2 + 4, f"{_short(found.names[i])} {row + 1}", "end")
        )
        parts.append(_text(left + row * cell + cell / 2, top - 8, str(row + 1), kind="soft"))
        for col, j in enumerate(order):
            if i == j:
                continue
            share = float(scores[i, j])
            kind, depth, words = "none", 0.5, "–"
            if not math.isnan(share):
                kind, words = ("win" if share >= 0.5 else "loss"), f"{100 * share:.0f}"
                depth = abs(share - 0.5) * 1.5 + 0.04
            title = f"{found.names[i]} against {found.names[j]}: {words} %, {games[i, j]:.0f} games"
            x = left + col * cell
            parts.append(
                f"<g><title>{html.escape(title)}</title>"
                f'<rect class="{kind}" fill-opacity="{depth:.2f}" x="{x + 1:.1f}" y="{y + 1}" '
                f'width="{cell - 2}" height="{cell - 2}" rx="4"/>'
                + _text(x + cell / 2, y + cell / 2 + 4, words)
                + "</g>"
            )
    side = cell * len(order)
    return _svg("heat map of points", left + side + 10, top + side + 6, parts)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _ratings(found: Summary) -> str:
    columns = ["player", "Elo", "95 %", "games", "won", "drawn", "lost", "points", "turns alive"]
    rows = []
    for index in found.ranking:
        r, t = found.ratings[index], found.tallies[index]
        mu, sigma = found.opinion[r.name]
        rows.append(
            [
                *(r.name, f"{r.elo:+.0f}", f"{r.low:+.0f} to {r.high:+.0f}"),
                *(str(n) for n in (t.games, t.wins, t.draws, t.losses)),
                *(f"{t.mean(t.points):.3f}", f"{t.mean(t.survived):.0f}"),
                *(f"{t.mean(t.lengths):.1f}", f"{mu:.1f} ± {sigma:.1f}"),
            ]
        )
    return _table([*columns, "length", "openskill"], rows)


def _deaths(found: Summary) -> str:
    causes = sorted({cause for tally in found.tallies for cause in tally.deaths})
    rows = []
    for index in found.ranking:
        tally = found.tallies[index]
        alive = tally.games - sum(tally.deaths.values())
        rows.append(
            [tally.name, *(str(tally.deaths[c]) for c in causes), str(alive), str(tally.faults)]
        )
    return _table(["player", *causes, "alive", "faulty moves"], rows)
