"""The `snakekit` command: a table of sub-commands, each imported only when it is asked for.

A command module exposes `add_arguments(parser)` and `run(args) -> int`, where the integer is
the exit code: 0 done, 1 the check failed, 2 bad input.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence

from snakekit import __version__

COMMANDS: dict[str, tuple[str, str]] = {
    "serve": ("snakekit.runtime.cli", "answer Battlesnake requests over HTTP"),
    "play": ("snakekit.bench.play", "run games between servers and built-in players"),
    "train": ("snakekit.trainer.cli", "train a model"),
    "export": ("snakekit.export.cli", "turn a checkpoint into a model file for serving"),
    "bench": ("snakekit.bench.cli", "measure speed on this machine"),
    "replay": ("snakekit.bench.replay", "step through a recorded game"),
    "arena": ("snakekit.bench.arena.cli", "ratings among any players"),
    "inspect": ("snakekit.bench.inspect", "one board: what would be played, and why"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(prog="snakekit", description=__doc__.splitlines()[0])
    parser.add_argument("--version", action="version", version=f"snakekit {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    chosen = next((a for a in arguments if not a.startswith("-")), None)
    for name, (module, summary) in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary)
        if name == chosen:
            implementation = importlib.import_module(module)
            implementation.add_arguments(command)
            # Not `run`, which some commands have as an option.
            command.set_defaults(implementation=implementation.run)
    args = parser.parse_args(arguments)
    return int(args.implementation(args))


if __name__ == "__main__":
    sys.exit(main())
