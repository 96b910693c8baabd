"""`snakekit bench rules` and `bench encoder`: what one thread does in a second, and exactness.

Throughput is the best of several windows, since other work on the machine only ever slows one
down; the load is stated beside it. Instructions are the figure to compare between commits.
"""

import argparse
import os
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from snakekit import core
from snakekit.bench.corpus import CorpusError, differences, read
from snakekit.bench.counts import UNITS, Counter, CountError
from snakekit.bench.output import Output, OutputConfig, ReportError, progress, refuse
from snakekit.bench.report import Missing, Result, Section, noise_of
from snakekit.runtime.options import OptionError, add_options, load
from snakekit.trainer import plots

_SHOWN = 5
_GAMES = 64
_STEPS = 200


class RulesConfig(OutputConfig, frozen=True, kw_only=True):
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_options(parser, RulesConfig)


def run(args: argparse.Namespace) -> int:
    """Measure and print, or with `--verify` compare and return 1 on mismatches."""
    try:
        config = load(RulesConfig, args, env_prefix="SNAKEKIT_BENCH_")
        if config.verify:
            return verify(Path(config.verify))
        output = Output(config)
        measure = measure_encoder if args.measure == "encoder" else measure_rules
        return output.finish([measure(config)])
    except (OptionError, CorpusError, ReportError, OSError) as error:
        return refuse(args.measure, error)


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


def env_rates(config: RulesConfig, encoder: int, threads: int) -> list[float]:
    """Return a window's turns per second of 11x11 games of four snakes, with observations."""
    scenario = core.Scenario(11, 11, 4)
    moves = recorded_moves(scenario, config.seed)
    rates = []
    for _ in range(config.windows):
        env = core.VectorEnv(
            [scenario], count=_GAMES, seed=config.seed, encoder=encoder, threads=threads
        )
        begin = time.perf_counter()
        for move in moves:
            env.step(move)
        rates.append(_GAMES * len(moves) / (time.perf_counter() - begin))
    return rates


def _result(
    config: RulesConfig, name: str, value: float, unit: str, values: list[float], **params: Any
) -> Result:
    noise = noise_of(values) if values else {"spread": 0.0}
    return Result(
        name=name,
        value=value,
        unit=unit,
        better="lower" if unit in ("KiB", "us") else "higher",
        samples=max(len(values), 1),
        params={"board": "11x11", "threads": 1, "load": _load(), **noise, **params},
    )


def measure_rules(config: RulesConfig) -> Section:
    """Return the figures of rules and environments."""
    section = Section("rules", "Rules and environments", [])

    def add(name: str, value: float, unit: str, values: list[float], **params: Any) -> None:
        section.results.append(_result(config, name, value, unit, values, **params))

    for snakes in (2, 4):
        rates = []
        for _ in range(config.windows):
            turns, seconds = core.measure_turns(11, 11, snakes, config.seed, seconds=config.seconds)
            rates.append(turns / seconds)
        suffix = "" if snakes == 4 else ".duel"
        add(f"rules.turns_per_s{suffix}", max(rates), "turns/s", rates, snakes=snakes)
    steps = {}
    for encoder in (0, 1, 2):
        steps[encoder] = env_rates(config, encoder, 1)
        suffix = {0: ".bare", 1: "", 2: ".v2"}[encoder]
        add(
            f"env.steps_per_s{suffix}",
            max(steps[encoder]),
            "turns/s",
            steps[encoder],
            snakes=4,
            encoder=encoder,
        )
    if len(os.sched_getaffinity(0)) >= 2:
        both = env_rates(config, 1, 2)
        ratios = [two / one for two, one in zip(both, steps[1], strict=True)]
        ratio = max(both) / max(steps[1])
        add("env.scaling_2_threads", ratio, "x", ratios, snakes=4, encoder=1, threads=2)
    else:
        section.missing.append(Missing(what="env.scaling_2_threads", why="only one core here"))
    env = core.VectorEnv([core.Scenario(11, 11, 4)], count=2, seed=0, encoder=1)
    add("env.memory_per_game", env.bytes_per_game / 1024, "KiB", [], snakes=4, encoder=1)
    shown = [r for r in section.results if r.unit == "turns/s"]
    section.plots.append(
        plots.bars(
            "One thread",
            [(r.name, [r.value]) for r in shown],
            ["turns per second"],
            log=True,
        )
    )
    if config.counts:
        _count(["rules"], section)
    return section


def encoder_times(config: RulesConfig, version: int) -> tuple[list[float], int]:
    """Return each window's time in us to encode all seats of a state, and how many states."""
    env = core.VectorEnv([core.Scenario(11, 11, 4)], count=_GAMES, seed=config.seed, encoder=0)
    rng = np.random.default_rng(config.seed)
    states = []
    for turn in range(_STEPS):
        env.step(np.where(env.masks, rng.random(env.masks.shape), -1).argmax(2).astype(np.int8))
        if turn % 10 == 0:
            states += [s for g in range(_GAMES) if len((s := env.state(g)).living()) == 4]
    times = [
        core.measure_encoder(states, version, seconds=config.seconds) * 1e6
        for _ in range(config.windows)
    ]
    return times, len(states)


def measure_encoder(config: RulesConfig) -> Section:
    """Return the time of observations of one state with four living seats; v3 is one for all."""
    section = Section("encoder", "Observation encoder", [])
    for version in (1, 2, 3):
        times, states = encoder_times(config, version)
        name = f"encoder.v{version}.us_per_state"
        found = _result(config, name, min(times), "us", times, seats=4, states=states)
        section.results.append(found)
    section.plots.append(
        plots.bars(
            "Time to encode four seats of one state",
            [(r.name, [r.value]) for r in section.results],
            ["microseconds"],
        )
    )
    if config.counts:
        _count(["v1", "v2", "v3"], section)
    return section


def _count(kinds: list[str], section: Section) -> None:
    """Add counted instructions, or say why there are none."""
    try:
        with Counter() as counter:
            for what in progress(kinds, "counting instructions"):
                value, units = counter.instructions(what)
                section.results.append(
                    Result(
                        name=f"counts.{what}.instructions",
                        value=value,
                        unit="instructions",
                        better="lower",
                        samples=units,
                        params={"what": UNITS[what], "spread": 0.0},
                    )
                )
    except CountError as error:
        section.missing.append(Missing(what="counts", why=str(error)))
