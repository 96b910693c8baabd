"""Training in rounds: while one thread plays the next positions, this one learns from the last.

A round ends when both are done. What is played is a pure function of the seed, the round's number,
the weights at its start and where the games were, so equal seeds give equal weights, and a run
that was killed and resumed continues bit for bit on one machine. The price is some waiting, which
the figures show as `wait_seconds`.
"""

import copy
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray

from snakekit.trainer import checkpoint as store
from snakekit.trainer.card import make_card, take_over
from snakekit.trainer.checkpoint import Checkpoint, CheckpointError
from snakekit.trainer.generate import Cancelled
from snakekit.trainer.league import Weights
from snakekit.trainer.model import Net, build
from snakekit.trainer.scenario import Scenario, parse_all

Stop = Callable[[], bool]
Say = Callable[[int, str, str], None]
"""Hears (step, words, kind) of what happens between rounds."""


def silent(step: int, words: str, kind: str) -> None:
    """Hear nothing; a `Say`."""


class RoundsConfig(Protocol):
    """What the options of every method have."""

    @property
    def name(self) -> str:
        """Of the model."""
        ...

    @property
    def seed(self) -> int:
        """Of everything random."""
        ...

    @property
    def scenarios(self) -> tuple[str, ...]:
        """Kinds of games."""
        ...

    @property
    def steps(self) -> int:
        """Updates in all."""
        ...

    @property
    def checkpoint_seconds(self) -> float:
        """Time between checkpoints."""
        ...

    def net_options(self) -> dict[str, int]:
        """Return the options of the net."""
        ...


class Positions(Protocol):
    """The positions in use."""

    def __len__(self) -> int:
        """Return how many there are."""
        ...

    def pack(self) -> dict[str, NDArray[Any]]:
        """Return them as named arrays."""
        ...

    def unpack(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Put them back; raises ValueError or KeyError where they do not fit."""
        ...


Config = TypeVar("Config", bound=RoundsConfig)
Held = TypeVar("Held", bound=Positions)
Played = TypeVar("Played")


class Rounds(ABC, Generic[Config, Held, Played]):
    """The state of one training run; `round` advances it."""

    METHOD: ClassVar[str]
    CONFIG: ClassVar[type[msgspec.Struct]]

    def __init__(
        self, config: Config, architecture: str, replay: Held, start: Checkpoint | None
    ) -> None:
        """Begin from random weights, or from those of `start`, a checkpoint of the same net.

        Raises:
            CheckpointError: `start` has another net.
        """
        self.config = config
        self.architecture = architecture
        self.scenarios: tuple[Scenario, ...] = parse_all(config.scenarios)
        torch.manual_seed(config.seed)
        self.model: Net = build(architecture, config.net_options())
        self.started_from = "" if start is None else self._adopt(start)
        self.replay = replay
        self.batches = np.random.default_rng([config.seed, 2])
        self.step = 0
        self.rounds = 0
        self.positions = 0
        self.seconds = 0.0
        self.optimizer = self._optimizer()

    @abstractmethod
    def _optimizer(self) -> torch.optim.Optimizer:
        """Return the optimizer of `model`."""

    @abstractmethod
    def _ahead(self, number: int) -> Callable[[Stop], tuple[Played, dict[str, float]]]:
        """Return what plays round `number` in another thread, with the weights of now.

        Round 0 comes before anything is learned.
        """

    @abstractmethod
    def _accept(self, played: Played) -> int:
        """Keep what was played; return how many positions that is."""

    @abstractmethod
    def _updates(self) -> int:
        """Return how many updates this round wants."""

    @abstractmethod
    def _update(self) -> dict[str, float]:
        """Make one update from `batches` and `replay`, without counting it; return its figures.

        Raises:
            FloatingPointError: gradients are not finite.
        """

    def _begin(self, stop: Stop, say: Say) -> dict[str, float]:
        """Do what comes before a round, such as a gate; return its figures."""
        return {}

    def _adopt(self, start: Checkpoint) -> str:
        return take_over(self.model, start, self.architecture, self.config.net_options())

    @property
    def done(self) -> bool:
        """Whether all updates have been made."""
        return self.step >= self.config.steps

    def weights(self) -> Weights:
        """Return a copy of the weights that play and are saved."""
        return store.weights_of(self.model)

    def round(
        self, pool: ThreadPoolExecutor, stop: Stop = lambda: False, say: Say = silent
    ) -> dict[str, float]:
        """Train while the next positions are played in `pool`; return figures.

        The first round has nothing to train on and waits for its own games.

        Raises:
            Cancelled: `stop()` turned true; the state is that of the round's start.
            FloatingPointError: gradients are not finite; the same.
        """
        begun = time.perf_counter()
        before = self._snapshot()
        try:
            figures = self._begin(stop, say)
            if len(self.replay) == 0:
                first, _ = pool.submit(self._ahead(0), stop).result()
                self.positions += self._accept(first)
            ahead = pool.submit(self._ahead(self.rounds + 1), stop)
            figures |= self._train(ahead, stop)
            trained = time.perf_counter()
            played, found = ahead.result()
        except (Cancelled, FloatingPointError):
            self._rewind(before)
            raise
        waited = time.perf_counter() - trained
        fresh = self._accept(played)
        self.positions += fresh
        self.rounds += 1
        spent = time.perf_counter() - begun
        self.seconds += spent
        return {
            **figures,
            **found,
            "round": float(self.rounds),
            "replay": float(len(self.replay)),
            "positions_total": float(self.positions),
            "positions_per_s": fresh / spent,
            "seconds": self.seconds,
            "train_seconds": trained - begun,
            "wait_seconds": waited,
        }

    def _train(self, ahead: Future[Any], stop: Stop) -> dict[str, float]:
        totals: dict[str, float] = {}
        count = min(self._updates(), self.config.steps - self.step)
        for _ in range(count):
            if stop():
                raise Cancelled
            if ahead.done():
                ahead.result()  # an error there ends the round here
            for key, value in self._update().items():
                totals[key] = totals.get(key, 0.0) + value / count
            self.step += 1
        return totals

    def _snapshot(self) -> dict[str, Any]:
        return {
            "model": copy.deepcopy(self.model.state_dict()),
            "optimizer": copy.deepcopy(self.optimizer.state_dict()),
            "batches": store.pack_generator(self.batches),
            "step": self.step,
        }

    def _rewind(self, before: dict[str, Any]) -> None:
        self.model.load_state_dict(before["model"])
        self.optimizer.load_state_dict(before["optimizer"])
        self.batches = store.unpack_generator(before["batches"])
        self.step = before["step"]

    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Return what a checkpoint keeps beside weights, optimizer and replay."""
        return {}

    def _put_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Put back what `_arrays` returned; raises ValueError or KeyError for anything else."""

    def _put_weights(self, saved: Checkpoint, origin: str) -> None:
        """Put back what `weights` returned; raises CheckpointError where it does not fit."""
        self.model.load_state_dict(store.restore_model(saved, origin=origin).state_dict())

    def _counters(self) -> dict[str, Any]:
        """Return what a checkpoint counts beside the usual."""
        return {}

    def _put_counters(self, counters: Mapping[str, Any]) -> None:
        """Put back what `_counters` returned."""

    def checkpoint(self) -> Checkpoint:
        """Return everything needed to continue bit for bit; valid between rounds.

        What it only names, such as a league's weights, `save_beside` writes.
        """
        config, weights = self.config, self.weights()
        counters = {
            "started_from": self.started_from,
            "step": self.step,
            "round": self.rounds,
            "seconds": self.seconds,
            "positions": self.positions,
            **self._counters(),
        }
        return Checkpoint(
            card=make_card(
                self.model,
                weights,
                name=config.name,
                net=self.architecture,
                net_options=config.net_options(),
                scenarios=self.scenarios,
                method=self.METHOD,
                step=self.step,
            ),
            weights=weights,
            optimizer=store.optimizer_arrays(self.optimizer, self.model),
            replay={**self.replay.pack(), **self._arrays()},
            config=msgspec.to_builtins(config),
            counters=counters,
            rng={"batches": store.pack_generator(self.batches), "torch": store.pack_torch_rng()},
        )

    @classmethod
    def read_config(cls, saved: Checkpoint, *, origin: str) -> Any:
        """Return the options that a run was begun with.

        Raises:
            CheckpointError: a checkpoint of another method or version.
        """
        if saved.card.method != cls.METHOD:
            method = saved.card.method
            raise CheckpointError(f"{origin}: trained by {method!r}, not by {cls.METHOD!r}")
        try:
            return msgspec.convert(saved.config, cls.CONFIG)
        except (ValueError, TypeError) as error:
            raise CheckpointError(f"{origin}: configuration of another version: {error}") from None

    def restore(self, saved: Checkpoint, *, origin: str) -> Self:
        """Go on from a checkpoint of these options; what it only names is the caller's.

        Raises:
            CheckpointError: what is in it does not fit.
        """
        try:
            counters = saved.counters
            self.started_from = str(counters["started_from"])
            self.step, self.rounds = int(counters["step"]), int(counters["round"])
            self.seconds, self.positions = float(counters["seconds"]), int(counters["positions"])
            self._put_counters(counters)
            self.replay.unpack(saved.replay)
            self._put_arrays(saved.replay)
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{origin}: {error}") from None
        self._put_weights(saved, origin)
        store.restore_optimizer(self.optimizer, self.model, saved.optimizer, origin=origin)
        self.batches = store.unpack_generator(saved.rng.get("batches", {}))
        store.unpack_torch_rng(saved.rng.get("torch", ""))
        return self

    def save_beside(self, folder: Path) -> None:
        """Write what checkpoints name without containing it, into the run's folder."""

    def close(self) -> None:
        """End what other processes do for this run."""


def capacities(
    scenarios: Sequence[Scenario], shapes: Sequence[tuple[int, int, int]], total: int
) -> dict[tuple[int, int, int], int]:
    """Return the positions to keep of each shape: `total`, shared by the scenarios' weights."""
    weights = sum(s.weight for s in scenarios)
    out: dict[tuple[int, int, int], int] = {}
    for scenario, shape in zip(scenarios, shapes, strict=True):
        out[shape] = out.get(shape, 0) + int(np.ceil(total * scenario.weight / weights))
    return out


Run = TypeVar("Run", bound=Rounds[Any, Any, Any])


def train(
    run: Run,
    *,
    log: Callable[[int, dict[str, float]], None],
    say: Say,
    save: Callable[[Run], object],
    stop: Stop,
) -> bool:
    """Train until all updates are made or `stop()` turns true; return whether it finished.

    The state is saved at the start of a new run, every `checkpoint_seconds`, when stopped or
    broken, and at the end; a stop gives up the round in progress, so that it takes effect at once.
    Torch is set to one thread, since the games are played in another one.
    """
    torch.set_num_threads(1)
    if run.rounds == 0:
        save(run)
    saved = time.monotonic()
    # OpenMP counts threads for each thread that calls it, so the games' thread says it again.
    with ThreadPoolExecutor(1, "games", torch.set_num_threads, (1,)) as pool:
        while not run.done and not stop():
            try:
                figures = run.round(pool, stop, say)
            except Cancelled:
                break
            except FloatingPointError as error:
                say(run.step, str(error), "alarm")
                save(run)
                raise
            log(run.step, figures)
            if time.monotonic() - saved > run.config.checkpoint_seconds and not run.done:
                save(run)
                saved = time.monotonic()
    save(run)
    return run.done
