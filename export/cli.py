"""`snakekit export`: a checkpoint, or random weights, becomes a model file behind a gate."""

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from snakekit.export.options import ExportConfig, VerifyConfig
from snakekit.runtime.options import OptionError, add_options, load

if TYPE_CHECKING:
    from snakekit.export.pipeline import Exported

ENV_PREFIX = "SNAKEKIT_EXPORT_"
DONE, FAILED, BAD_INPUT = 0, 1, 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `snakekit export`."""
    parser.add_argument(
        "checkpoint",
        type=Path,
        nargs="?",
        help="folder of a run or of a checkpoint, or an fp32 ONNX file made by this command",
    )
    parser.add_argument(
        "--init",
        choices=("article", "compact", "all-seat"),
        help="instead of a checkpoint: a net with random weights, to measure its speed",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for NAME.onnx, NAME.json")
    parser.add_argument("--show", type=Path, metavar="FILE", help="only describe a model or engine")
    parser.add_argument(
        "--verify", metavar="MODEL", help="only compare a model with its reference, here and now"
    )
    parser.add_argument(
        "--reference",
        type=Path,
        metavar="FILE",
        help="with --verify: NAME.parity.npz (default: beside the model)",
    )
    add_options(parser, ExportConfig)
    add_options(parser, VerifyConfig)


def run(args: argparse.Namespace) -> int:
    """Export, describe or verify; exit codes 0 done, 1 a gate was not passed, 2 bad input."""
    from snakekit.runtime.backends import BackendError

    try:
        given = [args.show is not None, args.verify is not None, args.out is not None]
        if sum(given) > 1:
            raise OptionError("give one of --out, --show and --verify")
        if args.verify is not None:
            return _verify(args)
        return _with_torch(args)
    except (OptionError, BackendError) as error:
        return _refuse(error, BAD_INPUT)


def _refuse(error: Exception, code: int) -> int:
    print("snakekit export: " + " ".join(str(error).split()), file=sys.stderr)
    return code


def _verify(args: argparse.Namespace) -> int:
    from snakekit.export.samples import TruthError
    from snakekit.export.show import gates_table
    from snakekit.export.verify import verify

    config = load(VerifyConfig, args, env_prefix=ENV_PREFIX)
    limits = load(ExportConfig, args, env_prefix=ENV_PREFIX)
    if args.checkpoint is not None or args.init is not None:
        raise OptionError("--verify: takes a model, not a checkpoint as well")
    started = time.perf_counter()
    try:
        with _progress() as bar:
            bar.add_task(f"comparing {args.verify} with its reference")
            found = verify(args.verify, config, limits, args.reference)
    except TruthError as error:
        return _refuse(error, BAD_INPUT)
    seconds = time.perf_counter() - started
    title = f"{found.card.name} {found.card.precision} on {found.info.actual} ({found.info.device})"
    console = Console()
    console.print(gates_table(f"{title}, {seconds:.1f} s", (found.gate,)))
    if not found.gate.passed:
        return _refuse(
            ValueError(f"{title}: asked {found.gate.rule}; found {found.gate.text()}"), FAILED
        )
    console.print(f"passed: {found.gate.rule}", soft_wrap=True)
    return DONE


def _with_torch(args: argparse.Namespace) -> int:
    # Imported here so that neither `--help` nor `--verify` needs torch or onnx.
    from snakekit import core
    from snakekit.export.onnxfile import ModelFileError
    from snakekit.export.parity import GateError
    from snakekit.trainer.checkpoint import CheckpointError

    try:
        if args.show is not None:
            return _show(args.show)
        return _export(args)
    except GateError as error:
        return _refuse(ValueError(f"{error}; nothing written"), FAILED)
    except (CheckpointError, ModelFileError, core.StateError) as error:
        return _refuse(error, BAD_INPUT)


def _export(args: argparse.Namespace) -> int:
    from snakekit.export.onnxfile import checkpoint_of
    from snakekit.export.pipeline import export, untrained
    from snakekit.trainer import checkpoint as store

    config = load(ExportConfig, args, env_prefix=ENV_PREFIX)
    if (args.checkpoint is None) == (args.init is None):
        raise OptionError("give either a checkpoint or --init, not both")
    if args.out is None:
        raise OptionError("--out: missing, expected a folder")
    if args.init is not None:
        saved, origin = untrained(args.init, config.seed), f"--init {args.init}"
    elif args.checkpoint.is_file():
        saved, origin = checkpoint_of(args.checkpoint), args.checkpoint.name
    else:
        place = store.latest(args.checkpoint)
        saved, origin = store.load(place), str(place)
    started = time.perf_counter()
    with _progress() as bar:
        task = bar.add_task("loading")
        found = export(
            saved,
            config,
            args.out,
            origin=origin,
            step=lambda text: bar.update(task, description=text),
        )
    _print_exported(found, time.perf_counter() - started)
    return DONE


def _print_exported(found: "Exported", seconds: float) -> None:
    from snakekit.export.show import gates_table

    console = Console()
    for path in found.files:
        console.print(f"{path.stat().st_size:>13,} bytes  {path}", soft_wrap=True, highlight=False)
    title = f"{found.card.name} {found.card.precision}: {found.status}, {seconds:.1f} s"
    console.print(gates_table(title, found.gates))


def _show(path: Path) -> int:
    from snakekit.export.show import engine_table, model_table
    from snakekit.runtime.backends.trt.engine_file import SUFFIX

    Console().print(engine_table(path) if path.suffix == SUFFIX else model_table(path))
    return DONE


def _progress() -> Progress:
    console = Console(stderr=True)
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
