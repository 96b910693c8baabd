"""`snakekit train ppo`: options, run folder, display and resuming."""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from snakekit.runtime.options import add_options, load
from snakekit.trainer import checkpoint as store
from snakekit.trainer.checkpoint import CheckpointError
from snakekit.trainer.gate import OnGames
from snakekit.trainer.league import FOLDER, League
from snakekit.trainer.ppo.config import MAY_CHANGE, PpoConfig
from snakekit.trainer.ppo.figures import SHOWN, charts, measured, rules
from snakekit.trainer.ppo.learner import Alone, Group
from snakekit.trainer.ppo.loop import train
from snakekit.trainer.ppo.training import METHOD, Ppo
from snakekit.trainer.ppo.workers import LocalWorkers, Workers
from snakekit.trainer.run import RunFolder, new_path, write_config
from snakekit.trainer.session import (
    ENV_PREFIX,
    FINISHED,
    Face,
    add_run_arguments,
    lead,
    resumed_config,
    resumed_folder,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_run_arguments(parser, MAY_CHANGE)
    add_options(parser, PpoConfig)


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
    folder = resumed_folder(args)
    place = store.latest(folder)
    saved = store.load(place)
    if saved.card.method != METHOD:
        raise CheckpointError(f"{place}: trained by {saved.card.method!r}, not by {METHOD!r}")
    try:
        old = msgspec.convert(saved.config, PpoConfig)
    except (msgspec.ValidationError, ValueError) as error:
        raise CheckpointError(f"{place}: configuration of another version: {error}") from None
    return Plan(resumed_config(args, old, MAY_CHANGE), folder, place, None)


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
        return show(plan, training)
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


def show(plan: Plan, training: Ppo) -> int:
    """Train, show and write."""
    config = plan.config
    folder = open_folder(plan, training)
    measures = [(key, f"won, {label}", ".1%") for key, _, _, label in measured(config)]
    face = Face(
        title=f"PPO: {config.name}",
        total=config.iterations,
        unit="iterations",
        shown=(*SHOWN, *measures),
        charts=charts(config),
        rules=rules(),
        x="decisions_total",
        x_unit="decisions",
        again=f"snakekit train ppo --run {folder.shown()} --resume",
        keep=config.keep,
    )

    def hear(progress: OnGames) -> None:
        training.gate_progress = progress

    return lead(training, folder, face, train, gates=hear)


def run(args: argparse.Namespace) -> int:
    """Train; exit codes as of `snakekit train`."""
    plan = make_plan(args)
    if plan.config.learners == 1:
        return session(plan, Alone())
    from snakekit.trainer.ppo.remote import train_together

    plan = replace(plan, folder=plan.folder.absolute())
    train_together(session, plan, plan.config, str(plan.folder.parent))
    return FINISHED
