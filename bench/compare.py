"""Two reports side by side: ratios, and which changes are larger than the noise of the runs."""

import math
from pathlib import Path
from typing import Any, Literal

import msgspec

from snakekit.bench.report import Grid, Result
from snakekit.trainer.plots import figure

FLOOR = 0.02
"""No change below this counts: the alignment of code and memory moves figures as far."""

Verdict = Literal["better", "worse", "same", "unknown"]


class ReportError(ValueError):
    """A report that cannot be compared with; one sentence."""


class Report(msgspec.Struct, frozen=True):
    """A report file as read back."""

    environment: dict[str, Any]
    results: list[Result]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One figure in both reports.

    `noise` is the largest of both runs' spreads, the drift of the machine's own speed between them
    and `FLOOR`; None where neither run measured a spread, and then the verdict is `unknown`.
    Counts, which repeat exactly (spread 0), do not drift.
    """

    name: str
    unit: str
    old: float
    new: float
    ratio: float
    noise: float | None
    verdict: Verdict


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All figures of two reports."""

    origin: str
    changes: list[Change]
    only_old: int
    only_new: int
    drift: float
    """Time for the same fixed work, new over old; NaN where a report does not have it."""
    differences: list[str]
    """What differs between the two machines or installations."""

    @property
    def worse(self) -> list[Change]:
        """Changes for the worse beyond the noise."""
        return [c for c in self.changes if c.verdict == "worse"]


def read_report(path: Path) -> Report:
    """Read a report written with `--json`.

    Raises:
        ReportError: missing, unreadable, or not such a report.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Report)
    except OSError as error:
        raise ReportError(f"{path}: cannot be read ({error.strerror})") from None
    except msgspec.ValidationError as error:
        raise ReportError(
            f"{path}: not a report of snakekit bench: {error}; expected a file from --json"
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise ReportError(f"{path}: not JSON; expected a file from --json") from None


def compare(
    old: Report, new: list[Result], environment: dict[str, Any], *, origin: str
) -> Comparison:
    """Return the change of every figure that both have, in the order of `new`."""
    before = {r.name: r for r in old.results if math.isfinite(r.value)}
    names = {r.name for r in new}
    drift = _drift(old.environment, environment)
    changes = [
        _change(before[r.name], r, drift)
        for r in new
        if r.name in before and math.isfinite(r.value)
    ]
    return Comparison(
        origin=origin,
        changes=changes,
        only_old=len(before.keys() - names),
        only_new=len(names - before.keys()),
        drift=drift,
        differences=_differences(old.environment, environment),
    )


def _drift(old: dict[str, Any], new: dict[str, Any]) -> float:
    times = [old.get("reference_ms"), new.get("reference_ms")]
    if not all(isinstance(t, (int, float)) and math.isfinite(t) and t > 0 for t in times):
        return math.nan
    return float(times[1] / times[0])  # type: ignore[operator]


def _change(old: Result, new: Result, drift: float) -> Change:
    by = ratio(old.value, new.value)
    spreads = [found for r in (old, new) if (found := _spread(r)) is not None]
    noise = max([FLOOR, *spreads]) if spreads else None
    if noise is not None and any(spreads) and math.isfinite(drift):
        noise = max(noise, drift - 1, 1 / drift - 1)
    verdict: Verdict = "same"
    if old.unit != new.unit or noise is None:
        verdict = "unknown"
    elif by > 1 + noise or by < 1 / (1 + noise):
        verdict = "better" if (by > 1) == (new.better == "higher") else "worse"
    return Change(
        name=new.name,
        unit=new.unit,
        old=old.value,
        new=new.value,
        ratio=by,
        noise=noise,
        verdict=verdict,
    )


def ratio(old: float, new: float) -> float:
    """Return new over old: 1 where both are 0, infinity where only the old one is."""
    if old == new:
        return 1.0
    return new / old if old else math.inf


def _spread(result: Result) -> float | None:
    found = result.params.get("spread")
    if isinstance(found, bool) or not isinstance(found, (int, float)):
        return None
    return float(found) if math.isfinite(found) and found >= 0 else None


def _differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    before, now = old.get("versions"), new.get("versions")
    parts = [({k: e.get(k) for k in ("cpu", "cpus", "system", "gpu")}) for e in (old, new)]
    pairs = [(parts[0], parts[1])]
    if isinstance(before, dict) and isinstance(now, dict):
        pairs.append((before, now))
    return [
        f"{key}: {one.get(key) or 'none'} -> {two.get(key) or 'none'}"
        for one, two in pairs
        for key in sorted(one.keys() | two.keys())
        if one.get(key) != two.get(key)
    ]


def grid(comparison: Comparison) -> Grid:
    """Return the changes as a table."""
    rows = []
    for c in comparison.changes:
        noise = "unknown" if c.noise is None else f"{c.noise:.1%}"
        by = f"{c.ratio:.3f}" if math.isfinite(c.ratio) else "-"
        verdict = "?" if c.verdict == "unknown" else c.verdict
        rows.append([c.name, figure(c.old), figure(c.new), c.unit, by, noise, verdict])
    return Grid(["figure", "old", "new", "unit", "new/old", "noise", "verdict"], rows)


def summary(comparison: Comparison) -> str:
    """Return one sentence about all changes."""
    counts: dict[Verdict, int] = {"better": 0, "worse": 0, "same": 0, "unknown": 0}
    for change in comparison.changes:
        counts[change.verdict] += 1
    text = (
        f"against {comparison.origin}: {counts['better']} better, {counts['worse']} worse, "
        f"{counts['same']} within noise"
    )
    if counts["unknown"]:
        text += f", {counts['unknown']} of unknown noise"
    if math.isfinite(comparison.drift):
        text += f"; fixed work took {comparison.drift:.2f} of the old time"
    if comparison.only_old or comparison.only_new:
        text += f"; {comparison.only_old} only in the old one, {comparison.only_new} new"
    return text
