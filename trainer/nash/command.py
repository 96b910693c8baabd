"""`snakekit train nash`: options, run folder, display and resuming."""

import argparse
from pathlib import Path

from snakekit.runtime.options import add_options, load
from snakekit.trainer import checkpoint as store
from snakekit.trainer.checkpoint import Checkpoint
from snakekit.trainer.gate import OnGames
from snakekit.trainer.league import FOLDER, League
from snakekit.trainer.nash.config import MAY_CHANGE, NashConfig
from snakekit.trainer.nash.figures import CHARTS, SHOWN, rules
from snakekit.trainer.nash.training import RULES, Nash
from snakekit.trainer.nash.workers import LocalWorkers, Workers
from snakekit.trainer.rounds import train
from snakekit.trainer.run import RunFolder, new_path, write_config
from snakekit.trainer.session import (
    ENV_PREFIX,
    Face,
    add_run_arguments,
    lead,
    resumed_config,
    resumed_folder,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_run_arguments(parser, MAY_CHANGE)
    add_options(parser, NashConfig)


def begin(config: NashConfig, start: Checkpoint | None = None) -> Nash:
    """Return a new run, with its workers."""
    workers: Workers
    if config.ray_workers:
        from snakekit.trainer.nash.remote import RayWorkers

        workers = RayWorkers(config)
    else:
        workers = LocalWorkers(config)
    return Nash(config, start, workers=workers)


def open_new(args: argparse.Namespace) -> tuple[Nash, RunFolder]:
    """Begin a run and make its folder."""
    config = load(NashConfig, args, toml=args.config, env_prefix=ENV_PREFIX)
    start = None if args.start is None else store.load(store.latest(args.start))
    run = begin(config, start)
    return run, RunFolder.make(args.folder or new_path(Path("runs"), config.name), config)


def open_resumed(args: argparse.Namespace) -> tuple[Nash, RunFolder]:
    """Continue the run in `args.folder` from its last checkpoint.

    Raises:
        CheckpointError: there is none, it is of another method, or it is damaged.
        OptionError: an option that must not change.
    """
    folder = resumed_folder(args)
    place = store.latest(folder)
    saved = store.load(place)
    config = resumed_config(args, Nash.read_config(saved, origin=str(place)), MAY_CHANGE)
    run = begin(config).restore(saved, origin=str(place))
    run.league = League.load(RULES, folder, saved.counters.get(FOLDER, []))
    write_config(folder, config)
    return run, RunFolder(folder, resumed_at=run.step)


def run(args: argparse.Namespace) -> int:
    """Train; exit codes as of `snakekit train`."""
    return session(*(open_resumed(args) if args.resume else open_new(args)))


def session(nash: Nash, folder: RunFolder) -> int:
    """Train, show and write; return the exit code."""
    config = nash.config
    face = Face(
        title=f"Nash: {config.name}",
        total=config.steps,
        unit="updates",
        shown=SHOWN,
        charts=CHARTS,
        rules=rules(),
        x="positions_total",
        x_unit="positions",
        again=f"snakekit train nash --run {folder.shown()} --resume",
        keep=config.keep,
    )

    def hear(progress: OnGames) -> None:
        nash.gate_progress = progress

    try:
        return lead(nash, folder, face, train, gates=hear)
    finally:
        nash.close()
