"""The figures, table and plots of `snakekit bench inference`."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from snakekit.bench.report import Grid, Missing, Result, Section, noise_of, noise_of_share
from snakekit.bench.tally import percentile
from snakekit.trainer import plots
from snakekit.trainer.plots import Axis, Series, figure

if TYPE_CHECKING:
    from snakekit.bench.inference import Case

_COLUMNS = ["model, backend", "batch", "threads", "p50 ms", "p90 ms", "p99 ms", "min ms"]
_COLUMNS += ["CPU ms", "samples/s", "noise"]
_GPUS = ("cuda", "ort-tensorrt", "tensorrt", "tensorrt-rtx")
_DEVICES = ("CPU", "GPU", "Triton")


def cost_per_million(price_per_hour: float, moves_per_s: float) -> float:
    """Return the price of a million moves; NaN without a rate."""
    if not moves_per_s > 0:
        return math.nan
    return price_per_hour / 3600 / moves_per_s * 1e6


def section(cases: Sequence["Case"], missing: list[Missing], price_per_hour: float) -> Section:
    """Return the report of measured cases."""
    made = Section("inference", "Inference", [], missing)
    figures = {case.name: _figures(case, price_per_hour) for case in cases}
    for found in figures.values():
        made.results += found.values()
    columns = [*_COLUMNS, *(["cost/million"] if price_per_hour else [])]
    rows = []
    for case in cases:
        by_name = figures[case.name]
        label = f"{case.model} {case.precision} {case.backend}"
        keys = ["p50_ms", "p90_ms", "p99_ms", "min_ms", "cpu_ms", "samples_per_s"]
        noise = by_name["p50_ms"].params.get("spread")
        rows.append(
            [
                label,
                str(case.batch),
                str(case.threads),
                *(figure(by_name[key].value) for key in keys),
                "" if noise is None else f"{noise:.1%}",
                *([figure(by_name["cost_per_million"].value)] if price_per_hour else []),
            ]
        )
    made.grid = Grid(columns, rows)
    made.plots = _plots(cases, figures, missing)
    return made


def _figures(case: "Case", price_per_hour: float) -> dict[str, Result]:
    wall = [seconds for turn in case.wall for seconds in turn]
    cpu = [seconds for turn in case.cpu for seconds in turn]
    params = {
        "model": case.model,
        "backend": case.backend,
        "actual": case.runner.describe().actual,
        "precision": case.precision,
        "batch": case.batch,
        "threads": case.threads,
    }

    def result(
        key: str,
        value: float,
        unit: str,
        better: Literal["higher", "lower"],
        noise: dict[str, float],
    ) -> Result:
        return Result(
            name=f"{case.name}.{key}",
            value=value,
            unit=unit,
            better=better,
            samples=len(wall),
            params={**params, **noise},
        )

    def share(key: str, part: float) -> Result:
        noise = noise_of_share(case.wall, part)
        return result(key, percentile(wall, part) * 1000, "ms", "lower", noise)

    rates = [case.batch * len(turn) / sum(turn) for turn in case.wall]
    rate = case.batch * len(wall) / sum(wall) if wall else math.nan
    means = [sum(turn) / len(turn) * 1000 for turn in case.cpu]
    least = [min(turn) * 1000 for turn in case.wall]
    found = {
        "p50_ms": share("p50_ms", 0.5),
        "p90_ms": share("p90_ms", 0.9),
        "p99_ms": share("p99_ms", 0.99),
        "min_ms": result(
            "min_ms", min(wall, default=math.nan) * 1000, "ms", "lower", noise_of(least)
        ),
        "cpu_ms": result(
            "cpu_ms",
            sum(cpu) / len(cpu) * 1000 if cpu else math.nan,
            "ms",
            "lower",
            noise_of(means),
        ),
        "samples_per_s": result("samples_per_s", rate, "samples/s", "higher", noise_of(rates)),
    }
    if price_per_hour:
        costs = [cost_per_million(price_per_hour, r) for r in rates]
        cost = cost_per_million(price_per_hour, rate)
        found["cost_per_million"] = result(
            "cost_per_million", cost, "price", "lower", noise_of(costs)
        )
    return found


def _plots(
    cases: Sequence["Case"], figures: dict[str, dict[str, Result]], missing: list[Missing]
) -> list[str]:
    lines: dict[str, list[Case]] = {}
    for case in cases:
        words = "thread" if case.threads == 1 else "threads"
        label = f"{case.model} {case.precision} {case.backend}, {case.threads} {words}"
        lines.setdefault(label, []).append(case)

    def value(case: "Case", key: str) -> float:
        return figures[case.name][key].value

    latency = [
        Series(label, [(c.batch, value(c, "p50_ms")) for c in found], found[0].threads > 1)
        for label, found in lines.items()
    ]
    throughput = [
        Series(
            label,
            [(value(c, "p50_ms"), value(c, "samples_per_s")) for c in found],
            found[0].threads > 1,
        )
        for label, found in lines.items()
    ]
    batches = tuple(float(b) for b in sorted({c.batch for c in cases}))
    return [
        plots.lines(
            "Latency against batch",
            latency,
            Axis("batch", log=True, ticks=batches),
            Axis("p50, ms", log=True),
        ),
        plots.lines(
            "Throughput against latency",
            throughput,
            Axis("p50, ms", log=True),
            Axis("samples per second", log=True),
        ),
        _devices(cases, figures, missing),
    ]


def _devices(
    cases: Sequence["Case"], figures: dict[str, dict[str, Result]], missing: list[Missing]
) -> str:
    """Return bars of the best throughput of CPU and GPU at each batch."""
    batches = sorted({c.batch for c in cases})
    best: dict[tuple[str, int], float] = {}
    for case in cases:
        # What a Triton server runs on is its own affair.
        device = {"cpu": "CPU", "triton": "Triton"}.get(case.backend, "GPU")
        rate = figures[case.name]["samples_per_s"].value
        best[device, case.batch] = max(rate, best.get((device, case.batch), 0.0))
    devices = [d for d in _DEVICES if any(key[0] == d for key in best)]
    title = "CPU against GPU: best samples per second"
    absent = sorted({m.what.split()[-1] for m in missing if m.what.split()[-1] in _GPUS})
    if "GPU" not in devices and absent:
        title += f"; no {' or '.join(absent)} here"
    groups = [(f"batch {b}", [best.get((d, b), math.nan) for d in devices]) for b in batches]
    return plots.bars(title, groups, devices)
