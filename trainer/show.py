"""What a training run shows on the terminal while it works."""

from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars

from snakekit.trainer.run import RunFolder

SHOWN = (
    ("policy_kl", "kl", ".3f"),
    ("value_loss", "value", ".3f"),
    ("agreement", "agree", ".1%"),
    ("blunders", "blunder", ".2%"),
    ("wait_seconds", "wait", ".1f"),
)


class Progress:
    """A bar on a terminal, one line a round elsewhere; every figure also goes to the run."""

    def __init__(self, console: Console, steps: int, folder: RunFolder) -> None:
        """Show progress towards `steps` updates on `console` and log into `folder`."""
        self._console = console
        self._folder = folder
        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[figures]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bars.add_task("updates", total=steps, figures="")

    def __enter__(self) -> Self:
        """Start the display."""
        self._console.print(f"writing to {self._folder.shown()}")
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop the display."""
        self._bars.stop()

    def log(self, step: int, figures: dict[str, float]) -> None:
        """Record and show the figures of a round that ended at `step`."""
        self._folder.log(step, figures)
        known = [(figures[key], name, form) for key, name, form in SHOWN if key in figures]
        text = "  ".join(f"{name} {value:{form}}" for value, name, form in known)
        self._bars.update(self._task, completed=step, figures=text)
        if not self._console.is_terminal:
            self._console.print(f"step {step}  {text}", highlight=False, soft_wrap=True)

    def saved(self, path: Path) -> None:
        """Say that a checkpoint has been written."""
        if not self._console.is_terminal:
            self._console.print(f"saved {path.name}", highlight=False)
