"""`snakekit bench tune`: CMA-ES over the evaluation's weights, then a match of new against old."""

import argparse
import importlib.util
import itertools
import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from snakekit.bench.output import refuse, show
from snakekit.bench.report import Grid, Result, Section, environment, write_report
from snakekit.bench.tune.evolve import evolve, strategy
from snakekit.bench.tune.options import TuneConfig
from snakekit.bench.tune.space import Space, all_weights
from snakekit.bench.tune.store import Folder, Plan, TuneError
from snakekit.bench.weights import read_weights
from snakekit.core import TERMS, self_play
from snakekit.runtime.options import OptionError, add_options, load

_VALIDATION_SEED = 1 << 40
_CHUNK = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_options(parser, TuneConfig)


def run(args: argparse.Namespace) -> int:
    """Tune and validate; 1 where the match does not show the new weights to be stronger."""
    try:
        config = load(TuneConfig, args, env_prefix="SNAKEKIT_TUNE_")
        start = _check(config)
        folder = Folder(
            Path(config.out), Plan(options=config.deciding(), start=start), resume=config.resume
        )
        weights = _tune(config, folder, start)
        return _validate(config, folder, weights, start)
    except (OptionError, TuneError, OSError) as error:
        return refuse("tune", error)
    except KeyboardInterrupt:
        Console(stderr=True).print(f"interrupted; go on with --resume --out {args.out}")
        return 1


def _check(config: TuneConfig) -> dict[str, int]:
    """Return the weights to begin with."""
    if importlib.util.find_spec("cma") is None:
        raise OptionError("tuning needs the package cma; run: pip install 'snakekit[bench]'")
    for name in config.terms:
        if name not in TERMS:
            raise OptionError(f"terms: {name!r} is unknown, expected some of {', '.join(TERMS)}")
    if not config.start:
        return all_weights({})
    try:
        return all_weights(read_weights(Path(config.start)))
    except ValueError as error:
        raise OptionError(f"start: {config.start}: {error}") from None


def _progress() -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=console,
        disable=not console.is_terminal,
    )


def _tune(config: TuneConfig, folder: Folder, start: dict[str, int]) -> dict[str, int]:
    space = Space(config.table, config.terms, start, config.seed)
    known = folder.scores()
    done: list[list[float]] = []
    weights = dict(start)
    with _progress() as shown:
        total = config.generations
        steps = shown.add_task("generations", total=total, completed=0, note="")
        games = shown.add_task("candidates", total=config.population, note="")

        def score(generation: int, candidate: dict[str, int]) -> float:
            points = _play(
                config,
                candidate,
                start,
                first=generation * config.starts,
                starts=config.starts,
                nodes=config.nodes,
                seed=config.seed,
            )
            shown.advance(games)
            return float(points.mean())

        found = strategy(space, sigma=config.sigma, population=config.population, seed=config.seed)
        for scores, mean in itertools.islice(evolve(space, found, score, known), total):
            done.append(scores)
            weights = space.weights(mean)
            if len(done) > len(known):
                folder.keep(done, weights)
            shown.reset(games)
            note = f"mean {np.mean(scores):.3f}, sigma {found.sigma:.3f}"
            shown.update(steps, completed=len(done), note=note)
    return weights


def _play(
    config: TuneConfig,
    a: dict[str, int],
    b: dict[str, int],
    *,
    first: int,
    starts: int,
    nodes: int,
    seed: int,
) -> NDArray[np.float32]:
    return self_play(
        a,
        b,
        first=first,
        starts=starts,
        snakes=config.snakes,
        max_nodes=nodes,
        max_turns=config.max_turns,
        seed=seed,
        threads=config.lanes,
    )


def _validate(
    config: TuneConfig, folder: Folder, weights: dict[str, int], start: dict[str, int]
) -> int:
    if config.validate == 0:
        folder.write_weights({"weights": weights})
        return 0
    blocks: list[float] = []
    games = 0
    with _progress() as shown:
        task = shown.add_task("new against old", total=config.validate, note="")
        while len(blocks) < config.validate:
            points = _play(
                config,
                weights,
                start,
                first=len(blocks),
                starts=min(_CHUNK * config.lanes, config.validate - len(blocks)),
                nodes=config.validate_nodes,
                # Other starts than those that the weights were chosen by.
                seed=config.seed + _VALIDATION_SEED,
            )
            blocks += points.mean(axis=1).tolist()
            games += points.size
            low, high = interval(blocks)
            shown.update(
                task, completed=len(blocks), note=f"{np.mean(blocks):.3f} ({low:.3f}..{high:.3f})"
            )
    low, high = interval(blocks)
    gain = {"points": float(np.mean(blocks)), "low": low, "high": high, "games": games}
    gain |= {"nodes": config.validate_nodes, "snakes": config.snakes}
    folder.write_weights({"weights": weights, "against_old": gain})
    _show(config, weights, start, gain)
    return 0 if low > 0.5 else 1


def interval(blocks: list[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean of independent starts."""
    mean = float(np.mean(blocks))
    if len(blocks) < 2:
        return 0.0, 1.0
    half = 1.96 * float(np.std(blocks, ddof=1)) / math.sqrt(len(blocks))
    return max(0.0, mean - half), min(1.0, mean + half)


def _show(
    config: TuneConfig, weights: dict[str, int], start: dict[str, int], gain: dict[str, float]
) -> None:
    changed = [(n, start[n], v) for n, v in weights.items() if v != start[n]]
    rows = [[name, str(old), str(new)] for name, old, new in changed]
    params = {k: gain[k] for k in ("low", "high", "nodes", "snakes")}
    result = Result(
        name=f"tune.{config.mode}.points",
        value=gain["points"],
        unit="points",
        better="higher",
        samples=int(gain["games"]),
        params=params,
    )
    show(Section("weights", "Weights", [], grid=Grid(["weight", "old", "new"], rows, words=1)))
    verdict = "stronger" if gain["low"] > 0.5 else "not shown to be stronger"
    Console().print(
        f"new against old: {gain['points']:.3f} points a game, 95 % {gain['low']:.3f} to "
        f"{gain['high']:.3f}, {int(gain['games'])} games at {config.validate_nodes} nodes: "
        f"{verdict}",
        soft_wrap=True,
    )
    if config.json:
        write_report(Path(config.json), [result], environment=environment())
