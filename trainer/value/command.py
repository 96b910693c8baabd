"""`snakekit train value`: options, run folder, display and resuming."""

import argparse
import hashlib
import json
from dataclasses import asdict
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from snakekit.runtime.options import OptionError, add_options, load
from snakekit.trainer.run import make_folder, new_path, source_commit, write_config
from snakekit.trainer.session import ENV_PREFIX, FINISHED, STOPPED, resumed_config
from snakekit.trainer.stopping import StopFlag
from snakekit.trainer.value.config import MAY_CHANGE, ValueConfig
from snakekit.trainer.value.fit import Fit, ValueNet, fit, to_bytes
from snakekit.trainer.value.samples import Samples, files, read_teacher, sample

VALUE, CARD = "search.value", "search.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--config", type=Path, metavar="FILE", help="TOML file of the options")
    parser.add_argument(
        "--run", dest="folder", type=Path, metavar="DIR", help="the run's folder (runs/UTC-NAME)"
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="sample what is missing in --run and fit again; its options stay, and only "
        + ", ".join(MAY_CHANGE)
        + " may be given anew",
    )
    add_options(parser, ValueConfig)


def _open_new(args: argparse.Namespace) -> tuple[Path, ValueConfig]:
    config = load(ValueConfig, args, toml=args.config, env_prefix=ENV_PREFIX)
    read_teacher(config.teacher)
    folder = args.folder or new_path(Path("runs"), "value")
    make_folder(folder, config)
    return folder, config


def _open_resumed(args: argparse.Namespace) -> tuple[Path, ValueConfig]:
    if args.folder is None:
        raise OptionError("--resume: needs --run DIR, the folder of the run to continue")
    place = args.folder / "config.toml"
    if not place.is_file():
        raise OptionError(f"--resume: {place} is missing, so this is no run to continue")
    old = load(ValueConfig, argparse.Namespace(), toml=place, environ={})
    config = resumed_config(args, old, MAY_CHANGE)
    write_config(args.folder, config)
    return args.folder, config


def run(args: argparse.Namespace) -> int:
    """Sample, fit and write; exit codes as of `snakekit train`."""
    folder, config = _open_resumed(args) if args.resume else _open_new(args)
    console = Console(stderr=True)
    stop = StopFlag(console)
    try:
        found = _work(folder, config, console, stop)
    finally:
        stop.restore()
    if found is None:
        console.print(
            f"stopped; continue with: snakekit train value --run {folder} --resume",
            highlight=False,
            soft_wrap=True,
        )
        return STOPPED
    console.print(f"{_write(folder, config, *found)}", highlight=False, soft_wrap=True)
    return FINISHED


def _work(
    folder: Path, config: ValueConfig, console: Console, stop: StopFlag
) -> tuple[ValueNet, Fit] | None:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[told]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        games = progress.add_task("games sampled", total=config.games, told="")

        def on_games(done: int) -> None:
            progress.update(games, completed=done)

        if not sample(folder, config, stop=stop, on_games=on_games):
            return None
        samples = Samples.load(files(folder, config))
        epochs = progress.add_task("epochs", total=config.epochs, told="")

        def on_epoch(epoch: int, loss: float, found: Fit) -> None:
            told = f"loss {loss:.4f}, held out {found.loss:.4f}, explained {found.explained:.1%}"
            progress.update(epochs, completed=epoch, told=told)

        return fit(samples, config, stop=stop, on_epoch=on_epoch)


def _write(folder: Path, config: ValueConfig, net: ValueNet, found: Fit) -> str:
    data = to_bytes(net, config)
    part = folder / f"{VALUE}.part"
    part.write_bytes(data)
    part.replace(folder / VALUE)
    card = {
        "sha256": hashlib.sha256(data).hexdigest(),
        "commit": source_commit(),
        "fit": asdict(found) | {"explained": found.explained},
        "config": msgspec.structs.asdict(config),
    }
    (folder / CARD).write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
    return (
        f"{folder / VALUE}: {found.positions} positions, {found.explained:.1%} explained; "
        f"try it: snakekit arena search:nodes=1000,value={folder / VALUE} search:nodes=1000 "
        "--mode duel"
    )
