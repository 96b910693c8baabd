"""`snakekit bench server`: latency of a server that gets one `/move` after the other.

The requests come from real games: seeded games of the greedy player, one request a turn.
"""

import argparse
import asyncio
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import aiohttp
import msgspec
from msgspec import Meta
from prometheus_client.parser import text_string_to_metric_families
from rich import box
from rich.console import Console
from rich.table import Table

from snakekit.bench.engine_client import EngineClient
from snakekit.bench.match import derive_seed
from snakekit.bench.players import Player, PlayerError, parse_player
from snakekit.bench.protocol import Seat, Turn, game_object
from snakekit.bench.report import Result, write_report
from snakekit.bench.tally import Tally
from snakekit.core import Settings, State, greedy_move
from snakekit.runtime.options import OptionError, add_options, load

HISTOGRAM = "snakekit_move_seconds"
_WARM_UP = 20


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Options of `snakekit bench server`."""

    url: Annotated[str, Meta(description="address of the server")] = "http://127.0.0.1:8000"
    requests: Annotated[int, Meta(ge=1, le=10_000_000, description="requests to measure")] = 2000
    metrics_url: Annotated[
        str, Meta(description="address of its metrics, for the latency it measured itself")
    ] = ""
    label: Annotated[
        str, Meta(pattern="^[a-z0-9_-]+$", description="how the server plays: server.LABEL.p50_ms")
    ] = "policy"
    seed: Annotated[int, Meta(ge=0, description="start of all random numbers")] = 1
    snakes: Annotated[int, Meta(ge=1, le=8, description="snakes in a game")] = 4
    timeout_ms: Annotated[int, Meta(ge=1, le=60_000, description="time-out of a game, ms")] = 500
    json: Annotated[str, Meta(description="file for the figures as JSON")] = ""


@dataclass(frozen=True)
class Buckets:
    """A Prometheus histogram: upper edges in seconds to how many values lie at or below."""

    counts: dict[float, float]

    def since(self, earlier: "Buckets") -> "Buckets":
        """Return what came between `earlier` and this."""
        return Buckets({e: n - earlier.counts.get(e, 0.0) for e, n in self.counts.items()})

    @property
    def total(self) -> int:
        """How many values there are."""
        return int(self.counts.get(float("inf"), 0.0))

    def bound(self, share: float) -> float:
        """Return the edge in seconds that at least `share` of the values do not exceed.

        Infinity if that many lie beyond the last edge; NaN without values.
        """
        if self.total == 0:
            return float("nan")
        return next(
            edge for edge, count in sorted(self.counts.items()) if count >= share * self.total
        )


def read_buckets(text: str, name: str) -> Buckets:
    """Add up all series of histogram `name` in a Prometheus text; empty if it is not there."""
    counts: dict[float, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == f"{name}_bucket":
                edge = float(sample.labels["le"])
                counts[edge] = counts.get(edge, 0.0) + sample.value
    return Buckets(counts)


def positions(seed: int, snakes: int, timeout_ms: int) -> Iterator[tuple[Turn, Seat]]:
    """Yield endless turns of seeded games with the seat 0 alive, and that seat.

    The caller sets the seat's latency after each request, as the engine does.
    """
    number = 0
    settings = Settings(solo=snakes == 1)
    while True:
        game_id = str(uuid.UUID(int=derive_seed(seed, "id", number)))
        seats = [Seat(f"{game_id}-{i}", f"snake {i}") for i in range(snakes)]
        state = State.new_game(
            11, 11, [s.id for s in seats], derive_seed(seed, "board", number), settings
        )
        game = game_object(
            game_id=game_id,
            ruleset="standard",
            map_name="standard",
            timeout_ms=timeout_ms,
            settings=settings,
        )
        while state.alive(0) and not state.game_over():
            yield Turn(game, state, seats), seats[0]
            draw = derive_seed(seed, "move", number, state.turn)
            moves = [0] * snakes
            for seat in state.living():
                moves[seat] = greedy_move(state, seat, draw + seat)
            state.step(moves)
            state.spawn_food(derive_seed(seed, "food", number))
        number += 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_options(parser, ServerConfig)


def run(args: argparse.Namespace) -> int:
    """Measure, print a table, write the file; exit code 1 if any request went wrong."""
    try:
        config = load(ServerConfig, args, env_prefix="SNAKEKIT_BENCH_")
        player = parse_player(config.url)
        if not player.is_http:
            raise PlayerError(f"url (from --url): expected http://..., found {config.url!r}")
        tally, own = asyncio.run(_measure(config, player))
    except (OptionError, PlayerError, OSError, aiohttp.ClientError) as error:
        print(f"snakekit bench server: {error}", file=sys.stderr)
        return 2
    results = _results(config, tally, own)
    _print(results, tally)
    if config.json:
        write_report(Path(config.json), results)
    return 1 if tally.faults else 0


async def _measure(config: ServerConfig, player: Player) -> tuple[Tally, Buckets]:
    client = EngineClient(config.timeout_ms)
    tally, own = Tally(), Buckets({})
    try:
        await client.check_index(player)
        source = positions(config.seed, config.snakes, config.timeout_ms)
        for number in range(_WARM_UP + config.requests):
            if number == _WARM_UP and config.metrics_url:
                own = await _scrape(config.metrics_url)
            turn, seat = next(source)
            answer = await client.ask_move(player, turn.request(0))
            seat.latency = str(int(answer.latency_ms))
            if number >= _WARM_UP:
                tally.count_answer(answer, illegal_move=False)
        if config.metrics_url:
            own = (await _scrape(config.metrics_url)).since(own)
    finally:
        await client.close()
    return tally, own


async def _scrape(url: str) -> Buckets:
    timeout = aiohttp.ClientTimeout(total=5)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as response:
            response.raise_for_status()
            found = read_buckets(await response.text(), HISTOGRAM)
    except (TimeoutError, ValueError) as error:
        raise PlayerError(f"metrics at {url}: {error or 'no answer in 5 s'}") from None
    if not found.counts:
        raise PlayerError(f"metrics at {url}: there is no histogram {HISTOGRAM}")
    return found


def _results(config: ServerConfig, tally: Tally, own: Buckets) -> list[Result]:
    params = {
        "url": config.url,
        "timeout_ms": config.timeout_ms,
        "snakes": config.snakes,
        "seed": config.seed,
    }
    prefix = f"server.{config.label}"
    values = [
        (f"{prefix}.p50_ms", tally.latency(0.5), tally.moves),
        (f"{prefix}.p90_ms", tally.latency(0.9), tally.moves),
        (f"{prefix}.p99_ms", tally.latency(0.99), tally.moves),
        (f"{prefix}.max_ms", tally.latency(1.0), tally.moves),
    ]
    if own.counts:
        values.append((f"{prefix}.own_p99_bound_ms", own.bound(0.99) * 1000, own.total))
    return [
        Result(name=name, value=value, unit="ms", better="lower", samples=samples, params=params)
        for name, value, samples in values
    ]


def _print(results: list[Result], tally: Tally) -> None:
    table = Table(
        title="Server, one request after the other",
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("figure")
    table.add_column("value", justify="right")
    table.add_column("requests", justify="right")
    for result in results:
        table.add_row(result.name, f"{result.value:.2f} {result.unit}", str(result.samples))
    console = Console()
    console.print(table)
    if tally.faults:
        counts = ", ".join(f"{n} {kind.value}" for kind, n in tally.kinds.items())
        console.print(f"not every answer was good: {counts}", style="bold red")
