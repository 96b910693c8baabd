"""What a training run shows on the terminal while it works, and what it records."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from snakekit.trainer.alarms import Alarms
from snakekit.trainer.gate import OnGames
from snakekit.trainer.run import RunFolder

Shown = tuple[str, str, str]
"""Key of a figure, its short name and its format."""

_BARS = "▁▂▃▄▅▆▇█"
_KEPT = 48


def sparkline(values: Sequence[float]) -> str:
    """Return one block character a value, scaled between the smallest and the largest."""
    finite = [v for v in values if math.isfinite(v)]
    if not finite:
        return ""
    low, span = min(finite), max(finite) - min(finite)
    return "".join(
        "×" if not math.isfinite(v) else _BARS[round(7 * (v - low) / span)] if span else _BARS[3]
        for v in values
    )


class Watch:
    """Bar, figures and their recent course on a terminal; one line a round elsewhere.

    Every figure also goes to the run's files, and so do alarms.
    """

    def __init__(
        self,
        console: Console,
        total: int,
        folder: RunFolder,
        shown: Sequence[Shown],
        *,
        unit: str = "updates",
        alarms: Alarms | None = None,
    ) -> None:
        """Show progress towards `total` steps of `unit` on `console` and log into `folder`."""
        self._console, self._folder, self._shown = console, folder, tuple(shown)
        self._unit, self._alarms = unit, alarms or Alarms(())
        self._past: dict[str, deque[float]] = {key: deque(maxlen=_KEPT) for key, *_ in shown}
        for line in folder.metrics()[-_KEPT:]:
            self._remember(line)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        self._task = self._bars.add_task(unit, total=total)
        self._said: deque[Text] = deque(maxlen=4)
        self._live = Live(console=console, refresh_per_second=4, get_renderable=self._picture)

    def __enter__(self) -> Self:
        """Start the display."""
        self._console.print(f"writing to {self._folder.shown()}", soft_wrap=True)
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the display."""
        if self._console.is_terminal:
            self._live.stop()

    def log(self, step: int, figures: Mapping[str, float]) -> None:
        """Record and show the figures of a round that ended at `step`."""
        self._folder.log(step, figures)
        self._remember(figures)
        self._bars.update(self._task, completed=step)
        if not self._console.is_terminal:
            known = [
                (figures[key], name, form) for key, name, form in self._shown if key in figures
            ]
            text = "  ".join(f"{name} {value:{form}}" for value, name, form in known)
            self._console.print(f"{self._unit} {step}  {text}", highlight=False, soft_wrap=True)
        for words in self._alarms.check(figures):
            self.say(step, words, kind="alarm")

    def say(self, step: int, words: str, *, kind: str = "event", **facts: object) -> None:
        """Record and show something that happened."""
        self._folder.note(step, kind, words, **facts)
        style = "bold red" if kind == "alarm" else ""
        line = Text(f"{kind} at {self._unit} {step}: {words}", style)
        if self._console.is_terminal:
            self._said.append(line)
        else:
            self._console.print(line, highlight=False, soft_wrap=True)

    def part(self, words: str) -> OnGames:
        """Return who hears of a part of a round, such as the games of a gate; a bar of its own."""
        task = self._bars.add_task(words, total=None, visible=False)

        def progress(done: int, total: int) -> None:
            self._bars.update(task, completed=done, total=total, visible=done < total)

        return progress

    def saved(self, path: Path) -> None:
        """Say that a checkpoint has been written."""
        if not self._console.is_terminal:
            self._console.print(f"saved {path.name}", highlight=False)

    def _remember(self, figures: Mapping[str, float | None]) -> None:
        for key, past in self._past.items():
            if key in figures:
                value = figures[key]
                past.append(math.nan if value is None else value)

    def _picture(self) -> Group:
        grid = Table.grid(padding=(0, 2))
        cells = []
        for key, name, form in self._shown:
            if self._past[key]:
                value = f"{self._past[key][-1]:{form}}"
                cells.append((name, value, Text(sparkline(self._past[key]), "cyan")))
        for left, right in zip(cells[::2], [*cells[1::2], ("", "", Text())], strict=False):
            grid.add_row(*left, *right)
        return Group(self._bars, grid, *self._said)
