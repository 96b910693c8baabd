"""`snakekit bench server`: latency of one `/move` after the other, then moves per second.

The requests come from real games: seeded games of the greedy player, one request a turn. Without
an address a server is started for the measurement.
"""

import argparse
import asyncio
import contextlib
import math
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import aiohttp
from msgspec import Meta
from prometheus_client.parser import text_string_to_metric_families

from snakekit.bench.engine_client import EngineClient
from snakekit.bench.match import derive_seed
from snakekit.bench.output import Output, OutputConfig, ReportError, refuse
from snakekit.bench.players import Player, PlayerError, parse_player
from snakekit.bench.protocol import Kind, Seat, Turn, game_object
from snakekit.bench.report import Missing, Result, Section, noise_of, noise_of_share
from snakekit.bench.served import ServedError, served
from snakekit.bench.tally import Tally, percentile
from snakekit.core import Settings, State, greedy_move
from snakekit.runtime.config import Mode
from snakekit.runtime.options import OptionError, add_options, load
from snakekit.trainer import plots
from snakekit.trainer.plots import Axis, Series

HISTOGRAM = "snakekit_move_seconds"
_WARM_UP = 20
_PARTS = 7
_SHARES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)


class ServerConfig(OutputConfig, frozen=True, kw_only=True):
    """Options of `snakekit bench server`."""

    url: Annotated[str, Meta(description="address of a running server; none: start one")] = ""
    requests: Annotated[
        int, Meta(ge=1, le=10_000_000, description="requests one after the other")
    ] = 2000
    load_requests: Annotated[
        int, Meta(ge=0, le=10_000_000, description="requests under load, for moves per second")
    ] = 1000
    clients: Annotated[
        int, Meta(ge=1, le=1000, description="games at the same time under load")
    ] = 8
    metrics_url: Annotated[
        str, Meta(description="address of its metrics, for the latency it measured itself")
    ] = ""
    mode: Annotated[Mode, Meta(description="how the server to start plays")] = "policy"
    model: Annotated[str, Meta(description="model of the server to start; none: the shipped")] = ""
    label: Annotated[
        str,
        Meta(
            pattern="^([a-z0-9_-]+)?$",
            description="how the server plays, as in server.LABEL.p50_ms; none: the mode",
        ),
    ] = ""
    seed: Annotated[int, Meta(ge=0, description="start of all random numbers")] = 1
    snakes: Annotated[int, Meta(ge=1, le=8, description="snakes in a game")] = 4
    timeout_ms: Annotated[int, Meta(ge=1, le=60_000, description="time-out of a game, ms")] = 500


@dataclass
class Measured:
    """What the server did: one request after the other, what it says itself, under load."""

    single: Tally
    own: "Buckets"
    loaded: Tally
    rates: list[float]
    """Moves per second in each part of the load."""


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
    """Measure, show, write; exit code 1 if any request went wrong."""
    try:
        config = load(ServerConfig, args, env_prefix="SNAKEKIT_BENCH_")
        output = Output(config)
        return output.finish([measure(config)])
    except (OptionError, PlayerError, ServedError, ReportError) as error:
        return refuse("server", error)
    except (OSError, aiohttp.ClientError) as error:
        return refuse("server", error)


def measure(config: ServerConfig) -> Section:
    """Measure a server, started here or already running.

    Raises:
        PlayerError: no server at that address.
        ServedError: a server cannot be started.
    """
    with contextlib.ExitStack() as stack:
        url, metrics_url = config.url, config.metrics_url
        if not url:
            options = ["--mode", config.mode]
            options += ["--model", config.model] if config.model else []
            place = stack.enter_context(served(options))
            url, metrics_url = place.url, metrics_url or place.metrics_url
        player = parse_player(url)
        if not player.is_http:
            raise PlayerError(f"url (from --url): expected http://..., found {url!r}")
        return _section(config, asyncio.run(_measure(config, player, metrics_url)))


async def _measure(config: ServerConfig, player: Player, metrics_url: str) -> Measured:
    client = EngineClient(config.timeout_ms)
    found = Measured(Tally(), Buckets({}), Tally(), [])
    try:
        await client.check_index(player)
        source = positions(config.seed, config.snakes, config.timeout_ms)
        await _ask(client, player, source, _WARM_UP, Tally())
        before = await _scrape(metrics_url) if metrics_url else Buckets({})
        await _ask(client, player, source, config.requests, found.single)
        if metrics_url:
            found.own = (await _scrape(metrics_url)).since(before)
        await _load(config, client, player, found)
    finally:
        await client.close()
    return found


async def _ask(
    client: EngineClient,
    player: Player,
    source: Iterator[tuple[Turn, Seat]],
    count: int,
    tally: Tally,
) -> None:
    for _ in range(count):
        turn, seat = next(source)
        answer = await client.ask_move(player, turn.request(0))
        seat.latency = str(int(answer.latency_ms))
        tally.count_answer(answer, illegal_move=False)


async def _load(
    config: ServerConfig, client: EngineClient, player: Player, found: Measured
) -> None:
    """Ask for moves of several games at the same time, in parts that tell the noise."""
    each = math.ceil(config.load_requests / (_PARTS * config.clients))
    sources = [
        positions(derive_seed(config.seed, "load", number), config.snakes, config.timeout_ms)
        for number in range(config.clients)
    ]
    for _ in range(_PARTS if each else 0):
        begin = time.perf_counter()
        tallies = [Tally() for _ in sources]
        async with asyncio.TaskGroup() as group:
            for source, tally in zip(sources, tallies, strict=True):
                group.create_task(_ask(client, player, source, each, tally))
        seconds = time.perf_counter() - begin
        found.rates.append(sum(t.kinds[Kind.OK] for t in tallies) / seconds)
        for tally in tallies:
            found.loaded.add(tally)


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


def _section(config: ServerConfig, found: Measured) -> Section:
    label = config.label or config.mode
    section = Section("server", "Server", [])
    params: dict[str, Any] = {
        "server": config.url or f"started here, mode {config.mode}",
        "timeout_ms": config.timeout_ms,
        "snakes": config.snakes,
        "seed": config.seed,
    }

    def add(
        name: str,
        value: float,
        samples: int,
        noise: dict[str, float],
        unit: str = "ms",
        better: Literal["higher", "lower"] = "lower",
        **more: Any,
    ) -> None:
        section.results.append(
            Result(
                name=f"server.{label}.{name}",
                value=value,
                unit=unit,
                better=better,
                samples=samples,
                params={**params, **more, **noise},
            )
        )

    times = found.single.latencies_ms
    size = max(1, len(times) // _PARTS)
    parts = [times[i * size : (i + 1) * size] for i in range(_PARTS)]
    for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)):
        noise = noise_of_share(parts, share)
        add(f"{name}_ms", percentile(times, share), found.single.moves, noise, clients=1)
    if found.own.counts:
        add("own_p99_bound_ms", found.own.bound(0.99) * 1000, found.own.total, {}, clients=1)
    if found.rates:
        busy, rates = found.loaded, found.rates
        rate = len(rates) / sum(1 / r for r in rates) if all(rates) else 0.0
        add(
            "moves_per_s",
            rate,
            busy.moves,
            noise_of(rates),
            "moves/s",
            "higher",
            clients=config.clients,
        )
        add("loaded_p99_ms", busy.latency(0.99), busy.moves, {}, clients=config.clients)
    for tally, when in ((found.single, "one after the other"), (found.loaded, "under load")):
        if tally.faults:
            section.failed = True
            counts = ", ".join(f"{n} {kind.value}" for kind, n in tally.kinds.items())
            why = f"not every answer was good: {counts}"
            section.missing.append(Missing(what=f"server {when}", why=why))
    section.plots.append(_plot(config, found))
    return section


def _plot(config: ServerConfig, found: Measured) -> str:
    series = [
        Series(words, [(100 * s, tally.latency(s)) for s in _SHARES])
        for words, tally in (
            ("one after the other", found.single),
            (f"{config.clients} games at the same time", found.loaded),
        )
        if tally.moves
    ]
    x = Axis("percentile of requests", zero=False, ticks=(50, 75, 90, 95, 99))
    return plots.lines("Latency of /move", series, x, Axis("ms", log=True))
