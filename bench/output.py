"""What all measures do with their figures: a table, files, a page, a comparison."""

import statistics
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta
from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table

from snakekit.bench import compare as comparing
from snakekit.bench.compare import Comparison, Report, ReportError, read_report
from snakekit.bench.report import Grid, Section, environment, reference_ms, write_file, write_report
from snakekit.runtime.options import OptionError

T = TypeVar("T")
_WIDEST = 1000
_STYLES = {"better": "green", "worse": "bold red"}


class OutputConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Options that every measure has."""

    json: Annotated[str, Meta(description="file for the figures as JSON")] = ""
    html: Annotated[str, Meta(description="file for a page with plots, self-contained")] = ""
    compare: Annotated[
        str, Meta(description="older JSON file: show ratios and changes beyond the noise")
    ] = ""
    fail_on_regression: Annotated[
        bool, Meta(description="exit with 1 if a figure is worse beyond the noise")
    ] = False


class Output:
    """Shows and writes sections; made before measuring, so that bad options cost no time."""

    def __init__(self, config: OutputConfig) -> None:
        """Read what to compare with.

        Raises:
            ReportError: the older report cannot be used.
            OptionError: options that need another one, or a file where none can be.
        """
        self._config = config
        self._old: Report | None = None
        if config.fail_on_regression and not config.compare:
            raise OptionError("fail_on_regression: needs an older report, give --compare FILE")
        for name, path in (("json", config.json), ("html", config.html)):
            if path and Path(path).is_dir():
                raise OptionError(f"{name} (from --{name}): expected a file, {path} is a folder")
        if config.compare:
            self._old = read_report(Path(config.compare))
        self._speeds: list[float] = []
        self.sample()

    def sample(self) -> None:
        """Time fixed work, so that reports tell a slower program from a busier machine."""
        self._speeds.append(reference_ms())

    def finish(self, sections: list[Section]) -> int:
        """Print, write, compare; return the exit code.

        Raises:
            OSError: a file cannot be written.
        """
        config = self._config
        for section in sections:
            show(section)
        results = [r for section in sections for r in section.results]
        self.sample()
        facts = environment() | {"reference_ms": round(statistics.median(self._speeds), 4)}
        comparison = None
        if self._old is not None:
            comparison = comparing.compare(self._old, results, facts, origin=config.compare)
            _show_comparison(comparison)
        if config.json:
            records: dict[str, Any] = {}
            missing = [m for section in sections for m in section.missing]
            if missing:
                records["not_measured"] = missing
            if comparison is not None:
                records["comparison"] = comparison
            write_report(Path(config.json), results, environment=facts, **records)
        if config.html:
            from snakekit.bench.page import page

            write_file(Path(config.html), page(sections, facts, comparison).encode())
        failed = any(section.failed for section in sections)
        if config.fail_on_regression and comparison is not None and comparison.worse:
            failed = True
        return 1 if failed else 0


def progress(items: Iterable[T], description: str) -> Iterable[T]:
    """Pass `items` on, showing how far it is where somebody looks at a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        return items
    return track(items, description=description, transient=True, console=console)


def refuse(measure: str, error: Exception) -> int:
    """Print one sentence about bad input and return its exit code."""
    text = str(error)
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    print(f"snakekit bench {measure}: {' '.join(text.split())}", file=sys.stderr)
    return 2


def show(section: Section) -> None:
    """Print one section."""
    console = Console()
    _print_table(console, _table(section.title, section.table()))
    for m in section.missing:
        console.print(f"not measured: {m.what}: {m.why}", style="dim", markup=False, soft_wrap=True)


def _print_table(console: Console, table: Table) -> None:
    # Broken numbers cannot be read; lines that are too long can.
    wide = Console(width=_WIDEST).measure(table).maximum
    console.width = max(console.width, wide)
    console.print(table, soft_wrap=True)


def _show_comparison(comparison: Comparison) -> None:
    console = Console()
    if comparison.changes:
        _print_table(console, _table("Comparison", comparing.grid(comparison)))
    for text in comparison.differences:
        console.print(f"differs: {text}", markup=False, soft_wrap=True)
    console.print(comparing.summary(comparison), markup=False, soft_wrap=True)


def _table(title: str, grid: Grid) -> Table:
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for index, column in enumerate(grid.columns):
        words = index < grid.words or column in ("unit", "verdict")
        table.add_column(column, justify="left" if words else "right", no_wrap=True)
    for row in grid.rows:
        table.add_row(*row, style=_STYLES.get(row[-1]))
    return table


__all__ = ["Output", "OutputConfig", "ReportError", "progress", "refuse", "show"]
