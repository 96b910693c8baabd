"""`snakekit bench all`: every measure one after the other, in one report."""

import argparse
from collections.abc import Callable
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace
from rich.console import Console

from snakekit.bench import inference, nash, rules, search, server, train
from snakekit.bench.output import Output, OutputConfig, ReportError, refuse
from snakekit.bench.players import PlayerError
from snakekit.bench.report import Missing, Section
from snakekit.bench.served import ServedError
from snakekit.runtime.backends import BackendError
from snakekit.runtime.options import OptionError, add_options, load

MEASURES = ("rules", "encoder", "inference", "search", "nash", "server", "train")


class AllConfig(OutputConfig, frozen=True, kw_only=True):
    """Options of `snakekit bench all`."""

    quick: Annotated[
        bool, Meta(description="seconds instead of minutes: shows that all works, not how fast")
    ] = False
    only: Annotated[
        tuple[Annotated[str, Meta(pattern=f"^({'|'.join(MEASURES)})$")], ...],
        Meta(min_length=1, description="measures to take"),
    ] = MEASURES
    model: Annotated[
        tuple[str, ...],
        Meta(description="ONNX files or names of shipped models; none: the shipped ones"),
    ] = ()
    price_per_hour: Annotated[
        float, Meta(ge=0, le=10_000, description="price of the machine, for the cost of moves")
    ] = 0.0
    seed: Annotated[int, Meta(ge=0, description="start of all random numbers")] = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_options(parser, AllConfig)


def run(args: argparse.Namespace) -> int:
    """Measure all, show and write one report."""
    try:
        config = load(AllConfig, args, env_prefix="SNAKEKIT_BENCH_")
        output = Output(config)
        if config.model:
            inference.model_files(config.model)
        console = Console(stderr=True)
        sections = []
        for name, take in _measures(config).items():
            if name in config.only:
                console.print(f"measuring {name}", style="dim")
                sections.append(_taken(name, take))
                output.sample()
        return output.finish(sections)
    except (OptionError, ReportError, BackendError, OSError) as error:
        return refuse("all", error)


def _measures(config: AllConfig) -> dict[str, Callable[[], Section]]:
    first = config.model[0] if config.model else ""
    core = rules.RulesConfig(seed=config.seed)
    grid = inference.InferenceConfig(
        seed=config.seed, model=config.model, price_per_hour=config.price_per_hour
    )
    searches = search.SearchConfig(seed=config.seed)
    equilibria = nash.NashBenchConfig(seed=config.seed)
    requests = server.ServerConfig(seed=config.seed, model=first)
    learning = train.TrainConfig(seed=config.seed)
    if config.quick:
        core = replace(core, windows=3, seconds=0.02)
        grid = replace(grid, seconds=1.0, rounds=3, batch=(1, 8), threads=(1,))
        searches = replace(searches, positions=1, rounds=3, overshoot_searches=5)
        equilibria = replace(equilibria, model="duel", answers=20, rounds=0)
        learning = replace(learning, channels=8, blocks=1, envs=4, steps=8, rounds=3)
        requests = replace(requests, requests=30, seconds=0.3, games=4, clients=4)
    return {
        "rules": lambda: rules.measure_rules(core),
        "encoder": lambda: rules.measure_encoder(core),
        "inference": lambda: inference.measure(grid),
        "search": lambda: search.measure(searches),
        "nash": lambda: nash.measure(equilibria),
        "server": lambda: server.measure(requests),
        "train": lambda: train.measure(learning),
    }


def _taken(name: str, take: Callable[[], Section]) -> Section:
    """Measure; what is not possible here leaves a section that says why."""
    try:
        return take()
    except (BackendError, PlayerError, ServedError) as error:
        title = name.capitalize()
        return Section(name, title, [], [Missing(what=name, why=str(error))], failed=True)
