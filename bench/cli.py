"""`snakekit bench`: one sub-command for each thing measured, imported when asked for."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Any

MEASURES: dict[str, tuple[str, str]] = {
    "rules": ("snakekit.bench.rules", "turns per second, environments, exactness"),
    "encoder": ("snakekit.bench.rules", "time of observations"),
    "inference": ("snakekit.bench.inference", "models on every backend, precision and batch"),
    "search": ("snakekit.bench.search", "nodes per second, depth, time kept"),
    "nash": ("snakekit.bench.nash", "moves by equilibrium, regret matching, training by it"),
    "server": ("snakekit.bench.server", "latency and throughput of a server"),
    "tune": ("snakekit.bench.tune.cli", "better weights for the evaluation, by self-play"),
    "train": ("snakekit.bench.train", "decisions learned from a second, and where time goes"),
    "all": ("snakekit.bench.everything", "all of these in one report"),
    "counts": ("snakekit.bench.counts_check", "instructions, nodes, allocations; a baseline"),
}


class _MeasureParser(argparse.ArgumentParser):
    """Declares its options only when it is used, since some measures import torch."""

    def __init__(self, *, module: str = "", **options: Any) -> None:
        super().__init__(**options)
        self._module = module

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Import the measure, declare its options, then parse as usual."""
        if self._module:
            implementation = importlib.import_module(self._module)
            implementation.add_arguments(self)
            self.set_defaults(run_measure=implementation.run)
            self._module = ""
        found: tuple[argparse.Namespace, list[str]] = super().parse_known_args(args, namespace)
        return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the measures."""
    measures = parser.add_subparsers(
        dest="measure", metavar="MEASURE", required=True, parser_class=_MeasureParser
    )
    for name, (module, summary) in MEASURES.items():
        measures.add_parser(name, help=summary, description=summary, module=module)


def run(args: argparse.Namespace) -> int:
    """Run the chosen measure and return its exit code."""
    try:
        return int(args.run_measure(args))
    except KeyboardInterrupt:
        print(f"snakekit bench {args.measure}: interrupted", file=sys.stderr)
        return 1
