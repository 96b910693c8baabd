"""The learning curves of PPO runs as one SVG picture: python .ci/learning_curve.py OUT RUN..."""

import re
import sys
import tomllib
from pathlib import Path

from snakekit.trainer import plots
from snakekit.trainer.page import STYLE
from snakekit.trainer.plots import Axis, Series
from snakekit.trainer.report import course
from snakekit.trainer.run import METRICS, read_lines

_MARGIN, _LEGEND = 10, 22


def curve(runs: list[Path]) -> str:
    """Return the shares of games that the bare policies won, against decisions learned."""
    series = []
    for opponent in ("random", "greedy"):
        for run in runs:
            points = course(read_lines(run / METRICS), f"measure/{opponent}", "decisions_total")
            seed = tomllib.loads((run / "config.toml").read_text(encoding="utf-8"))["seed"]
            label = f"against {opponent}, seed {seed}"
            series.append(Series(label, points, dashed=opponent == "random"))
    figure = plots.lines(
        "won", series, Axis("decisions learned"), Axis("share of 400 games won by policy alone")
    )
    inner = re.search(r"<svg[^>]*>(.*)</svg>", figure, re.DOTALL)
    if inner is None:
        raise SystemExit("none of the runs measured anything: set measure_every")
    legend = "".join(
        f'<rect class="bar s{i % plots.COLOURS}" x="{plots.WIDTH - 230}" '
        f'y="{plots.HEIGHT - 90 - _LEGEND * (len(series) - i)}" width="11" height="11" rx="3"/>'
        f'<text x="{plots.WIDTH - 212}" y="{plots.HEIGHT - 80 - _LEGEND * (len(series) - i)}">'
        f"{s.label}</text>"
        for i, s in enumerate(series)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-_MARGIN} {-_MARGIN} '
        f'{plots.WIDTH + 2 * _MARGIN} {plots.HEIGHT + 2 * _MARGIN}"><style>{STYLE}</style>'
        f'<rect class="sheet" x="{-_MARGIN}" y="{-_MARGIN}" width="100%" height="100%" '
        f'fill="var(--card)"/>{inner.group(1)}{legend}</svg>\n'
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(curve([Path(name) for name in sys.argv[2:]]), encoding="utf-8")
