"""`snakekit train METHOD`: a table of methods, each with its own options."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from snakekit.runtime.contract import ModelCard
from snakekit.runtime.options import OptionError
from snakekit.trainer import checkpoint as store
from snakekit.trainer.checkpoint import CheckpointError

if TYPE_CHECKING:
    from snakekit.trainer.contest import Chooser
    from snakekit.trainer.model import Net

FINISHED, BAD_INPUT = 0, 2


@dataclass(frozen=True)
class Method:
    """One sub-command."""

    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def _imitation_arguments(parser: argparse.ArgumentParser) -> None:
    from snakekit.trainer.imitation_command import add_arguments

    add_arguments(parser)


def _imitation(args: argparse.Namespace) -> int:
    from snakekit.trainer.imitation_command import run

    return run(args)


def _ppo_arguments(parser: argparse.ArgumentParser) -> None:
    from snakekit.trainer.ppo.command import add_arguments

    add_arguments(parser)


def _ppo(args: argparse.Namespace) -> int:
    from snakekit.trainer.ppo.command import run

    return run(args)


def _nash_arguments(parser: argparse.ArgumentParser) -> None:
    from snakekit.trainer.nash.command import add_arguments

    add_arguments(parser)


def _nash(args: argparse.Namespace) -> int:
    from snakekit.trainer.nash.command import run

    return run(args)


def _value_arguments(parser: argparse.ArgumentParser) -> None:
    from snakekit.trainer.value.command import add_arguments

    add_arguments(parser)


def _value(args: argparse.Namespace) -> int:
    from snakekit.trainer.value.command import run

    return run(args)


def _exploit_arguments(parser: argparse.ArgumentParser) -> None:
    from snakekit.trainer.exploit_command import add_arguments

    add_arguments(parser)


def _exploit(args: argparse.Namespace) -> int:
    from snakekit.trainer.exploit_command import run

    return run(args)


def _evaluate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", type=Path, help="folder of a run or of a checkpoint")
    parser.add_argument("--games", type=int, default=200, metavar="N", help="games a pairing")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the games")
    parser.add_argument(
        "--scenarios", default="11x11x2,11x11x4", metavar="LIST", help="kinds of games"
    )
    parser.add_argument(
        "--opponents", default="random,greedy", metavar="LIST", help="random, greedy, search1..8"
    )
    parser.add_argument("--max-turns", type=int, default=2000, metavar="N", help="a game's limit")
    parser.add_argument(
        "--equilibrium",
        action="store_true",
        help="of nets for all seats: the likeliest move of one turn's equilibrium",
    )


def _evaluate(args: argparse.Namespace) -> int:
    import torch

    from snakekit.trainer.evaluate import measure_player
    from snakekit.trainer.scenario import parse_all

    if args.games < 1 or args.seed < 0 or args.max_turns < 1:
        raise OptionError("--games and --max-turns are at least 1 and --seed at least 0")
    torch.set_num_threads(1)
    place = store.latest(args.checkpoint)
    saved = store.load(place)
    model = store.restore_model(saved, origin=str(place)).eval()
    player = _player(model, saved.card, args.equilibrium)
    way = "equilibrium" if args.equilibrium else "bare policy"
    table = Table(title=f"{saved.card.name}, step {saved.card.step}, {way}, {args.games} games")
    for column in ("game", "opponent", "won", "lost", "drawn", "cut", "95 % of won", "turns"):
        table.add_column(column, justify="right")
    for scenario in parse_all([s for s in args.scenarios.split(",") if s]):
        for opponent in [o for o in args.opponents.split(",") if o]:
            score = measure_player(
                player,
                scenario,
                opponent,
                games=args.games,
                seed=args.seed,
                max_turns=args.max_turns,
            )
            low, high = score.interval()
            counts = (score.wins, score.losses, score.draws, score.unfinished)
            table.add_row(
                str(scenario),
                opponent,
                *map(str, counts),
                f"{low:.0%}..{high:.0%}",
                f"{score.turns:.0f}",
            )
    Console().print(table)
    return FINISHED


def _player(model: "Net", card: ModelCard, by_equilibrium: bool) -> "Chooser":
    from snakekit.trainer.contest import best_move
    from snakekit.trainer.generate import infer
    from snakekit.trainer.nash.players import bare_policy, equilibrium

    if by_equilibrium and not card.slots:
        raise OptionError("--equilibrium: this net answers for one seat, not for all")
    if by_equilibrium:
        return equilibrium(model, card.slots)
    if card.slots:
        return bare_policy(model, card.slots)
    return best_move(lambda obs: infer(model, obs)[0], card.encoder)


METHODS = MappingProxyType(
    {
        "imitation": Method(
            "learn from the alpha-beta search's answers", _imitation_arguments, _imitation
        ),
        "ppo": Method(
            "proximal policy optimization by self-play in a league", _ppo_arguments, _ppo
        ),
        "nash": Method(
            "deep Nash value iteration: self-play by equilibrium", _nash_arguments, _nash
        ),
        "value": Method(
            "fit the search's learned value to deeper searches", _value_arguments, _value
        ),
        "exploit": Method(
            "train best responses to a frozen agent and report what they win",
            _exploit_arguments,
            _exploit,
        ),
        "evaluate": Method(
            "play a checkpoint's bare policy against built-in players",
            _evaluate_arguments,
            _evaluate,
        ),
    }
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add one sub-command for each entry of `METHODS`."""
    methods = parser.add_subparsers(dest="method", metavar="METHOD", required=True)
    for name, method in METHODS.items():
        command = methods.add_parser(name, help=method.summary, description=method.summary)
        method.add_arguments(command)


def run(args: argparse.Namespace) -> int:
    """Run the chosen method; exit codes 0 done, 1 stopped before the end, 2 bad input."""
    try:
        return METHODS[args.method].run(args)
    except (OptionError, CheckpointError, ValueError, OSError) as error:
        print(f"snakekit train: {error}", file=sys.stderr)
        return BAD_INPUT
