"""`snakekit bench counts`: counted work against a baseline that lies in the repository.

Instructions depend on the compiler, so they are compared only where it is the baseline's.
"""

import argparse
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from snakekit.bench import compare as comparing
from snakekit.bench.compare import Report, ReportError, read_report
from snakekit.bench.counts import UNITS, Counter, CountError, compiler
from snakekit.bench.output import progress, refuse, show
from snakekit.bench.report import Grid, Result, Section, write_file
from snakekit.runtime.options import OptionError, add_options, load
from snakekit.trainer.plots import figure

_COMPILED = ".instructions"


class CountsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Options of `snakekit bench counts`."""

    check: Annotated[str, Meta(description="baseline; exit with 1 on more than it allows")] = ""
    write: Annotated[str, Meta(description="file to write as the new baseline")] = ""
    allowed: Annotated[
        float, Meta(ge=0, le=10, description="share by which a count may exceed the baseline")
    ] = 0.05


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One count against the baseline; `new` is None for one that is not counted any more."""

    name: str
    old: float | None
    new: float | None
    kind: Literal["same", "better", "regression", "new", "gone", "not compared"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_options(parser, CountsConfig)


def run(args: argparse.Namespace) -> int:
    """Count, print, compare; 1 on a regression, 2 where counting is not possible."""
    try:
        config = load(CountsConfig, args, env_prefix="SNAKEKIT_BENCH_")
        baseline = read_baseline(Path(config.check)) if config.check else None
        results = count()
        show(Section("counts", "Counts", results))
        if config.write:
            content = {"environment": {"compiler": compiler()}, "results": results}
            text = msgspec.json.format(msgspec.json.encode(content), indent=2)
            write_file(Path(config.write), text + b"\n")
    except (OptionError, ReportError, CountError, OSError) as error:
        return refuse("counts", error)
    return 0 if baseline is None else _check(baseline, results, config)


def read_baseline(path: Path) -> Report:
    """Read a baseline.

    Raises:
        ReportError: missing, or another kind of file.
    """
    found = read_report(path)
    if not found.results or not isinstance(found.environment.get("compiler"), str):
        raise ReportError(f"{path}: not a baseline of counts; make one with --write")
    return found


def count() -> list[Result]:
    """Count everything.

    Raises:
        CountError: not possible here.
    """
    results: list[Result] = []

    def add(name: str, value: float, unit: str, samples: int, what: str) -> None:
        params = {"what": what, "spread": 0.0}
        results.append(
            Result(
                name=f"counts.{name}",
                value=value,
                unit=unit,
                better="lower",
                samples=samples,
                params=params,
            )
        )

    with Counter() as counter:
        for what, words in progress(UNITS.items(), "counting"):
            value, units = counter.instructions(what)
            add(f"{what}{_COMPILED}", round(value, 2), "instructions", units, words)
            done = counter.work(what)
            share = round(done.allocations / done.calls, 4)
            add(f"{what}.allocations", share, "allocations", done.calls, "per call")
            if what.startswith("search"):
                words = words.split(", ")[1]
                add(f"{what}.nodes", done.units, "nodes", done.calls, words)
    return results


def judge(
    baseline: Report, results: list[Result], *, allowed: float, same_compiler: bool
) -> list[Verdict]:
    """Return a verdict on every count of either; instructions only with the same compiler."""
    old = {r.name: r.value for r in baseline.results}
    new = {r.name: r.value for r in results}
    return [
        Verdict(
            name=name,
            old=old.get(name),
            new=new.get(name),
            kind=_kind(name, old.get(name), new.get(name), allowed, same_compiler),
        )
        for name in dict.fromkeys([*old, *new])
    ]


def _kind(
    name: str, old: float | None, new: float | None, allowed: float, same_compiler: bool
) -> Literal["same", "better", "regression", "new", "gone", "not compared"]:
    if old is None:
        return "new"
    if new is None:
        return "gone"
    if name.endswith(_COMPILED) and not same_compiler:
        return "not compared"
    if not new <= old * (1 + allowed):  # NaN is no pass
        return "regression"
    return "better" if new < old * (1 - allowed) else "same"


def _check(baseline: Report, results: list[Result], config: CountsConfig) -> int:
    here, there = compiler(), baseline.environment["compiler"]
    verdicts = judge(baseline, results, allowed=config.allowed, same_compiler=here == there)
    rows = [[v.name, _shown(v.old), _shown(v.new), _ratio(v.old, v.new), v.kind] for v in verdicts]
    grid = Grid(["count", "baseline", "now", "now/baseline", "verdict"], rows)
    show(Section("check", f"Against {config.check}", [], grid=grid))
    if here != there:
        print(f"instructions not compared: baseline made with {there}, here is {here}")
    bad = [v for v in verdicts if v.kind in ("regression", "gone")]
    for v in bad:
        if v.kind == "gone":
            print(f"{v.name}: in the baseline but not counted any more; renew it with --write")
        else:
            print(
                f"{v.name}: {_shown(v.new)} is more than {_shown(v.old)} "
                f"+ {config.allowed:.0%} allowed"
            )
    if not bad:
        print("no count exceeds the baseline")
    return 1 if bad else 0


def _shown(value: float | None) -> str:
    return "" if value is None else figure(value)


def _ratio(old: float | None, new: float | None) -> str:
    return "" if old is None or new is None else f"{comparing.ratio(old, new):.3f}"
