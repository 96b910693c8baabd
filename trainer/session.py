"""A training command from its options to its report: what all methods do alike."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec
from rich.console import Console

from snakekit.runtime.options import OptionError, load
from snakekit.trainer.alarms import Alarms, Rule
from snakekit.trainer.checkpoint import Checkpoint
from snakekit.trainer.gate import OnGames
from snakekit.trainer.league import prune_unnamed
from snakekit.trainer.report import Chart, write_report
from snakekit.trainer.run import RunFolder
from snakekit.trainer.stopping import StopFlag
from snakekit.trainer.watch import Shown, Watch

ENV_PREFIX = "SNAKEKIT_TRAIN_"
FINISHED, STOPPED = 0, 1

Options = TypeVar("Options", bound=msgspec.Struct)


class Trainable(Protocol):
    """What every method's run can do."""

    def checkpoint(self) -> Checkpoint:
        """Return everything needed to go on."""
        ...

    def save_beside(self, folder: Path) -> None:
        """Write what checkpoints name without containing it."""
        ...


Run = TypeVar("Run", bound=Trainable)


@dataclass(frozen=True)
class Face:
    """What a method shows."""

    title: str
    """Of the report."""
    total: int
    """Steps to make."""
    unit: str
    """What a step is, in the plural."""
    shown: Sequence[Shown]
    """Figures on the terminal."""
    charts: Sequence[Chart]
    """Plots of the report."""
    rules: Sequence[Rule]
    """Alarms."""
    x: str
    """Figure along the report's horizontal axis."""
    x_unit: str
    again: str
    """The command that goes on."""
    keep: int
    """Checkpoints kept."""


def add_run_arguments(parser: argparse.ArgumentParser, may_change: Sequence[str]) -> None:
    """Declare `--config`, `--run`, `--resume` and `--start`."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML file of the options")
    parser.add_argument(
        "--run", dest="folder", type=Path, metavar="DIR", help="the run's folder (runs/UTC-NAME)"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue the run in --run from its last checkpoint; its options stay, and only "
        + ", ".join(may_change)
        + " may be given anew",
    )
    parser.add_argument(
        "--start", type=Path, metavar="DIR", help="begin with the weights of this run or checkpoint"
    )


def changed(old: msgspec.Struct, new: msgspec.Struct, may_change: Sequence[str]) -> list[str]:
    """Return the names of fields that differ and must not when a run is resumed."""
    names = (field.name for field in msgspec.structs.fields(old))
    return [n for n in names if n not in may_change and getattr(old, n) != getattr(new, n)]


def resumed_config(args: argparse.Namespace, old: Options, may_change: Sequence[str]) -> Options:
    """Return the options of a resumed run: the old ones with what may change replaced.

    Raises:
        OptionError: something else was given that differs; names it and what may change.
    """
    names = [field.name for field in msgspec.structs.fields(old)]
    given = [n for n in names if getattr(args, n, None) is not None]
    if args.config is None and not given:
        return old
    asked = load(type(old), args, toml=args.config, env_prefix=ENV_PREFIX)
    if args.config is None:
        asked = msgspec.structs.replace(old, **{n: getattr(asked, n) for n in given})
    wrong = changed(old, asked, may_change)
    if wrong:
        before, now = getattr(old, wrong[0]), getattr(asked, wrong[0])
        raise OptionError(
            f"{wrong[0]}: the run has {before!r}, not {now!r}; a resumed run may only change "
            + ", ".join(may_change)
        )
    return asked


def resumed_folder(args: argparse.Namespace) -> Path:
    """Return the folder of the run that `--resume` means.

    Raises:
        OptionError: no `--run`, or a `--start`.
    """
    if args.folder is None:
        raise OptionError("--resume: needs --run DIR, the folder of the run to continue")
    if args.start is not None:
        raise OptionError("--start: a resumed run has its own weights, leave it out")
    return Path(args.folder)


def lead(
    run: Run,
    folder: RunFolder,
    face: Face,
    train: Callable[..., bool],
    *,
    gates: Callable[[OnGames], None] = lambda progress: None,
) -> int:
    """Train, show and write; return the exit code.

    Args:
        run: the state.
        folder: where to.
        face: what to show.
        train: called with the run and `log`, `say`, `save` and `stop`; returns whether it is done.
        gates: told who is to hear of a gate's games.

    Raises:
        ValueError: the arithmetic broke; what was saved is whole.
    """
    console = Console(stderr=True)
    stop = StopFlag(console)
    alarms = Alarms(face.rules, folder.metrics())
    watch = Watch(console, face.total, folder, face.shown, unit=face.unit, alarms=alarms)
    gates(watch.part("gate games"))

    def save(run: Run) -> None:
        run.save_beside(folder.path)
        watch.saved(folder.save(run.checkpoint(), keep=face.keep))
        prune_unnamed(folder.path)

    def say(step: int, words: str, kind: str) -> None:
        watch.say(step, words, kind=kind)

    try:
        with folder, watch:
            done = train(run, log=watch.log, say=say, save=save, stop=stop)
    except FloatingPointError as error:
        raise ValueError(f"{error}; try a lower lr. The run is saved: {face.again}") from None
    finally:
        stop.restore()
    page = write_report(folder.path, face.title, face.charts, x=face.x, x_unit=face.x_unit)
    console.print(f"report: {page}", highlight=False, soft_wrap=True)
    if not done:
        console.print(f"stopped; continue with: {face.again}", highlight=False, soft_wrap=True)
    return FINISHED if done else STOPPED
