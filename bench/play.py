"""`snakekit play`: games by the official protocol between servers and built-in players."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from msgspec import Meta
from rich.console import Console

from snakekit.bench.engine_client import EngineClient
from snakekit.bench.game_options import GameOptions
from snakekit.bench.match import GameRules
from snakekit.bench.match_report import game_records, match_results, player_record
from snakekit.bench.players import Player, PlayerError, parse_players
from snakekit.bench.report import write_report
from snakekit.bench.screen import Screen
from snakekit.bench.series import Series, SeriesResult, check_players
from snakekit.bench.table import summary
from snakekit.bench.tally import Outcome
from snakekit.core import StateError
from snakekit.runtime.options import OptionError, add_options, load


class PlayConfig(GameOptions, frozen=True, kw_only=True):
    """Options of `snakekit play`."""

    games: Annotated[int, Meta(ge=1, le=1_000_000, description="how many games to play")] = 1
    parallel: Annotated[
        int, Meta(ge=1, le=256, description="games at once; more than 1 blurs latencies")
    ] = 1
    max_turns: Annotated[
        int, Meta(ge=0, description="end a game as a draw at this turn; 0 means never")
    ] = 0
    out: Annotated[
        str, Meta(description="folder for game files, JSON Lines as the official tool writes")
    ] = ""
    json: Annotated[str, Meta(description="file for the figures as JSON")] = ""
    view: Annotated[bool, Meta(description="show the board of a running game")] = False
    pace_ms: Annotated[
        int, Meta(ge=0, le=10_000, description="shortest time of a turn, to watch, ms")
    ] = 0
    allow_unready: Annotated[
        bool, Meta(description="play even if a server does not answer GET / properly")
    ] = False
    require_clean: Annotated[
        bool, Meta(description="exit with 1 after any time-out, error or illegal move")
    ] = False
    min_win_rate: Annotated[
        float,
        Meta(ge=0, le=1, description="exit with 1 if the first player wins a smaller share"),
    ] = 0.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the players and the options."""
    parser.add_argument(
        "players",
        nargs="+",
        metavar="[NAME=]PLAYER",
        help="1 to 8 of: URL, random, greedy, search:MS, search:depth=N, search:nodes=N, "
        "policy:MODEL, equilibrium:MODEL",
    )
    add_options(parser, PlayConfig)


def run(args: argparse.Namespace) -> int:
    """Play, print the tables, write the files; return the exit code."""
    try:
        config = load(PlayConfig, args, env_prefix="SNAKEKIT_PLAY_")
        players = parse_players(args.players)
        rules = config.rules(len(players), max_turns=config.max_turns, pace_ms=config.pace_ms)
        _check_paths(config)
        result = asyncio.run(_play(config, players, rules))
    except (OptionError, PlayerError, StateError, OSError) as error:
        print(f"snakekit play: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("snakekit play: interrupted", file=sys.stderr)
        return 1
    console = Console()
    console.print(summary(players, result))
    if config.json:
        _write_json(config, players, result)
    return _verdict(config, players, result)


def _check_paths(config: PlayConfig) -> None:
    if config.out:
        Path(config.out).mkdir(parents=True, exist_ok=True)
    if config.json and Path(config.json).is_dir():
        raise OptionError(f"json (from --json): expected a file, {config.json} is a folder")


async def _play(config: PlayConfig, players: list[Player], rules: GameRules) -> SeriesResult:
    client = EngineClient(config.timeout_ms)
    console = Console(stderr=True)
    try:
        try:
            await check_players(players, client)
        except PlayerError as error:
            if not config.allow_unready:
                raise
            print(f"snakekit play: warning: {error}", file=sys.stderr)
        for player in players:
            if player.apiversion:
                about = f"apiversion {player.apiversion}, version {player.version or 'not told'}"
                console.print(f"{player.name}: {about}", style="dim", highlight=False)
        with Screen(console, config.games, view=config.view) as screen:
            series = Series(
                players,
                rules,
                games=config.games,
                parallel=config.parallel,
                seed=config.seed,
                client=client,
                watcher=screen,
                out=Path(config.out) if config.out else None,
            )
            with _stopping(series):
                return await series.play()
    finally:
        await client.close()


@contextmanager
def _stopping(series: Series) -> Iterator[None]:
    loop = asyncio.get_running_loop()

    def stop() -> None:
        series.stop()
        # The second Ctrl-C must end the program even if a player hangs.
        loop.remove_signal_handler(signal.SIGINT)

    try:
        loop.add_signal_handler(signal.SIGINT, stop)
    except (NotImplementedError, RuntimeError, ValueError):
        # Not the main thread, or a system without such handlers: Ctrl-C then ends at once.
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _write_json(config: PlayConfig, players: list[Player], result: SeriesResult) -> None:
    params = {
        "players": [player.spec for player in players],
        "width": config.width,
        "height": config.height,
        "ruleset": config.ruleset,
        "map": config.map,
        "hazard_damage": config.hazard_damage,
        "shrink_every": config.shrink_every,
        "timeout_ms": config.timeout_ms,
        "parallel": config.parallel,
        "seed": config.seed,
    }
    write_report(
        Path(config.json),
        match_results(players, result, params),
        players=[player_record(p, t) for p, t in zip(players, result.tallies, strict=True)],
        games=game_records(result),
    )


def _verdict(config: PlayConfig, players: list[Player], result: SeriesResult) -> int:
    failures: list[str] = []
    if result.stopped:
        ended = sum(not game.aborted for game in result.games)
        failures.append(f"stopped after {ended} of {config.games} games")
    if config.require_clean:
        failures += [
            f"{player.name}: {tally.faults} moves with a time-out, an error or against the rules"
            for player, tally in zip(players, result.tallies, strict=True)
            if tally.faults
        ]
    first = result.tallies[0]
    share = first.outcomes[Outcome.WIN] / first.games if first.games else 0.0
    if share < config.min_win_rate:
        failures.append(
            f"{players[0].name}: won {share:.1%} of {first.games} games, "
            f"expected at least {config.min_win_rate:.1%}"
        )
    for failure in failures:
        print(f"snakekit play: {failure}", file=sys.stderr)
    return 1 if failures else 0
