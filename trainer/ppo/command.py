"""`snakekit train ppo`: options, run folder, display and resuming."""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
from rich.console import Console

from snakekit.runtime.options import OptionError, add_options, load
from snakekit.trainer import checkpoint as store
from snakekit.trainer.alarms import Alarms
from snakekit.trainer.checkpoint import CheckpointError
from snakekit.trainer.league import FOLDER, League, prune_unnamed
from snakekit.trainer.ppo.config import MAY_CHANGE, PpoConfig, changed
from snakekit.trainer.ppo.figures import SHOWN, charts, measured, rules
from snakekit.trainer.ppo.learner import Alone, Group
from snakekit.trainer.ppo.loop import train
from snakekit.trainer.ppo.training import METHOD, Ppo
from snakekit.trainer.ppo.workers import LocalWorkers, Workers
from snakekit.trainer.report import write_report
from snakekit.trainer.run import RunFolder, new_path, write_config
from snakekit.trainer.stopping import StopFlag
from snakekit.trainer.watch import Watch

ENV_PREFIX = "SNAKEKIT_TRAIN_"
FINISHED, STOPPED = 0, 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML file of the options")
    parser.add_argument(
        "--run", dest="folder", type=Path, metavar="DIR", help="the run's folder (runs/UTC-NAME)"
    )
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


@dataclass(frozen=True)
class Plan:
    """What to train and where; the same for every learner."""

    config: PpoConfig
    folder: Path
    begun: Path | None
    """Checkpoint to go on from."""
    start: Path | None
    """Run or checkpoint whose weights a new run begins with."""


def make_plan(args: argparse.Namespace) -> Plan:
    """Return what the command line asks for.

    Raises:
        OptionError: an option is odd, or must not change in a resumed run.
        CheckpointError: there is none to resume, or it is of another method.
    """
    if not args.resume:
        config = load(PpoConfig, args, toml=args.config, env_prefix=ENV_PREFIX)
        folder = args.folder or new_path(Path("runs"), config.name)
        return Plan(config, folder, None, args.start)
    if args.folder is None:
        raise OptionError("--resume: needs --run DIR, the folder of the run to continue")
    if args.start is not None:
        raise OptionError("--start: a resumed run has its own weights, leave it out")
    place = store.latest(args.folder)
    saved = store.load(place)
    if saved.card.method != METHOD:
        raise CheckpointError(f"{place}: trained by {saved.card.method!r}, not by {METHOD!r}")
    try:
        old = msgspec.convert(saved.config, PpoConfig)
    except (msgspec.ValidationError, ValueError) as error:
        raise CheckpointError(f"{place}: configuration of another version: {error}") from None
    return Plan(resumed_config(args, old), args.folder, place, None)


def begin(plan: Plan, group: Group) -> Ppo:
    """Return the run that the plan begins or goes on with."""
    config = plan.config
    workers: Workers
    if config.ray_workers:
        from snakekit.trainer.ppo.remote import RayWorkers

        workers = RayWorkers(config, group.rank)
    else:
        workers = LocalWorkers(config, group.rank)
    start = None if plan.start is None else store.load(store.latest(plan.start))
    run = Ppo(config, workers, group, start=start)
    if plan.begun is not None:
        saved = store.load(plan.begun)
        league = League.load(config.league, plan.folder, saved.counters.get(FOLDER, []))
        run.restore(saved, league, origin=str(plan.begun))
    return run


def open_folder(plan: Plan, run: Ppo) -> RunFolder:
    """Make the run's folder, or open it where a resumed run goes on."""
    if plan.begun is None:
        return RunFolder.make(plan.folder, plan.config)
    write_config(plan.folder, plan.config)
    return RunFolder(plan.folder, resumed_at=run.iteration)


def session(plan: Plan, group: Group) -> int:
    """Train as one learner of `group`, whose first shows and writes; return the exit code."""
    training = begin(plan, group)
    if group.rank > 0:
        try:
            follow(training)
        finally:
            training.close()
        return FINISHED
    try:
        return lead(plan, training)
    finally:
        training.close()


def follow(training: Ppo) -> None:
    """Train along with the group's first."""
    train(
        training,
        log=lambda step, figures: None,
        say=lambda step, words, kind: None,
        save=lambda run: run.checkpoint(),
        stop=lambda: False,
    )


def lead(plan: Plan, training: Ppo) -> int:
    """Train, show and write."""
    console, config = Console(stderr=True), plan.config
    folder = open_folder(plan, training)
    stop = StopFlag(console)
    alarms = Alarms(rules(), folder.metrics())
    again = f"snakekit train ppo --run {folder.shown()} --resume"
    shown = (*SHOWN, *((key, f"won, {label}", ".1%") for key, _, _, label in measured(config)))
    watch = Watch(console, config.iterations, folder, shown, unit="iterations", alarms=alarms)

    def save(run: Ppo) -> None:
        run.league.save(folder.path)
        watch.saved(folder.save(run.checkpoint(), keep=config.keep))
        prune_unnamed(folder.path)

    def say(step: int, words: str, kind: str) -> None:
        watch.say(step, words, kind=kind)

    try:
        with folder, watch:
            done = train(training, log=watch.log, say=say, save=save, stop=stop)
    except FloatingPointError as error:
        raise ValueError(f"{error}; try a lower lr. The run is saved: {again}") from None
    finally:
        stop.restore()
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


def run(args: argparse.Namespace) -> int:
    """Train; exit codes as of `snakekit train`."""
    plan = make_plan(args)
    if plan.config.learners == 1:
        return session(plan, Alone())
    from snakekit.trainer.ppo.remote import train_together

    plan = replace(plan, folder=plan.folder.absolute())
    train_together(session, plan, plan.config, str(plan.folder.parent))
    return FINISHED
