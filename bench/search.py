"""`snakekit bench search`: speed and depth on fixed positions, and how well time is kept."""

import argparse
import statistics
import time
from typing import Annotated, Any, Literal

from msgspec import Meta

from snakekit import core
from snakekit.bench.output import Output, OutputConfig, ReportError, progress, refuse
from snakekit.bench.report import Result, Section, noise_of, noise_of_share
from snakekit.bench.tally import percentile
from snakekit.runtime.options import OptionError, add_options, load
from snakekit.trainer import plots
from snakekit.trainer.plots import Axis, Series

SIZES = {"duel": 2, "four": 4}
_BUDGET_MS = 100
_FIXED_DEPTH = {"duel": 10, "four": 5}
"""Turns that one thread and several search; some 50 ms for one."""
_FIRST_TURN, _LAST_TURN = 12, 60
_BEFORE = 8
"""Turns before the first death, so that it is not decided yet."""
_SHARES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)


class SearchConfig(OutputConfig, frozen=True, kw_only=True):
    """Options of `snakekit bench search`."""

    positions: Annotated[
        int, Meta(ge=1, le=1000, description="positions of each number of snakes")
    ] = 8
    rounds: Annotated[int, Meta(ge=1, le=1000, description="searches of each position")] = 5
    overshoot_searches: Annotated[
        int, Meta(ge=1, le=1_000_000, description="short searches that tell how time is kept")
    ] = 300
    limit_ms: Annotated[
        float, Meta(ge=1, le=10_000, description="time limit of the short searches, ms")
    ] = 20.0
    threads: Annotated[
        int, Meta(ge=2, le=256, description="threads whose gain over one is measured")
    ] = 2
    table_mb: Annotated[int, Meta(ge=1, le=4096, description="transposition table, MiB")] = 16
    seed: Annotated[int, Meta(ge=0, description="start of all random numbers")] = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_options(parser, SearchConfig)


def run(args: argparse.Namespace) -> int:
    """Measure, show and write."""
    try:
        config = load(SearchConfig, args, env_prefix="SNAKEKIT_BENCH_")
        return Output(config).finish([measure(config)])
    except (OptionError, ReportError, OSError) as error:
        return refuse("search", error)


def middle_of_game(snakes: int, seed: int) -> core.State | None:
    """Return a position with all snakes alive, some turns before the first dies.

    The game is played by greedy players. None where one dies early.
    """
    state = core.State.new_game(11, 11, [f"snake-{i}" for i in range(snakes)], seed)
    past: list[core.State] = []
    while state.turn < _LAST_TURN and len(state.living()) == snakes:
        past.append(state.copy())
        draw = seed * 1000 + state.turn * 8
        state.step([core.greedy_move(state, i, draw + i) for i in range(snakes)])
        state.spawn_food(seed)
    chosen = len(past) - 1 - _BEFORE
    # Chosen by the rules alone, so that a change of the search does not change its own test.
    return past[chosen] if chosen >= _FIRST_TURN else None


def fixed_positions(snakes: int, count: int, seed: int) -> list[core.State]:
    """Return `count` positions from the middle of seeded games."""
    found: list[core.State] = []
    number = seed * 100_000
    while len(found) < count:
        if (state := middle_of_game(snakes, number)) is not None:
            found.append(state)
        number += 1
    return found


def measure(config: SearchConfig) -> Section:
    """Measure depth, nodes and time."""
    section = Section("search", "Search", [])
    sets = {
        size: fixed_positions(n, config.positions, config.seed + n) for size, n in SIZES.items()
    }
    params = {"threads": 1, "table_mb": config.table_mb, "board": "11x11"}
    everything: list[core.SearchResult] = []
    rates: list[list[float]] = []
    for size, states in sets.items():
        rounds = [
            [_search(config, state) for state in states]
            for _ in progress(range(config.rounds), f"searching {size}")
        ]
        found = [r for one in rounds for r in one]
        everything += found
        rates.append([_rate(one) for one in rounds])
        medians = [statistics.median(r.depth for r in one) for one in rounds]
        depth = statistics.median(r.depth for r in found)
        own = {**params, "snakes": SIZES[size], "budget_ms": _BUDGET_MS}
        _add(
            section,
            f"depth_100ms.{size}",
            depth,
            "turns",
            "higher",
            noise_of(medians),
            len(found),
            own,
        )
        rate = _rate(found)
        _add(
            section,
            f"nodes_per_s.{size}",
            rate,
            "nodes/s",
            "higher",
            noise_of(rates[-1]),
            len(found),
            own,
        )
    both = [statistics.fmean(pair) for pair in zip(*rates, strict=True)]
    rate = _rate(everything)
    _add(section, "nodes_per_s", rate, "nodes/s", "higher", noise_of(both), len(everything), params)
    for size, states in sets.items():
        _speedup(section, config, size, states, params)
    late = overshoots(config, [s for states in sets.values() for s in states])
    _overshoot(section, config, late, params)
    return section


def _add(
    section: Section,
    name: str,
    value: float,
    unit: str,
    better: Literal["higher", "lower"],
    noise: dict[str, float],
    samples: int,
    params: dict[str, Any],
) -> None:
    section.results.append(
        Result(
            name=f"search.{name}",
            value=value,
            unit=unit,
            better=better,
            samples=samples,
            params={**params, **noise},
        )
    )


def _search(config: SearchConfig, state: core.State) -> core.SearchResult:
    # A fresh table each time: what another position left in it would change depth and speed.
    searcher = core.Searcher(config.table_mb)
    return searcher.search(state, 0, budget_us=_BUDGET_MS * 1000)


def _rate(results: list[core.SearchResult]) -> float:
    return sum(r.nodes for r in results) / max(sum(r.seconds for r in results), 1e-9)


def fixed_depth_seconds(config: SearchConfig, state: core.State, depth: int, threads: int) -> float:
    """Return the wall-clock time of the quickest of some searches to a fixed depth."""
    taken = []
    for _ in range(config.rounds):
        searcher = core.Searcher(config.table_mb)
        searcher.search(state, 0, max_depth=1, threads=threads)  # makes the threads
        begin = time.perf_counter()
        searcher.search(state, 0, max_depth=depth, threads=threads)
        taken.append(time.perf_counter() - begin)
    return min(taken)


def _speedup(
    section: Section,
    config: SearchConfig,
    size: str,
    states: list[core.State],
    params: dict[str, Any],
) -> None:
    depth = _FIXED_DEPTH[size]
    alone, together = (
        [
            fixed_depth_seconds(config, state, depth, threads)
            for state in progress(states, f"{threads} threads, {size}")
        ]
        for threads in (1, config.threads)
    )
    ratios = [one / several for one, several in zip(alone, together, strict=True)]
    own = {**params, "threads": config.threads, "snakes": SIZES[size], "depth": depth}
    _add(
        section,
        f"speedup.{size}",
        sum(alone) / sum(together),
        "x",
        "higher",
        noise_of(ratios),
        len(states),
        own,
    )


def overshoots(config: SearchConfig, states: list[core.State]) -> list[float]:
    """Return by how many ms each short search came home too late; 0 for those in time."""
    searcher = core.Searcher(config.table_mb)
    late = []
    for index in progress(range(config.overshoot_searches), "keeping time"):
        state = states[index % len(states)]
        begin = time.perf_counter()
        searcher.search(state, 0, budget_us=int(config.limit_ms * 1000))
        taken = (time.perf_counter() - begin) * 1000
        late.append(max(0.0, taken - config.limit_ms))
    return late


def _overshoot(
    section: Section, config: SearchConfig, late: list[float], params: dict[str, Any]
) -> None:
    own = {**params, "limit_ms": config.limit_ms}
    size = max(1, len(late) // 5)
    parts = [late[i : i + size] for i in range(0, len(late), size)]
    for name, share in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999)):
        value, noise = percentile(late, share), noise_of_share(parts, share)
        _add(section, f"overshoot_{name}_ms", value, "ms", "lower", noise, len(late), own)
    depths = [r for r in section.results if ".depth_" in r.name]
    section.plots = [
        plots.bars(
            f"Depth reached in {_BUDGET_MS} ms, median",
            [(r.name.rsplit(".", 1)[1], [r.value]) for r in depths],
            ["turns"],
        ),
        plots.lines(
            f"How late searches of {config.limit_ms:g} ms come home",
            [Series("searches", [(100 * s, percentile(late, s)) for s in _SHARES])],
            Axis("percentile", zero=False, ticks=(50, 75, 90, 95, 99)),
            Axis("ms beyond the limit"),
        ),
    ]
