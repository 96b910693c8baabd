"""Plots as inline SVG: lines on linear or logarithmic axes, and horizontal bars.

Colours are classes of the page's style sheet (`s0` to `s7`), so one picture fits light and dark.
"""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 640, 380
LEFT, RIGHT, TOP, BOTTOM = 66, 16, 14, 46
COLOURS = 8
_ADVANCE = 6.6
"""Width of a letter of the labels, generously."""


@dataclass(frozen=True)
class Series:
    """One line: points in the order of drawing, and whether it is dashed."""

    label: str
    points: list[tuple[float, float]]
    dashed: bool = False


@dataclass(frozen=True)
class Axis:
    """One axis; `ticks` replaces the automatic ones, `zero` begins a linear one at 0."""

    label: str
    log: bool = False
    zero: bool = True
    ticks: tuple[float, ...] = ()


class _Scale:
    """Maps values of one axis to coordinates."""

    def __init__(self, axis: Axis, values: list[float], start: float, end: float) -> None:
        self._log = axis.log
        self._start, self._end = start, end
        low, high = min(values), max(values)
        if axis.log:
            pad = 1.12 if high / low < 1e6 else 1.3
            self._low, self._high = math.log10(low / pad), math.log10(high * pad)
        else:
            self._low = min(0.0, low) if axis.zero else low - 0.03 * (high - low)
            self._high = high + 0.06 * (high - self._low) if high > self._low else low + 1.0
        self.ticks = list(axis.ticks) or self._auto()

    def __call__(self, value: float) -> float:
        at = math.log10(value) if self._log else value
        share = (at - self._low) / (self._high - self._low)
        return self._start + share * (self._end - self._start)

    def _auto(self) -> list[float]:
        if not self._log:
            step = _nice((self._high - self._low) / 5)
            first = math.ceil(self._low / step)
            return [i * step for i in range(first, math.floor(self._high / step) + 1)]
        for factors in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8)):
            found = [
                f * 10.0**e
                for e in range(math.floor(self._low), math.ceil(self._high) + 1)
                for f in factors
                if self._low <= math.log10(f * 10.0**e) <= self._high
            ]
            if len(found) >= 4:
                break
        return found


def _nice(step: float) -> float:
    """Return the round number next above `step`."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(f * power for f in (1, 2, 5, 10) if f * power >= step * 0.999)


def tick_text(value: float) -> str:
    """Return a short form: 0.5, 20, 1.5k, 2M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def figure(value: float) -> str:
    """Return a value with as many digits as it deserves, `-` for one that is not finite."""
    if not math.isfinite(value):
        return "-"
    if abs(value) >= 1000 or value == round(value):
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.3g}"


def lines(title: str, series: Sequence[Series], x: Axis, y: Axis) -> str:
    """Return a figure with one line a series; points that an axis cannot show are left out."""
    shown = [s for s in (_clean(s, x, y) for s in series) if s.points]
    if not shown:
        return _empty(title)
    xs = [p[0] for s in shown for p in s.points]
    ys = [p[1] for s in shown for p in s.points]
    across = _Scale(x, xs, LEFT, WIDTH - RIGHT)
    up = _Scale(y, ys, HEIGHT - BOTTOM, TOP)
    parts = _frame(x, y, across, up)
    for index, s in enumerate(shown):
        parts += _line(index, s, x, y, across, up)
    return _figure(
        title, f"0 0 {WIDTH} {HEIGHT}", parts, [s.label for s in shown] if len(shown) > 1 else []
    )


def _clean(series: Series, x: Axis, y: Axis) -> Series:
    points = [
        p
        for p in series.points
        if all(map(math.isfinite, p)) and (p[0] > 0 or not x.log) and (p[1] > 0 or not y.log)
    ]
    return Series(series.label, points, series.dashed)


def _frame(x: Axis, y: Axis, across: _Scale, up: _Scale) -> list[str]:
    bottom = HEIGHT - BOTTOM
    parts = []
    for value in across.ticks:
        at = across(value)
        parts.append(f'<path class="grid" d="M{at:.1f} {TOP}V{bottom}"/>')
        parts.append(_text(at, bottom + 17, tick_text(value), "middle"))
    for value in up.ticks:
        at = up(value)
        parts.append(f'<path class="grid" d="M{LEFT} {at:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(_text(LEFT - 8, at + 4, tick_text(value), "end"))
    parts.append(f'<path class="axis" d="M{LEFT} {TOP}V{bottom}H{WIDTH - RIGHT}"/>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(_text(middle, HEIGHT - 8, x.label, "middle", "name"))
    half = (TOP + bottom) / 2
    parts.append(
        f'<text class="name" text-anchor="middle" transform="translate(15 {half:.1f}) '
        f'rotate(-90)">{html.escape(y.label)}</text>'
    )
    return parts


def _line(index: int, s: Series, x: Axis, y: Axis, across: _Scale, up: _Scale) -> list[str]:
    colour = f"s{index % COLOURS}"
    path = "L".join(f"{across(a):.1f} {up(b):.1f}" for a, b in s.points)
    dash = ' stroke-dasharray="6 4"' if s.dashed else ""
    parts = [f'<path class="line {colour}" d="M{path}"{dash}/>']
    for a, b in s.points:
        words = f"{s.label}: {x.label} {figure(a)}, {y.label} {figure(b)}"
        parts.append(
            f'<circle class="dot {colour}" cx="{across(a):.1f}" cy="{up(b):.1f}" r="3.5">'
            f"<title>{html.escape(words)}</title></circle>"
        )
    return parts


def bars(
    title: str,
    groups: Sequence[tuple[str, Sequence[float]]],
    labels: Sequence[str],
    *,
    log: bool = False,
) -> str:
    """Return a figure with horizontal bars.

    Args:
        title: the caption.
        groups: label of each group and one value for each of `labels`; NaN leaves a gap.
        labels: what the bars of a group are; with one label it names the axis.
        log: lengths are logarithms, from a decade below the smallest value on.
    """
    values = [v for _, vs in groups for v in vs if math.isfinite(v) and v > 0]
    if not values:
        return _empty(title)
    thick = 20 if len(labels) == 1 else 13
    height = 8.0
    left = 12 + _ADVANCE * max(len(name) for name, _ in groups)
    room = WIDTH - left - 74
    low = 10.0 ** math.floor(math.log10(min(values)) - 0.01) if log else 0.0
    parts: list[str] = []
    for name, found in groups:
        middle = height + thick * len(found) / 2
        parts.append(_text(left - 8, middle + 4, name, "end"))
        for index, value in enumerate(found):
            if math.isfinite(value) and value > 0:
                share = _share(value, low, max(values))
                words = f"{name}, {labels[index]}: {figure(value)}"
                parts.append(
                    f'<rect class="bar s{index % COLOURS}" x="{left:.1f}" y="{height + 1:.1f}" '
                    f'width="{max(1.0, share * room):.1f}" height="{thick - 3}" rx="2">'
                    f"<title>{html.escape(words)}</title></rect>"
                )
                end = left + share * room + 6
                parts.append(_text(end, height + thick / 2 + 3.5, tick_text(value), "start"))
            height += thick
        height += 8
    parts.append(f'<path class="axis" d="M{left:.1f} 4V{height:.1f}"/>')
    if len(labels) == 1:
        title += f" ({labels[0]}{', logarithmic' if log else ''})"
    legend = labels if len(labels) > 1 else []
    return _figure(title, f"0 0 {WIDTH} {height + 4:.0f}", parts, legend)


def _share(value: float, low: float, high: float) -> float:
    if low == 0:
        return value / high
    return math.log10(value / low) / math.log10(high / low)


def _text(x: float, y: float, words: str, anchor: str, kind: str = "tick") -> str:
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
        f"{html.escape(words)}</text>"
    )


def _figure(title: str, box: str, parts: list[str], labels: Sequence[str]) -> str:
    legend = "".join(
        f'<span><i class="key s{i % COLOURS}"></i>{html.escape(label)}</span>'
        for i, label in enumerate(labels)
    )
    return (
        f"<figure><figcaption>{html.escape(title)}</figcaption>"
        f'<svg class="plot" viewBox="{box}" role="img" aria-label="{html.escape(title)}">'
        f"{''.join(parts)}</svg>" + (f'<p class="legend">{legend}</p>' if legend else "")
    ) + "</figure>"


def _empty(title: str) -> str:
    return (
        f"<figure><figcaption>{html.escape(title)}</figcaption>"
        '<p class="none">nothing was measured</p></figure>'
    )
