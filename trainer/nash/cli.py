"""`snakekit train nash`."""

import argparse
import signal
from collections.abc import Callable
from pathlib import Path

import msgspec
from rich.console import Console

from snakekit.runtime.options import OptionError, add_options, load
from snakekit.trainer.nash.config import NashConfig


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="TOML file of the options below"
    )
    parser.add_argument(
        "--resume", type=Path, metavar="DIR", help="continue a run (its folder or a checkpoint's)"
    )
    parser.add_argument(
        "--start", type=Path, metavar="DIR", help="begin with the weights of this run or checkpoint"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("runs"), metavar="DIR", help="parent of the run's folder"
    )
    add_options(parser, NashConfig)


def run(
    args: argparse.Namespace,
    *,
    env_prefix: str,
    stop_flag: Callable[[Console], Callable[[], bool]],
) -> bool:
    """Train; return whether the run finished.

    Raises:
        OptionError, CheckpointError, ValueError, OSError: bad input, one sentence.
    """
    from snakekit.trainer import checkpoint as store
    from snakekit.trainer.alarms import Alarms, Limit, NotFinite
    from snakekit.trainer.nash import training
    from snakekit.trainer.report import write_report
    from snakekit.trainer.run import RunFolder
    from snakekit.trainer.watch import Watch

    console = Console(stderr=True)
    resumed = None
    if args.resume is not None:
        _refuse_options(args)
        nash, home, resumed = _resumed(args.resume)
        folder = RunFolder(home, resumed_at=resumed)
    else:
        config = load(NashConfig, args, toml=args.config, env_prefix=env_prefix)
        start = None if args.start is None else store.load(store.latest(args.start))
        nash = training.Nash(config, start)
        folder = RunFolder.create(args.out, config.name, config)
    alarms = Alarms(
        (
            NotFinite(),
            Limit("turns_per_game", "games last {} turns: mutual suicide", below=6),
            Limit("draw_share", "{} of the games are drawn", above=0.9, patience=20),
        ),
        folder.metrics(),
    )
    stop = stop_flag(console)
    with folder, Watch(console, nash.config.steps, folder, training.SHOWN, alarms=alarms) as watch:
        nash.league.save(folder.path)

        def save(checkpoint: store.Checkpoint) -> None:
            nash.league.save(folder.path)
            watch.saved(folder.save(checkpoint, keep=nash.config.keep))

        done = training.train(nash, log=watch.log, said=watch.say, save=save, stop=stop)
    write_report(
        folder.path, f"Nash {nash.config.name}", CHARTS(), x="seconds", x_unit="seconds"
    )
    if not done:
        console.print(f"stopped; continue with: snakekit train nash --resume {folder.shown()}")
    return done


def _refuse_options(args: argparse.Namespace) -> None:
    names = [f.name for f in msgspec.structs.fields(NashConfig)]
    given = [n for n in (*names, "config", "start") if getattr(args, n) is not None]
    if given:
        what = "--" + given[0].replace("_", "-")
        raise OptionError(f"{what}: a resumed run keeps its options, leave it out")
