"""`snakekit bench inference`: every backend, precision, batch and number of threads there is.

All cases take turns in rounds, so that a busy moment of the machine hits none of them alone.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from snakekit import core
from snakekit.bench.inference_devices import (
    BACKENDS,
    DEFAULT,
    Refusal,
    check_label,
    name_of,
    open_backend,
)
from snakekit.bench.inference_report import section
from snakekit.bench.output import Output, OutputConfig, ReportError, progress, refuse
from snakekit.bench.report import Missing, Section
from snakekit.runtime.backends import Backend, BackendError, BackendOptions
from snakekit.runtime.contract import ModelCard
from snakekit.runtime.models import find_model
from snakekit.runtime.options import OptionError, add_options, load

_ENVIRONMENTS = 16
_WARM_UP = 3
_LEAST_CALLS = 2
_ALSO_SHIPPED = ("duel.onnx", "compact.onnx", "compact.int8.onnx")
"""Beside the default model."""

Observations = NDArray[np.uint8]


class InferenceConfig(OutputConfig, frozen=True, kw_only=True):
    """Options of `snakekit bench inference`."""

    model: Annotated[
        tuple[str, ...],
        Meta(description="ONNX files or names of shipped models; none: the shipped ones"),
    ] = ()
    backend: Annotated[
        tuple[Annotated[str, Meta(pattern=f"^({'|'.join(BACKENDS)})$")], ...],
        Meta(min_length=1, description="what to run them on"),
    ] = DEFAULT
    batch: Annotated[
        tuple[Annotated[int, Meta(ge=1, le=4096)], ...],
        Meta(min_length=1, max_length=32, description="batch sizes"),
    ] = (1, 2, 4, 8, 16, 32, 64, 128, 256)
    threads: Annotated[
        tuple[Annotated[int, Meta(ge=1, le=64)], ...],
        Meta(min_length=1, max_length=8, description="threads of one inference"),
    ] = (1, 2)
    seconds: Annotated[float, Meta(gt=0, le=3600, description="time for all cases together, s")] = (
        40.0
    )
    rounds: Annotated[int, Meta(ge=1, le=100, description="turns that every case gets")] = 7
    price_per_hour: Annotated[
        float, Meta(ge=0, le=10_000, description="price of the machine, for the cost of moves")
    ] = 0.0
    seed: Annotated[int, Meta(ge=0, description="start of all random numbers")] = 1
    spin: Annotated[bool, Meta(description="idle inference threads spin")] = False
    device: Annotated[int, Meta(ge=0, le=63, description="number of the GPU")] = 0
    engine_cache: Annotated[
        str | None, Meta(description="folder of TensorRT engines; none: beside the model")
    ] = None
    triton_url: Annotated[
        str, Meta(min_length=1, description="address of Triton Inference Server, gRPC")
    ] = "127.0.0.1:8001"

    @property
    def options(self) -> BackendOptions:
        """What of this the backends are told."""
        return BackendOptions(
            spin=self.spin,
            device=self.device,
            engine_cache=self.engine_cache,
            triton_url=self.triton_url,
            triton_timeout_ms=10_000,
        )


@dataclass
class Case:
    """One cell of the grid, and its times in seconds, a list a round."""

    model: str
    backend: str
    precision: str
    batch: int
    threads: int
    runner: Backend
    inputs: Observations
    wall: list[list[float]] = field(default_factory=list)
    cpu: list[list[float]] = field(default_factory=list)
    calls: int = 0
    """Calls so far, which decide on the inputs of the next."""

    def call(self) -> tuple[float, float]:
        """Run one batch; return its wall and CPU seconds."""
        # Another part each time, so that no single position decides.
        start = self.calls * self.batch % (len(self.inputs) - self.batch + 1)
        batch = self.inputs[start : start + self.batch]
        self.calls += 1
        before, begin = time.process_time(), time.perf_counter()
        self.runner.infer(batch)
        end, after = time.perf_counter(), time.process_time()
        return end - begin, after - before

    @property
    def name(self) -> str:
        """The dotted name, without the figure."""
        threads = "" if self.threads == 1 else f".t{self.threads}"
        return f"inference.{self.model}.{self.backend}.{self.precision}.b{self.batch}{threads}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_options(parser, InferenceConfig)


def run(args: argparse.Namespace) -> int:
    """Measure, show and write; 2 if nothing could be measured."""
    try:
        config = load(InferenceConfig, args, env_prefix="SNAKEKIT_BENCH_")
        output = Output(config)
        found = measure(config)
        if not found.results:
            raise OptionError("; ".join(f"{m.what}: {m.why}" for m in found.missing[:3]))
        return output.finish([found])
    except (OptionError, BackendError, ReportError, OSError) as error:
        return refuse("inference", error)


def measure(config: InferenceConfig) -> Section:
    """Measure the whole grid.

    Raises:
        BackendError: no such model.
        OptionError: a model named twice.
    """
    cases, missing = open_cases(config)
    runners = {id(c.runner): c.runner for c in cases}
    try:
        cases, slow = warm_up(cases, config.seconds / config.rounds)
        missing += slow
        turns(cases, config)
        cases, changed = still_labelled(cases)
        missing += changed
        return section(cases, missing, config.price_per_hour)
    finally:
        for runner in runners.values():
            runner.close()


def model_files(given: Sequence[str]) -> tuple[list[Path], list[Missing]]:
    """Return the files to measure: those named, or the shipped ones, of which one must be there.

    Raises:
        BackendError: no such file.
    """
    if given:
        return [find_model(name) for name in given], []
    path = find_model(None)
    others = [path.with_name(name) for name in _ALSO_SHIPPED]
    why = "no such file is shipped; make one with snakekit export"
    missing = [Missing(what=other.name, why=why) for other in others if not other.is_file()]
    return [path, *(other for other in others if other.is_file())], missing


def open_cases(config: InferenceConfig) -> tuple[list[Case], list[Missing]]:
    """Open every model on every backend with every number of threads.

    Raises:
        BackendError: no such model.
        OptionError: two models of one name and precision.
    """
    files, missing = model_files(config.model)
    cases: list[Case] = []
    taken: dict[tuple[str, str], Path] = {}
    for kind in config.backend:
        for path in files:
            for threads in config.threads if kind == "cpu" else (1,):
                try:
                    runner, card = open_backend(
                        kind, path, msgspec.structs.replace(config.options, threads=threads)
                    )
                except Refusal as refusal:
                    if refusal.model_at_fault:
                        raise BackendError(str(refusal)) from None
                    found = Missing(what=f"inference {kind}", why=str(refusal))
                    missing += [] if found in missing else [found]
                    break
                name = name_of(card.name)
                if taken.setdefault((name, card.precision), path) != path:
                    raise OptionError(
                        f"model: {path} and {taken[name, card.precision]} are both called "
                        f"{name} {card.precision}; expected different ones"
                    )
                inputs = observations(card, max(config.batch), config.seed)
                cases += [
                    Case(name, kind, card.precision, batch, threads, runner, inputs)
                    for batch in sorted(set(config.batch))
                ]
    return cases, missing


def observations(card: ModelCard, count: int, seed: int) -> Observations:
    """Return what a model sees of games of random safe moves, at least `count` observations."""
    width, height = (11, 11) if (11, 11) in card.boards or not card.boards else card.boards[0]
    snakes = max((n for n in card.snakes if n <= 4), default=2)
    env = core.VectorEnv(
        [core.Scenario(width, height, snakes)],
        count=_ENVIRONMENTS,
        seed=seed,
        # Observations of all seats are made from boards.
        encoder=0 if card.slots else card.encoder,
    )
    rng = np.random.default_rng(seed)
    kept: list[Observations] = []
    turn = 0
    while sum(map(len, kept)) < count + _ENVIRONMENTS:
        moves = np.where(env.masks, rng.random(env.masks.shape), -1).argmax(2).astype(np.int8)
        env.step(moves)
        turn += 1
        if turn % 5 == 0:
            kept.append(_seen(env, card))
    found = np.concatenate(kept)
    return np.ascontiguousarray(found[rng.permutation(len(found))])


def _seen(env: core.VectorEnv, card: ModelCard) -> Observations:
    """Return an observation of every living snake, or one of every board."""
    if not card.slots:
        return env.obs[env.alive].copy()
    boards = [env.state(game) for game in range(_ENVIRONMENTS)]
    return core.encode_all(boards, slots=card.slots)


def warm_up(cases: list[Case], round_seconds: float) -> tuple[list[Case], list[Missing]]:
    """Run every case a few times; return those that a round has time for, and why not the rest."""
    kept: list[Case] = []
    missing: list[Missing] = []
    share = round_seconds / max(len(cases), 1)
    slow: set[int] = set()
    for case in progress(cases, "warming up"):
        # Larger batches of a model that is too slow already need not be tried.
        if id(case.runner) not in slow:
            cost = min(case.call()[0] for _ in range(_WARM_UP))
            if case.batch == 1 or cost * _LEAST_CALLS <= 3 * share:
                kept.append(case)
                continue
            slow.add(id(case.runner))
            why = f"one call takes {cost * 1000:.0f} ms; give more --seconds"
        else:
            why = "a smaller batch takes too long already; give more --seconds"
        missing.append(Missing(what=case.name, why=why))
    return kept, missing


def still_labelled(cases: list[Case]) -> tuple[list[Case], list[Missing]]:
    """Return the cases whose backend still runs what it is called, and why not the rest."""
    kept: list[Case] = []
    missing: list[Missing] = []
    for case in cases:
        try:
            check_label(case.backend, case.runner)
            kept.append(case)
        except Refusal as refusal:
            missing.append(Missing(what=case.name, why=str(refusal)))
    return kept, missing


def turns(cases: list[Case], config: InferenceConfig) -> None:
    """Measure all cases in rounds, each round in another order."""
    rng = np.random.default_rng(config.seed)
    share = config.seconds / config.rounds / max(len(cases), 1)
    for _ in progress(range(config.rounds), "measuring"):
        for index in rng.permutation(len(cases)):
            case = cases[index]
            case.call()  # brings the caches back from the case before; not counted
            wall: list[float] = []
            cpu: list[float] = []
            end = time.perf_counter() + share
            while len(wall) < _LEAST_CALLS or time.perf_counter() < end:
                seconds, used = case.call()
                wall.append(seconds)
                cpu.append(used)
            case.wall.append(wall)
            case.cpu.append(cpu)
