"""`snakekit train nash`: deep Nash value iteration with self-play, in rounds (see `rounds.py`)."""

import copy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray

from snakekit import core
from snakekit.trainer import checkpoint as store
from snakekit.trainer.checkpoint import Checkpoint, CheckpointError
from snakekit.trainer.gate import Gate, OnGames, gate_jobs, nothing
from snakekit.trainer.league import FOLDER, League, LeagueRules, Weights
from snakekit.trainer.model import ALL_SEAT, Net
from snakekit.trainer.nash.config import NashConfig
from snakekit.trainer.nash.examples import Examples, augment, room
from snakekit.trainer.nash.learner import Learner
from snakekit.trainer.nash.snakes import MOVES
from snakekit.trainer.nash.widen import widened
from snakekit.trainer.nash.workers import LocalWorkers, Place, Places, Played, Workers, combined
from snakekit.trainer.replay import Replay
from snakekit.trainer.rounds import Rounds, Say, Stop, capacities
from snakekit.trainer.scenario import parse_all

METHOD = "deep Nash value iteration"
GATE_RIVALS = 3
RULES = LeagueRules(size=GATE_RIVALS)
_RAW, _PLACE = "model/", "place/"
"""Prefixes in a checkpoint: the weights in training, beside their mean, and the workers' places."""


class Nash(Rounds[NashConfig, Replay[Examples], list[Played]]):
    """The state of one training run."""

    METHOD = METHOD
    CONFIG = NashConfig

    def __init__(
        self,
        config: NashConfig,
        start: Checkpoint | None = None,
        *,
        workers: Workers | None = None,
    ) -> None:
        """Begin from random weights, or from those of `start`, a checkpoint of the same net.

        Args:
            config: the options.
            start: where the weights come from.
            workers: who plays; None for one in this process.

        Raises:
            CheckpointError: `start` has another net.
        """
        scenarios = parse_all(config.scenarios)
        shapes = [(core.all_seat_planes(config.slots), *s.shape) for s in scenarios]
        places = capacities(scenarios, shapes, config.replay)
        replay = Replay(room(config.slots, MOVES), places)
        super().__init__(config, ALL_SEAT, replay, start)
        self.league = League(RULES, self.weights())
        self.workers: Workers = workers or LocalWorkers(config)
        self.places: Places = [None] * self.workers.count
        self.gates = 0
        self.gated_at = 0
        self.gate_progress: OnGames = nothing
        self._latest = 0

    def _optimizer(self) -> torch.optim.Optimizer:
        config = self.config
        self.learner = Learner(
            self.model,
            lr=config.lr,
            steps=config.steps,
            warmup=config.warmup,
            weight_decay=config.weight_decay,
            grad_norm=config.grad_norm,
            policy_weight=config.policy_weight,
            average=config.average,
        )
        return self.learner.optimizer

    def _adopt(self, start: Checkpoint) -> str:
        """Take over weights, also those of a net that is the same but for fewer slots."""
        card, options = start.card, self.config.net_options()
        fewer = 0 < card.slots < self.config.slots
        if not fewer or (card.net, card.net_options | {"slots": options["slots"]}) != (
            ALL_SEAT,
            options,
        ):
            return super()._adopt(start)
        wanted = self.model.state_dict()
        self.model.load_state_dict(widened(start.weights, wanted, card.slots, self.config.slots))
        return card.weights_sha256

    @property
    def net(self) -> Net:
        """What plays and is saved: the mean of the weights."""
        return self.learner.average

    def weights(self) -> Weights:
        """Return a copy of the mean of the weights."""
        return store.weights_of(self.net)

    def _ahead(self, number: int) -> Callable[[Stop], tuple[list[Played], dict[str, float]]]:
        weights, places = self.weights(), self.places

        def play(stop: Stop) -> tuple[list[Played], dict[str, float]]:
            played = self.workers.collect(weights, number, places, stop)
            return played, combined([part.figures for part in played])

        return play

    def _accept(self, played: list[Played]) -> int:
        for part in played:
            self.replay.add(part.examples)
        self.places = [part.place for part in played]
        self._latest = sum(len(part.examples) for part in played)
        return self._latest

    def _updates(self) -> int:
        return max(1, round(self._latest * self.config.reuse / self.config.batch))

    def _update(self) -> dict[str, float]:
        self.learner.step = self.step
        batch = augment(self.replay.sample(self.config.batch, self.batches), self.batches)
        return self.learner.update(batch)

    def _begin(self, stop: Stop, say: Say) -> dict[str, float]:
        every, against = self.config.gate_every, self.config.against
        if not every or self.step // every == self.gated_at // every:
            return {}
        found = self.gate(stop)
        say(self.step, str(found), "promotion" if found.passed and not against else "gate")
        return {
            "gate_level": found.level,
            "gate_low": found.low,
            "gate_high": found.high,
            "gate_promoted": float(found.passed and not against),
            "gate_turns": found.turns,
            "league_best": float(self.league.best.number),
        }

    def gate(self, stop: Stop = lambda: False) -> Gate:
        """Play the present net against the bests so far; promote it if it wins enough.

        In a run against a frozen agent it plays that one, and nobody is promoted.

        Raises:
            Cancelled: `stop()` turned true.
        """
        config = self.config
        jobs = gate_jobs(
            self.scenarios,
            config.gate_games,
            1 if config.against else len(self.league.drawn),
            seed=config.seed + 7919 * (self.gates + 1),
            max_turns=config.max_turns,
        )
        weights = self.weights()
        found = self.workers.gate(
            jobs, weights, self.league, config.gate_level, stop, self.gate_progress
        )
        self.gates += 1
        self.gated_at = self.step
        if found.passed and not config.against:
            self.league.promote(weights, self.rounds)
            self.league.release(())
        return found

    def _snapshot(self) -> dict[str, Any]:
        return super()._snapshot() | {
            "net": copy.deepcopy(self.net.state_dict()),
            "gates": (self.gates, self.gated_at),
            "league": (list(self.league.entries), dict(self.league.weights)),
        }

    def _rewind(self, before: dict[str, Any]) -> None:
        super()._rewind(before)
        self.net.load_state_dict(before["net"])
        self.gates, self.gated_at = before["gates"]
        self.league.entries, self.league.weights = before["league"]

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays = {f"{_RAW}{name}": a for name, a in store.weights_of(self.model).items()}
        for index, place in enumerate(self.places):
            packed = {} if place is None else place.pack()
            arrays |= {f"{_PLACE}{index}/{name}": array for name, array in packed.items()}
        return arrays

    def _put_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.places = [self._place(arrays, index) for index in range(self.workers.count)]

    def _place(self, arrays: Mapping[str, NDArray[Any]], index: int) -> Place | None:
        """Return the place of a worker, or None for one that the checkpoint does not know."""
        start = f"{_PLACE}{index}/"
        found = {k.removeprefix(start): v for k, v in arrays.items() if k.startswith(start)}
        return Place.unpack(found, len(self.scenarios)) if found else None

    def _put_weights(self, saved: Checkpoint, origin: str) -> None:
        self.net.load_state_dict(store.restore_model(saved, origin=origin).state_dict())
        raw = {n: a for n, a in saved.replay.items() if n.startswith(_RAW)}
        state = {n.removeprefix(_RAW): torch.from_numpy(a.copy()) for n, a in raw.items()}
        try:
            self.model.load_state_dict(state)
        except RuntimeError:
            raise CheckpointError(f"{origin}: weights in training are missing or odd") from None

    def _counters(self) -> dict[str, Any]:
        return {
            "latest": self._latest,
            "gates": self.gates,
            "gated_at": self.gated_at,
            FOLDER: self.league.table(),
        }

    def _put_counters(self, counters: Mapping[str, Any]) -> None:
        self._latest, self.gates = int(counters["latest"]), int(counters["gates"])
        self.gated_at = int(counters["gated_at"])

    def save_beside(self, folder: Path) -> None:
        """Write the league's weights."""
        self.league.save(folder)

    def close(self) -> None:
        """End the workers."""
        self.workers.close()
