"""`snakekit bench nash`: time of moves by equilibrium, of regret matching, and of training."""

import argparse
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from snakekit import core
from snakekit.bench.output import Output, OutputConfig, ReportError, progress, refuse
from snakekit.bench.report import Missing, Result, Section, noise_of, noise_of_share
from snakekit.bench.search import SIZES, fixed_positions
from snakekit.bench.tally import percentile
from snakekit.runtime.backends import Backend, BackendError, load_backend
from snakekit.runtime.contract import ModelCard
from snakekit.runtime.equilibrium import Equilibrium, Lookahead, Plans
from snakekit.runtime.options import OptionError, add_options, load
from snakekit.trainer import plots

WARM_UP = 5
_SHARES = (("p50", 0.5), ("p99", 0.99))
_GAMES = 64
_ITERATIONS = 1000


class NashBenchConfig(OutputConfig, frozen=True, kw_only=True):
    """Options of `snakekit bench nash`."""

    model: Annotated[
        str, Meta(description="ONNX file of a model for all seats; none: random weights")
    ] = ""
    answers: Annotated[
        int, Meta(ge=20, le=100_000, description="moves timed for each number of snakes")
    ] = 400
    plies: Annotated[int, Meta(ge=1, le=2, description="turns looked ahead")] = 1
    plans: Annotated[
        Plans, Meta(description="instead of a second turn plans of several, see snakekit serve")
    ] = "off"
    plan_turns: Annotated[int, Meta(ge=1, le=16, description="length of a plan, turns")] = 3
    rounds: Annotated[int, Meta(ge=0, le=1000, description="rounds of training timed; 0: none")] = 3
    seed: Annotated[int, Meta(ge=0, lt=2**31, description="start of all random numbers")] = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_options(parser, NashBenchConfig)


def run(args: argparse.Namespace) -> int:
    """Measure, show and write."""
    try:
        config = load(NashBenchConfig, args, env_prefix="SNAKEKIT_BENCH_")
        return Output(config).finish([measure(config)])
    except (OptionError, ReportError, BackendError, OSError) as error:
        return refuse("nash", error)


def measure(config: NashBenchConfig) -> Section:
    """Measure everything that the options ask for."""
    section = Section("nash", "Equilibria", [])
    _regret(section, config)
    for size, backend, card in _models(config, section):
        _answers(section, config, size, backend, card)
        backend.close()
    if config.rounds:
        _training(section, config)
    times = [r for r in section.results if r.unit == "ms"]
    if times:
        bars = [(r.name.removeprefix("nash."), [r.value]) for r in times]
        section.plots = [plots.bars("Time of a move by equilibrium", bars, ["ms"])]
    return section


def _regret(section: Section, config: NashBenchConfig) -> None:
    rng = np.random.default_rng(config.seed)
    payoff = rng.uniform(-1, 1, (_GAMES, 3, 3)).astype(np.float32)
    games = np.stack([payoff, -payoff], -1)
    taken = []
    for _ in range(20):
        begun = time.perf_counter()
        core.solve_stages(games, iterations=_ITERATIONS)
        taken.append((time.perf_counter() - begun) / _GAMES * 1e6)
    section.results.append(
        Result(
            name="nash.regret_1000_us",
            value=min(taken),
            unit="us",
            better="lower",
            samples=len(taken),
            params={"actions": "3x3", "threads": 1, **noise_of(taken)},
        )
    )


def _models(config: NashBenchConfig, section: Section) -> Iterator[tuple[str, Backend, ModelCard]]:
    """Yield size of the game, backend and card; random weights need the packages for export."""
    if config.model:
        for size, snakes in SIZES.items():
            backend, card = load_backend("cpu", Path(config.model))
            if not card.slots:
                raise OptionError(f"model: {card.name} answers for one seat, not for all")
            if snakes <= card.slots:
                yield size, backend, card
            else:
                backend.close()
        return
    try:
        from snakekit.export.pipeline import untrained_file
    except ImportError as error:
        why = f"needs the package {error.name}: pip install 'snakekit[export]', or --model FILE"
        section.missing.append(Missing(what="moves by equilibrium", why=why))
        return
    with tempfile.TemporaryDirectory() as folder:
        for size, snakes in SIZES.items():
            path = untrained_file("all-seat", config.seed, Path(folder), {"slots": snakes})
            yield size, *load_backend("cpu", path)


def _answers(
    section: Section, config: NashBenchConfig, size: str, backend: Backend, card: ModelCard
) -> None:
    look = Lookahead(plies=config.plies, plans=config.plans, plan_turns=config.plan_turns)
    solver = Equilibrium(backend, card, look)
    states = fixed_positions(SIZES[size], 16, config.seed)
    taken, leaves = [], []
    for index in progress(range(WARM_UP + config.answers), f"solving {size}"):
        begun = time.perf_counter()
        found = solver.solve(states[index % len(states)])
        taken.append((time.perf_counter() - begun) * 1000)
        leaves.append(found.leaves)
    taken = taken[WARM_UP:]
    parts = [taken[i::5] for i in range(5)]
    params: dict[str, Any] = {
        "model": card.name,
        "parameters": card.parameters,
        "board": "11x11",
        "threads": 1,
        "plies": config.plies,
        "plans": config.plans,
        "leaves": round(float(np.mean(leaves)), 1),
    }
    for name, share in _SHARES:
        section.results.append(
            Result(
                name=f"nash.{size}.{name}_ms",
                value=percentile(taken, share),
                unit="ms",
                better="lower",
                samples=len(taken),
                params={**params, **noise_of_share(parts, share)},
            )
        )


def _training(section: Section, config: NashBenchConfig) -> None:
    try:
        import torch

        from snakekit.trainer.nash.config import NashConfig
        from snakekit.trainer.nash.training import Nash
    except ImportError as error:
        why = f"needs the package {error.name}: pip install 'snakekit[train]'"
        section.missing.append(Missing(what="training", why=why))
        return
    torch.set_num_threads(1)
    options = NashConfig(pretrain=0, turns=16, seed=config.seed)
    run = Nash(options)
    with ThreadPoolExecutor(1, "games", torch.set_num_threads, (1,)) as pool:
        run.round(pool)  # the first one also waits for its own games
        done = progress(range(config.rounds), "training")
        rates = [run.round(pool)["positions_per_s"] for _ in done]
    section.results.append(
        Result(
            name="train.nash.states_per_s",
            value=float(np.median(rates)),
            unit="states/s",
            better="higher",
            samples=len(rates),
            params={
                "board": options.scenarios[0],
                "net": f"{options.blocks}x{options.channels}",
                "threads": 2,
                "reuse": options.reuse,
                **noise_of(rates),
            },
        )
    )
