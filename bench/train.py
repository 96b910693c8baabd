"""`snakekit bench train`: decisions learned from a second, update included, and where time goes."""

import argparse
import statistics
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from snakekit.bench.output import Output, OutputConfig, ReportError, progress, refuse
from snakekit.bench.report import Missing, Result, Section, noise_of
from snakekit.runtime.options import OptionError, add_options, load


class TrainConfig(OutputConfig, frozen=True, kw_only=True):
    """Options of `snakekit bench train`."""

    net: Annotated[Literal["compact", "article"], Meta(description="architecture")] = "compact"
    channels: Annotated[int, Meta(ge=1, le=512, description="of the compact net")] = 32
    blocks: Annotated[int, Meta(ge=1, le=64, description="of the compact net")] = 2
    scenario: Annotated[str, Meta(description="games, WIDTHxHEIGHTxSNAKES")] = "11x11x4"
    envs: Annotated[int, Meta(ge=1, le=65536, description="games side by side")] = 64
    steps: Annotated[int, Meta(ge=1, description="turns an iteration")] = 32
    epochs: Annotated[int, Meta(ge=1, description="times that each decision is learned")] = 2
    rounds: Annotated[int, Meta(ge=1, le=1000, description="iterations measured")] = 5
    threads: Annotated[int, Meta(ge=0, le=256, description="of torch, 0: a core each")] = 0
    device: Annotated[str, Meta(description="cpu, cuda or cuda:N")] = "cpu"
    precision: Annotated[Literal["fp32", "bf16"], Meta(description="of the net")] = "fp32"
    compile: Annotated[bool, Meta(description="torch.compile, on cuda only")] = False
    overlap: Annotated[bool, Meta(description="act and learn at once")] = False
    env_threads: Annotated[int, Meta(ge=1, le=256, description="threads of the games")] = 1
    seed: Annotated[int, Meta(ge=0, description="of weights and games")] = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_options(parser, TrainConfig)


def run(args: argparse.Namespace) -> int:
    """Measure, show and write."""
    try:
        config = load(TrainConfig, args, env_prefix="SNAKEKIT_BENCH_")
        return Output(config).finish([measure(config)])
    except (ValueError, OptionError, ReportError, OSError) as error:
        return refuse("train", error)


def measure(config: TrainConfig) -> Section:
    """Train some iterations after a first one that is not counted, with and without overlap.

    Raises:
        ValueError: an odd scenario, or a device that is not here.
    """
    title = "training"
    try:
        rounds, threads = _rounds(config, config.overlap)
    except ImportError as error:
        why = f"it needs the package {error.name}; run: pip install 'snakekit[train]'"
        return Section("train", title, [], [Missing(what="train.ppo", why=why)])
    others, _ = _rounds(config, not config.overlap)
    given = msgspec.structs.asdict(config)
    params = {
        name: given[name]
        for name in ("net", "scenario", "envs", "steps", "epochs", "device", "precision", "overlap")
    }
    if config.net == "compact":
        params |= {"channels": config.channels, "blocks": config.blocks}
    params["threads"] = threads
    with_overlap, without = (rounds, others) if config.overlap else (others, rounds)
    gain = _gain(with_overlap, without, params)
    return Section("train", title, [*_results(rounds, params), gain])


def _rounds(config: TrainConfig, overlap: bool) -> tuple[list[dict[str, float]], int]:
    """Return the figures of the measured iterations, and torch's threads."""
    from snakekit.trainer.ppo.config import PpoConfig
    from snakekit.trainer.ppo.training import Ppo

    given = msgspec.structs.asdict(config) | {"overlap": overlap}
    names = {f.name for f in msgspec.structs.fields(PpoConfig)} & given.keys()
    run = Ppo(
        PpoConfig(
            **{name: given[name] for name in names},
            scenarios=(config.scenario,),
            torch_threads=config.threads,
            gate_every=0,
            selfplay_share=1.0,
            # One more than are made: the last one would have nothing to act ahead for.
            iterations=config.rounds + 2,
        )
    )
    words = "training, acting ahead" if overlap else "training"
    try:
        run.iterate()
        return [run.iterate() for _ in progress(range(config.rounds), words)], run.threads
    finally:
        run.close()


def _gain(
    with_overlap: list[dict[str, float]], without: list[dict[str, float]], params: dict[str, Any]
) -> Result:
    """Return the ratio of the median speeds, of the same decisions in the same process."""
    fast, slow = (
        statistics.median(figures["decisions_per_s"] for figures in rounds)
        for rounds in (with_overlap, without)
    )
    known = {name: value for name, value in params.items() if name != "overlap"}
    return Result(
        name="train.ppo.overlap_gain",
        value=fast / slow,
        unit="times the speed without",
        better="higher",
        samples=len(with_overlap),
        params=known | {"with": round(fast, 1), "without": round(slow, 1)},
    )


def _results(rounds: list[dict[str, float]], params: dict[str, Any]) -> list[Result]:
    """Return the figures; the speed is the median of the rounds."""

    def result(name: str, key: str, unit: str, better: Literal["higher", "lower"]) -> Result:
        values = [figures[key] for figures in rounds]
        return Result(
            name=f"train.ppo.{name}",
            value=statistics.median(values),
            unit=unit,
            better=better,
            samples=len(values),
            params=params | noise_of(values),
        )

    for figures in rounds:
        figures["per_core"] = figures["decisions"] / figures["cpu_seconds"]
    return [
        result("decisions_per_s", "decisions_per_s", "decisions/s", "higher"),
        # Hardly depends on what else the machine does.
        result("decisions_per_cpu_s", "per_core", "decisions/s of CPU", "higher"),
        result("env_share", "env_share", "share of the time", "lower"),
        result("act_share", "act_share", "share of the time", "lower"),
        result("wait_s", "wait_seconds", "s", "lower"),
    ]
