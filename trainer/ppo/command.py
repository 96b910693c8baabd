"""`snakekit train ppo`: options, run folder, display and resuming."""

import argparse
from pathlib import Path

import msgspec
from rich.console import Console

from snakekit.runtime.options import OptionError, add_options, load
from snakekit.trainer import checkpoint as store
from snakekit.trainer.alarms import Alarms
from snakekit.trainer.checkpoint import CheckpointError
from snakekit.trainer.league import FOLDER, League, prune_unnamed
from snakekit.trainer.ppo.config import MAY_CHANGE, PpoConfig, changed
from snakekit.trainer.ppo.figures import SHOWN, charts, rules
from snakekit.trainer.ppo.training import METHOD, Ppo, train
from snakekit.trainer.report import write_report
from snakekit.trainer.run import METRICS, RunFolder, read_lines, write_config
from snakekit.trainer.stopping import StopFlag
from snakekit.trainer.watch import Watch

ENV_PREFIX = "SNAKEKIT_TRAIN_"
FINISHED, STOPPED = 0, 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML file of the options")
    parser.add_argument("--run", type=Path, metavar="DIR", help="the run's folder (runs/UTC-NAME)")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue the run in --run from its last checkpoint; its options stay, and only "
        + ", ".join(MAY_CHANGE)
        + " may be given anew",
    )
    parser.add_argument(
        "--start", type=Path, metavar="DIR", help="begin with the weights of this run or checkpoint"
    )
    add_options(parser, PpoConfig)


def _given(args: argparse.Namespace) -> bool:
    names = [field.name for field in msgspec.structs.fields(PpoConfig)]
    return args.config is not None or any(getattr(args, n) is not None for n in names)


def resumed_config(args: argparse.Namespace, old: PpoConfig) -> PpoConfig:
    """Return the options of a resumed run: the old ones with what may change replaced.

    Raises:
        OptionError: something else was given that differs; names it and what may change.
    """
    if not _given(args):
        return old
    asked = load(PpoConfig, args, toml=args.config, env_prefix=ENV_PREFIX)
    if args.config is None:
        names = [f.name for f in msgspec.structs.fields(PpoConfig)]
        named = {n: getattr(asked, n) for n in names if getattr(args, n) is not None}
        asked = msgspec.structs.replace(old, **named)
    wrong = changed(old, asked)
    if wrong:
        before, now = getattr(old, wrong[0]), getattr(asked, wrong[0])
        raise OptionError(
            f"{wrong[0]}: the run has {before!r}, not {now!r}; a resumed run may only change "
            + ", ".join(MAY_CHANGE)
        )
    return asked


def open_new(args: argparse.Namespace) -> tuple[Ppo, RunFolder]:
    """Begin a run and make its folder."""
    config = load(PpoConfig, args, toml=args.config, env_prefix=ENV_PREFIX)
    start = None if args.start is None else store.load(store.latest(args.start))
    run = Ppo(config, start=start)
    if args.run is None:
        return run, RunFolder.create(Path("runs"), config.name, config)
    return run, RunFolder.make(args.run, config)


def open_resumed(args: argparse.Namespace) -> tuple[Ppo, RunFolder]:
    """Continue the run in `args.run` from its last checkpoint.

    Raises:
        CheckpointError: there is none, it is of another method, or it is damaged.
        OptionError: options that must not change.
    """
    if args.run is None:
        raise OptionError("--resume: needs --run DIR, the folder of the run to continue")
    if args.start is not None:
        raise OptionError("--start: a resumed run has its own weights, leave it out")
    place = store.latest(args.run)
    saved = store.load(place)
    if saved.card.method != METHOD:
        raise CheckpointError(f"{place}: trained by {saved.card.method!r}, not by {METHOD!r}")
    try:
        old = msgspec.convert(saved.config, PpoConfig)
    except (msgspec.ValidationError, ValueError) as error:
        raise CheckpointError(
            f"{place}: its configuration is not of this version: {error}"
        ) from None
    config = resumed_config(args, old)
    run = Ppo(config)
    league = League.load(config.league, args.run, saved.counters.get(FOLDER, []))
    run.restore(saved, league, origin=str(place))
    write_config(args.run, config)
    return run, RunFolder(args.run, resumed_at=run.iteration)


def run(args: argparse.Namespace) -> int:
    """Train; exit codes as of `snakekit train`."""
    console = Console(stderr=True)
    training, folder = open_resumed(args) if args.resume else open_new(args)
    config = training.config
    stop = StopFlag(console)
    alarms = Alarms(rules(), read_lines(folder.path / METRICS))
    again = f"snakekit train ppo --run {folder.shown()} --resume"
    done = False
    try:
        with (
            folder,
            Watch(
                console, config.iterations, folder, SHOWN, unit="iterations", alarms=alarms
            ) as watch,
        ):

            def save(training: Ppo) -> None:
                training.league.save(folder.path)
                watch.saved(folder.save(training.checkpoint(), keep=config.keep))
                prune_unnamed(folder.path)

            done = train(
                training,
                log=watch.log,
                say=lambda step, words, kind: watch.say(step, words, kind=kind),
                save=save,
                stop=stop,
            )
    except FloatingPointError as error:
        raise ValueError(f"{error}; try a lower lr. The run is saved: {again}") from None
    finally:
        stop.restore()
        training.close()
    page = write_report(
        folder.path,
        f"PPO: {config.name}",
        charts(config),
        x="decisions_total",
        x_unit="decisions",
    )
    console.print(f"report: {page}", highlight=False, soft_wrap=True)
    if not done:
        console.print(f"stopped; continue with: {again}", highlight=False, soft_wrap=True)
    return FINISHED if done else STOPPED
