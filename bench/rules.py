"""`snakekit bench rules` and `bench encoder`: what one thread does in a second, and exactness.

Throughput is the best of several windows, since other work on the machine only ever slows one
down; the load is stated beside it. Instructions are the figure to compare between commits.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.progress import track
from rich.table import Table

from snakekit import core
from snakekit.bench.corpus import CorpusError, differences, read
from snakekit.bench.counts import UNITS, CountError, Counter
from snakekit.bench.report import Result, write_report
from snakekit.runtime.options import OptionError, add_options, load

_SHOWN = 5
_GAMES = 64
_STEPS = 200


class RulesConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Options of `snakekit bench rules` and `snakekit bench encoder`."""

    windows: Annotated[int, Meta(ge=1, le=1000, description="windows to take the best of")] = 7
    seconds: Annotated[float, Meta(gt=0, le=60, description="length of a window, s")] = 0.3
    seed: Annotated[int, Meta(ge=0, description="start of all random numbers")] = 1
    counts: Annotated[bool, Meta(description="count instructions with callgrind (a minute)")] = (
        False
    )
    verify: Annotated[
        str, Meta(description="recorded turns to reproduce instead, JSON Lines, may be gzipped")
    ] = ""
    json: Annotated[str, Meta(description="file for the figures as JSON")] = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_options(parser, RulesConfig)


def run(args: argparse.Namespace) -> int:
    """Measure and print, or with `--verify` compare and return 1 on mismatches."""
    try:
        config = load(RulesConfig, args, env_prefix="SNAKEKIT_BENCH_")
        if config.verify:
            return verify(Path(config.verify))
        measure = measure_encoder if args.measure == "encoder" else measure_rules
        results, notes = measure(config)
        _print(results, notes)
        if config.json:
            write_report(Path(config.json), results)
    except (OptionError, CorpusError, OSError) as error:
        print(f"snakekit bench {args.measure}: {error}", file=sys.stderr)
        return 2
    return 0


def verify(path: Path) -> int:
    """Compare the turns of `path`; print the first mismatches and `N lines, M mismatches`."""
    count = wrong = 0
    for number, line in read(path):
        count += 1
        found = differences(line)
        if not found:
            continue
        wrong += 1
        if wrong <= _SHOWN:
            print(
                f"line {number}: {line.game} turn {line.turn}, {line.ruleset}, map {line.map}, "
                f"{line.width}x{line.height}, moves {line.moves}"
            )
            for text in found:
                print(f"  {text}")
    print(f"{count} lines, {wrong} mismatches")
    return 1 if wrong else 0


def _load() -> float:
    return os.getloadavg()[0]


def recorded_moves(scenario: core.Scenario, seed: int) -> list[NDArray[np.int8]]:
    """Return random safe moves for `_STEPS` turns of `_GAMES` games, to be played again."""
    env = core.VectorEnv([scenario], count=_GAMES, seed=seed, encoder=0)
    rng = np.random.default_rng(seed)
    moves = []
    for _ in range(_STEPS):
        moves.append(np.where(env.masks, rng.random(env.masks.shape), -1).argmax(2).astype(np.int8))
        env.step(moves[-1])
    return moves


def env_rate(config: RulesConfig, encoder: int, threads: int) -> float:
    """Return turns per second of 11x11 games of four snakes, with their observations."""
    scenario = core.Scenario(11, 11, 4)
    moves = recorded_moves(scenario, config.seed)
    best = 0.0
    for _ in range(config.windows):
        env = core.VectorEnv(
            [scenario], count=_GAMES, seed=config.seed, encoder=encoder, threads=threads
        )
        begin = time.perf_counter()
        for move in moves:
            env.step(move)
        best = max(best, _GAMES * len(moves) / (time.perf_counter() - begin))
    return best


def measure_rules(config: RulesConfig) -> tuple[list[Result], list[str]]:
    """Return the figures of rules and environments, and notes about what could not be measured."""
    results: list[Result] = []
    notes: list[str] = []

    def add(name: str, value: float, unit: str, **params: Any) -> None:
        better = "lower" if unit in ("KiB", "instructions") else "higher"
        results.append(
            Result(
                name=name,
                value=value,
                unit=unit,
                better=better,  # type: ignore[arg-type]
                samples=config.windows,
                params={"board": "11x11", "threads": 1, "load": _load(), **params},
            )
        )

    for snakes in (2, 4):
        rate = 0.0
        for _ in range(config.windows):
            turns, seconds = core.measure_turns(11, 11, snakes, config.seed, seconds=config.seconds)
            rate = max(rate, turns / seconds)
        suffix = "" if snakes == 4 else ".duel"
        add(f"rules.turns_per_s{suffix}", rate, "turns/s", snakes=snakes, moves="recorded")
    steps = {}
    for encoder in (0, 1, 2):
        steps[encoder] = env_rate(config, encoder, 1)
        suffix = {0: ".bare", 1: "", 2: ".v2"}[encoder]
        add(f"env.steps_per_s{suffix}", steps[encoder], "turns/s", snakes=4, encoder=encoder)
    cores = len(os.sched_getaffinity(0))
    if cores >= 2:
        ratio = env_rate(config, 1, 2) / steps[1]
        add("env.scaling_2_threads", ratio, "x", snakes=4, encoder=1, threads=2)
    else:
        notes.append("env.scaling_2_threads: only one core here")
    env = core.VectorEnv([core.Scenario(11, 11, 4)], count=2, seed=0, encoder=1)
    add("env.memory_per_game", env.bytes_per_game / 1024, "KiB", snakes=4, encoder=1)
    if config.counts:
        _count(["rules"], results, notes)
    return results, notes


def encoder_time(config: RulesConfig, version: int) -> tuple[float, int]:
    """Return the best time in us to encode all living seats of a state, and how many states."""
    env = core.VectorEnv([core.Scenario(11, 11, 4)], count=_GAMES, seed=config.seed, encoder=0)
    rng = np.random.default_rng(config.seed)
    states = []
    for turn in range(_STEPS):
        env.step(np.where(env.masks, rng.random(env.masks.shape), -1).argmax(2).astype(np.int8))
        if turn % 10 == 0:
            states += [s for g in range(_GAMES) if len((s := env.state(g)).living()) == 4]
    rate: Callable[[], float] = lambda: core.measure_encoder(  # noqa: E731
        states, version, seconds=config.seconds
    )
    return min(rate() for _ in range(config.windows)) * 1e6, len(states)


def measure_encoder(config: RulesConfig) -> tuple[list[Result], list[str]]:
    """Return the time of observations of one state with four living seats, and notes."""
    results: list[Result] = []
    notes: list[str] = []
    for version in (1, 2):
        value, states = encoder_time(config, version)
        results.append(
            Result(
                name=f"encoder.v{version}.us_per_state",
                value=value,
                unit="us",
                better="lower",
                samples=config.windows,
                params={
                    "board": "11x11",
                    "seats": 4,
                    "threads": 1,
                    "states": states,
                    "load": _load(),
                },
            )
        )
    if config.counts:
        _count(["v1", "v2"], results, notes)
    return results, notes


def _count(whats: list[str], results: list[Result], notes: list[str]) -> None:
    """Add counted instructions, or a note that says why there are none."""
    try:
        with Counter() as counter:
            for what in track(whats, description="counting instructions", transient=True):
                value, units = counter.count(what)
                results.append(
                    Result(
                        name=f"counts.{what}.instructions",
                        value=value,
                        unit="instructions",
                        better="lower",
                        samples=units,
                        params={"what": UNITS[what]},
                    )
                )
    except CountError as error:
        notes.append(f"counts: {error}")


def _print(results: list[Result], notes: list[str]) -> None:
    table = Table(title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("figure")
    table.add_column("value", justify="right")
    table.add_column("unit")
    table.add_column("load", justify="right")
    for r in results:
        load_text = f"{r.params['load']:.1f}" if "load" in r.params else ""
        value = f"{r.value:,.0f}" if r.value >= 1000 else f"{r.value:.2f}"
        table.add_row(r.name, value, r.unit, load_text)
    console = Console()
    console.print(table)
    for note in notes:
        console.print(f"not measured: {note}")
