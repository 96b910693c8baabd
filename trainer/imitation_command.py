"""`snakekit train imitation`: options, run folder, display and resuming."""

import argparse
from pathlib import Path

import msgspec

from snakekit.runtime.options import OptionError, add_options, load
from snakekit.trainer import checkpoint as store
from snakekit.trainer.alarms import NotFinite
from snakekit.trainer.checkpoint import CHECKPOINTS
from snakekit.trainer.imitation import SHOWN, Imitation, ImitationConfig
from snakekit.trainer.report import Chart
from snakekit.trainer.rounds import train
from snakekit.trainer.run import RunFolder
from snakekit.trainer.session import ENV_PREFIX, Face, lead

CHARTS = (
    Chart("Policy above the targets' own entropy", "nats", (("policy_kl", "policy"),)),
    Chart("Value loss", "squared error", (("value_loss", "value"),)),
    Chart(
        "Likeliest move", "share", (("agreement", "the search's best"), ("blunders", "a blunder"))
    ),
    Chart("Waiting for games", "s a round", (("wait_seconds", "waiting"),)),
    Chart("Speed", "positions/s", (("positions_per_s", "positions/s"),)),
    Chart("Learning rate", "rate", (("lr", "rate"),)),
)


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
    add_options(parser, ImitationConfig)


def open_new(args: argparse.Namespace) -> tuple[Imitation, RunFolder]:
    """Begin a run and make its folder."""
    config = load(ImitationConfig, args, toml=args.config, env_prefix=ENV_PREFIX)
    start = None if args.start is None else store.load(store.latest(args.start))
    run = Imitation(config, start)
    return run, RunFolder.create(args.out, config.name, config)


def open_resumed(args: argparse.Namespace) -> tuple[Imitation, RunFolder]:
    """Continue a run; that of a checkpoint outside of any run gets a new folder.

    Raises:
        CheckpointError: there is none, it is of another method, or it is damaged.
        OptionError: options beside `--resume`.
    """
    names = [f.name for f in msgspec.structs.fields(ImitationConfig)]
    for name in (*names, "config", "start"):
        if getattr(args, name) is not None:
            what = "--" + name.replace("_", "-")
            raise OptionError(f"{what}: a resumed run keeps its options, leave it out")
    place = store.latest(args.resume)
    saved = store.load(place)
    run = Imitation(Imitation.read_config(saved, origin=str(place)))
    run.restore(saved, origin=str(place))
    if place.parent.name == CHECKPOINTS:
        return run, RunFolder(place.parent.parent, resumed_at=run.step)
    return run, RunFolder.create(args.out, run.config.name, run.config)


def run(args: argparse.Namespace) -> int:
    """Train; exit codes as of `snakekit train`."""
    imitation, folder = open_new(args) if args.resume is None else open_resumed(args)
    config = imitation.config
    face = Face(
        title=f"Imitation: {config.name}",
        total=config.steps,
        unit="updates",
        shown=SHOWN,
        charts=CHARTS,
        rules=[NotFinite()],
        x="positions_total",
        x_unit="positions",
        again=f"snakekit train imitation --resume {folder.shown()}",
        keep=config.keep,
    )
    return lead(imitation, folder, face, train)
