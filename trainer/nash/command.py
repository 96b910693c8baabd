"""`snakekit train nash`: options, run folder, display and resuming."""

import argparse
from pathlib import Path

import msgspec
from rich.console import Console

from snakekit.runtime.options import OptionError, add_options, load
from snakekit.trainer import checkpoint as store
from snakekit.trainer.alarms import Alarms, Limit, NotFinite, Rule
from snakekit.trainer.league import FOLDER, League, LeagueRules, prune_unnamed
from snakekit.trainer.nash.config import NashConfig
from snakekit.trainer.nash.training import SHOWN, Nash, train
from snakekit.trainer.report import Chart, write_report
from snakekit.trainer.run import METRICS, RunFolder, read_lines
from snakekit.trainer.stopping import StopFlag
from snakekit.trainer.watch import Watch

ENV_PREFIX = "SNAKEKIT_TRAIN_"
FINISHED, STOPPED = 0, 1
CHARTS = (
    Chart("Outcome above the targets' own entropy", "nats", (("outcome_kl", "outcome"),)),
    Chart("Policy above the targets' own entropy", "nats", (("policy_kl", "policy"),)),
    Chart("Value loss", "squared error", (("value_loss", "value"),)),
    Chart("Entropy of the equilibria", "nats", (("target_entropy", "entropy"),)),
    Chart("NashConv of the solved games", "utility", (("nash_gap", "gap"),)),
    Chart("Gate: wins per fair share", "level", (("level", "level"),), zero=False),
    Chart("Length of games", "turns", (("turns_per_game", "turns"),)),
    Chart("Games drawn", "share", (("draw_share", "drawn"),)),
    Chart("Speed", "positions/s", (("positions_per_s", "positions/s"),)),
    Chart("Learning rate", "rate", (("lr", "rate"),)),
)


def rules() -> list[Rule]:
    """Return what a run is watched for."""
    return [
        NotFinite(),
        Limit("turns_per_game", "games last {} turns: collapse into mutual deaths?", below=6),
        Limit("draw_share", "{} of the games are drawn", above=0.9, patience=30),
        Limit("nash_gap", "the solved games keep a NashConv of {}", above=0.3),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML file of the options")
    parser.add_argument("--run", type=Path, metavar="DIR", help="the run's folder (runs/UTC-NAME)")
    parser.add_argument(
        "--resume",
        action="store_true",
        help="continue the run in --run from its last checkpoint, with its options",
    )
    parser.add_argument(
        "--start", type=Path, metavar="DIR", help="begin with the weights of this run or checkpoint"
    )
    add_options(parser, NashConfig)


def open_new(args: argparse.Namespace) -> tuple[Nash, RunFolder]:
    """Begin a run and make its folder."""
    config = load(NashConfig, args, toml=args.config, env_prefix=ENV_PREFIX)
    start = None if args.start is None else store.load(store.latest(args.start))
    run = Nash(config, start)
    if args.run is None:
        return run, RunFolder.create(Path("runs"), config.name, config)
    return run, RunFolder.make(args.run, config)


def open_resumed(args: argparse.Namespace) -> tuple[Nash, RunFolder]:
    """Continue the run in `args.run` from its last checkpoint.

    Raises:
        CheckpointError: there is none, it is of another method, or it is damaged.
        OptionError: options beside `--run` and `--resume`.
    """
    if args.run is None:
        raise OptionError("--resume: needs --run DIR, the folder of the run to continue")
    names = [field.name for field in msgspec.structs.fields(NashConfig)]
    for name in (*names, "config", "start"):
        if getattr(args, name) is not None:
            what = "--" + name.replace("_", "-")
            raise OptionError(f"{what}: a resumed run keeps its options, leave it out")
    place = store.latest(args.run)
    saved = store.load(place)
    run = Nash.resume(saved, origin=str(place))
    run.league = League.load(LeagueRules(), args.run, saved.counters.get(FOLDER, []))
    return run, RunFolder(args.run, resumed_at=run.step)


def run(args: argparse.Namespace) -> int:
    """Train; exit codes as of `snakekit train`."""
    console = Console(stderr=True)
    nash, folder = open_resumed(args) if args.resume else open_new(args)
    config = nash.config
    stop = StopFlag(console)
    alarms = Alarms(rules(), read_lines(folder.path / METRICS))
    again = f"snakekit train nash --run {folder.shown()} --resume"
    try:
        with folder, Watch(console, config.steps, folder, SHOWN, alarms=alarms) as watch:

            def save(nash: Nash) -> None:
                nash.league.save(folder.path)
                watch.saved(folder.save(nash.checkpoint(), keep=config.keep))
                prune_unnamed(folder.path)

            done = train(nash, log=watch.log, say=watch.say, save=save, stop=stop)
    except FloatingPointError as error:
        raise ValueError(f"{error}; try a lower lr. The run is saved: {again}") from None
    finally:
        stop.restore()
    page = write_report(
        folder.path, f"Nash: {config.name}", CHARTS, x="positions_total", x_unit="positions"
    )
    console.print(f"report: {page}", highlight=False, soft_wrap=True)
    if not done:
        console.print(f"stopped; continue with: {again}", highlight=False, soft_wrap=True)
    return FINISHED if done else STOPPED
