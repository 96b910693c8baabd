"""`snakekit export`: a checkpoint, or random weights, becomes a model file behind a gate."""

import argparse
import sys
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from snakekit.export.options import ExportConfig
from snakekit.runtime.contract import CARD_KEY
from snakekit.runtime.options import OptionError, add_options, load

ENV_PREFIX = "SNAKEKIT_EXPORT_"
DONE, FAILED, BAD_INPUT = 0, 1, 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `snakekit export`."""
    parser.add_argument(
        "checkpoint", type=Path, nargs="?", help="folder of a run or of a checkpoint"
    )
    parser.add_argument(
        "--init",
        choices=("article", "compact"),
        help="instead of a checkpoint: a net with random weights, to measure its speed",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for NAME.onnx, NAME.json")
    parser.add_argument("--show", type=Path, metavar="FILE", help="only describe a model file")
    add_options(parser, ExportConfig)


def run(args: argparse.Namespace) -> int:
    """Export or describe; exit codes 0 done, 1 a gate was not passed, 2 bad input."""
    # Imported here so that `--help` needs neither torch nor onnx.
    from snakekit import core
    from snakekit.export.onnxfile import ModelFileError
    from snakekit.export.parity import GateError
    from snakekit.trainer.checkpoint import CheckpointError

    try:
        if args.show is not None:
            return _show(args.show)
        return _export(args)
    except GateError as error:
        print(f"snakekit export: {error}", file=sys.stderr)
        return FAILED
    except (OptionError, CheckpointError, ModelFileError, core.StateError) as error:
        print(f"snakekit export: {error}", file=sys.stderr)
        return BAD_INPUT


def _export(args: argparse.Namespace) -> int:
    from snakekit.export.pipeline import export, untrained
    from snakekit.trainer import checkpoint as store

    config = load(ExportConfig, args, env_prefix=ENV_PREFIX)
    if (args.checkpoint is None) == (args.init is None):
        raise OptionError("give either a checkpoint or --init, not both")
    if args.out is None:
        raise OptionError("--out: missing, expected a folder")
    if args.init is not None:
        saved, origin = untrained(args.init, config.seed), f"--init {args.init}"
    else:
        place = store.latest(args.checkpoint)
        saved, origin = store.load(place), str(place)
    console = Console()
    path, gate = export(saved, config, args.out, origin=origin)
    console.print(f"{path}: {path.stat().st_size:,} bytes, {gate.rule}", soft_wrap=True)
    console.print(gate.text(), soft_wrap=True)
    return DONE


def _show(path: Path) -> int:
    from snakekit.export.onnxfile import describe

    found = describe(path)
    console = Console()
    table = Table(title=path.name, show_header=False, title_justify="left")
    table.add_column()
    table.add_column(overflow="fold")
    table.add_row("size", f"{found.bytes:,} bytes")
    table.add_row("parameters", f"{found.parameters:,}")
    table.add_row("opset", f"{found.opset} (IR version {found.ir_version})")
    table.add_row("inputs", "\n".join(found.inputs))
    table.add_row("outputs", "\n".join(found.outputs))
    table.add_row("operators", ", ".join(f"{k} {n}" for k, n in found.operators.items()))
    card = msgspec.json.decode(found.card) if found.card else {CARD_KEY: "none"}
    for key, value in card.items():
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        table.add_row(f"card.{key}", text)
    console.print(table)
    return DONE
