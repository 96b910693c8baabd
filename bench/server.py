"""`snakekit bench server`: a server under the loads of real games.

This process is the load generator; the server is another one, started here unless an address is
given. The requests are those of an engine: `/start`, each `/move` with the latency of the one
before, `/end`, over connections that stay open.
"""

import argparse
import asyncio
import contextlib
import math
import os
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import aiohttp
from msgspec import Meta

from snakekit.bench.engine_client import EngineClient
from snakekit.bench.load import Sample, Script, Target, scripts
from snakekit.bench.output import Output, OutputConfig, ReportError, refuse
from snakekit.bench.players import PlayerError, parse_player
from snakekit.bench.report import Grid, Missing, Result, Section
from snakekit.bench.scenarios import Load, Outcome
from snakekit.bench.served import ServedError, served
from snakekit.runtime import config as runtime
from snakekit.runtime.config import Mode
from snakekit.runtime.options import OptionError, add_options, load
from snakekit.trainer import plots
from snakekit.trainer.plots import Axis, Series, figure

Scenario = Literal["single", "games", "saturation", "soak", "overload"]
_SECONDS: dict[str, float] = {"games": 30, "saturation": 10, "soak": 600, "overload": 60}
_SOAK_MODE: Mode = "hybrid"
_GAMES = 24
# What the project wants: at most this, or at least where more is better.
_GOALS = {
    "games.misses": 0.0,
    "soak.misses": 0.0,
    "overload.late": 0.0,
    "overload.refused_max_ms": 50.0,
    "overload.memory_ratio": 1.1,
}
_POLICY_GOALS = {"p50_ms": 1.5, "p99_ms": 5.0, "games.p99_ms": 15.0, "moves_per_s": 1200.0}
_SHARES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)


class ServerConfig(OutputConfig, frozen=True, kw_only=True):
    """Options of `snakekit bench server`."""

    url: Annotated[str, Meta(description="address of a running server; none: start one")] = ""
    metrics_url: Annotated[
        str, Meta(description="address of its metrics, for what it measured itself")
    ] = ""
    scenario: Annotated[
        tuple[Scenario, ...],
        Meta(
            min_length=1,
            description="single: one game; games: many at 2 moves/s; saturation: all it can; "
            "soak: hybrid for 10 minutes; overload: 4 times saturation",
        ),
    ] = ("single", "games", "saturation")
    requests: Annotated[int, Meta(ge=1, le=10_000_000, description="requests of single")] = 2000
    seconds: Annotated[
        float,
        Meta(ge=0, le=86_400, description="length of each other one, s; 0: its usual one"),
    ] = 0.0
    games: Annotated[int, Meta(ge=1, le=10_000, description="games at the same time in games")] = 32
    clients: Annotated[
        int, Meta(ge=1, le=1000, description="games at the same time in saturation")
    ] = 32
    soak_games: Annotated[
        int, Meta(ge=1, le=1000, description="games at the same time in soak")
    ] = 8
    mode: Annotated[Mode, Meta(description="how the server to start plays, but in soak")] = "policy"
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

    def lasting(self, scenario: Scenario) -> float:
        """Return how long a scenario lasts, in seconds."""
        return self.seconds or _SECONDS[scenario]


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
    section = Section("server", "Server", [])
    rows: list[list[str]] = []
    series: list[Series] = []
    games = scripts(_GAMES, seed=config.seed, snakes=config.snakes, timeout_ms=config.timeout_ms)
    for (mode, alone), chosen in _by_server(config).items():
        with _place(config, mode, alone=alone) as (url, metrics_url):
            found = asyncio.run(_measure(config, chosen, games, url, metrics_url))
        for scenario, outcome in found.items():
            _add(config, section, rows, mode, scenario, outcome)
            if outcome.sample.answers_ms:
                series.append(_series(scenario, outcome.sample))
    section.grid = Grid(["figure", "value", "unit", "noise", "samples", "goal"], rows)
    x = Axis("percentile of requests", zero=False, ticks=(50, 75, 90, 95, 99))
    section.plots.append(plots.lines("Latency of /move", series, x, Axis("ms", log=True)))
    return section


def _by_server(config: ServerConfig) -> dict[tuple[Mode, bool], list[Scenario]]:
    """Return the scenarios by the server that each wants: its mode, and whether on its own core."""
    found: dict[tuple[Mode, bool], list[Scenario]] = {}
    for scenario in config.scenario:
        mode = _SOAK_MODE if scenario == "soak" and not config.url else config.mode
        found.setdefault((mode, scenario == "overload"), []).append(scenario)
    return found


@contextlib.contextmanager
def _place(config: ServerConfig, mode: Mode, *, alone: bool) -> Iterator[tuple[str, str]]:
    """Give a running server; `alone` keeps it and this process on cores of their own.

    Else the generator, which needs a core for four times the saturation, takes what it measures.
    """
    if config.url:
        yield config.url, config.metrics_url
        return
    options = ["--mode", mode, *(["--model", config.model] if config.model else [])]
    mine = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
    theirs = {min(mine)} if alone and len(mine) > 1 else None
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(served(options, cpus=theirs))
        if theirs is not None:
            os.sched_setaffinity(0, mine - theirs)
            stack.callback(os.sched_setaffinity, 0, mine)
        yield place.url, config.metrics_url or place.metrics_url


async def _measure(
    config: ServerConfig, chosen: list[Scenario], games: list[Script], url: str, metrics_url: str
) -> dict[Scenario, Outcome]:
    player = parse_player(url)
    if not player.is_http:
        raise PlayerError(f"url (from --url): expected http://..., found {url!r}")
    checking = EngineClient(config.timeout_ms)
    try:
        await checking.check_index(player)
    finally:
        await checking.close()
    under = Load(Target(url), games, timeout_ms=config.timeout_ms, metrics_url=metrics_url)
    found: dict[Scenario, Outcome] = {}
    try:
        for scenario in chosen:
            found[scenario] = await _run(config, under, scenario)
    finally:
        under.close()
    return found


async def _run(config: ServerConfig, under: Load, scenario: Scenario) -> Outcome:
    if scenario == "single":
        return await under.single(config.requests)
    seconds = config.lasting(scenario)
    if scenario == "games":
        return await under.games(config.games, seconds)
    if scenario == "saturation":
        return await under.saturation(config.clients, seconds)
    if scenario == "soak":
        return await under.soak(config.soak_games, seconds)
    return await under.overload(seconds, config.clients)


def _add(
    config: ServerConfig,
    section: Section,
    rows: list[list[str]],
    mode: Mode,
    scenario: Scenario,
    outcome: Outcome,
) -> None:
    label = config.label or mode
    shared: dict[str, Any] = {
        "server": config.url or f"started here, mode {mode}",
        "timeout_ms": config.timeout_ms,
        "snakes": config.snakes,
        "seed": config.seed,
    }
    goals = _goals(config, mode)
    for f in outcome.figures:
        goal = {"goal": goals[f.name]} if f.name in goals and math.isfinite(f.value) else {}
        result = Result(
            name=f"server.{label}.{f.name}",
            value=f.value,
            unit=f.unit,
            better=f.better,
            samples=f.samples,
            params={**shared, **f.params, **goal},
        )
        section.results.append(result)
        rows.append(_row(result))
    if outcome.faults:
        section.failed = True
        counts = ", ".join(f"{n} {what}" for what, n in outcome.faults.items())
        why = f"not every answer was good: {counts}"
        section.missing.append(Missing(what=f"server, {scenario}", why=why))


def _goals(config: ServerConfig, mode: Mode) -> dict[str, float]:
    """Return the goals by the names of figures."""
    goals = {**_GOALS, "soak.p999_ms": config.timeout_ms - runtime.ServerConfig().margin_ms}
    return goals | _POLICY_GOALS if mode == "policy" else goals


def _row(result: Result) -> list[str]:
    noise = result.params.get("spread")
    noise_text = f"{noise:.1%}" if isinstance(noise, float) else ""
    row = [result.name, figure(result.value), result.unit, noise_text, f"{result.samples:,}"]
    goal = result.params.get("goal")
    if goal is None:
        return [*row, ""]
    lower = result.better == "lower"
    met = result.value <= goal if lower else result.value >= goal
    words = f"{'at most' if lower else 'at least'} {figure(goal)}"
    return [*row, f"{words}: {'met' if met else 'missed'}"]


def _series(scenario: Scenario, sample: Sample) -> Series:
    points = [(100 * share, sample.answered(share)) for share in _SHARES]
    return Series(scenario, [p for p in points if math.isfinite(p[1])])
