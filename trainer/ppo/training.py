"""A PPO run: act, learn, and now and then let the league judge.

With `overlap` the next decisions are made, with the weights that this iteration begins with,
while this iteration's are learned: the policy lag is exactly one iteration. Without it there is
none. Both are deterministic, so a run that was killed and resumed equals an unbroken one bit for
bit on one machine: a checkpoint holds where the games were before the next decisions, and the
weights that those are made with.
"""

import copy
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray

from snakekit import core
from snakekit.trainer import checkpoint as store
from snakekit.trainer.agents import opponent
from snakekit.trainer.card import check_net, make_card, take_over
from snakekit.trainer.checkpoint import Checkpoint, CheckpointError
from snakekit.trainer.contest import contest
from snakekit.trainer.device import open_device, set_threads
from snakekit.trainer.gate import Gate, OnGames, gate_jobs, nothing
from snakekit.trainer.generate import Cancelled
from snakekit.trainer.league import FOLDER, League, Weights
from snakekit.trainer.model import build
from snakekit.trainer.ppo.config import PpoConfig
from snakekit.trainer.ppo.figures import happened, measured
from snakekit.trainer.ppo.learner import Alone, Group, Learner
from snakekit.trainer.ppo.loss import Batch
from snakekit.trainer.ppo.rollout import Place, Rollout
from snakekit.trainer.ppo.workers import LocalWorkers, Places, Workers, net_player
from snakekit.trainer.rounds import Say, silent

METHOD = "PPO self-play in a league"
_GATES = 24
_ACTING, _PLACE = "acting/", "place/"


def joined(batches: list[Batch]) -> Batch:
    """Return one batch of all decisions, in order."""
    if len(batches) == 1:
        return batches[0]
    names = Batch.__dataclass_fields__
    return Batch(*(torch.cat([getattr(b, name) for b in batches]) for name in names))


class Ppo:
    """The state of one run; `iterate` advances it."""

    def __init__(
        self,
        config: PpoConfig,
        workers: Workers | None = None,
        group: Group | None = None,
        *,
        start: Checkpoint | None = None,
    ) -> None:
        """Begin a run from random weights, or from those of `start`, a checkpoint of the same net.

        Args:
            config: the options.
            workers: who acts; None for one in this process.
            group: the learners of this run; None for this one alone.
            start: where the weights come from.

        Raises:
            CheckpointError: `start` has another net.
            DeviceError: the device is not here.
        """
        self.config = config
        self.group = group or Alone()
        self.device = open_device(config.device, config.precision, compiled=config.compile)
        self.threads = set_threads(config.torch_threads)
        torch.manual_seed(config.seed)
        model = build(config.net, config.net_options())
        self.started_from = ""
        if start is not None:
            self.started_from = take_over(model, start, config.net, config.net_options())
        self.learner = Learner(config, model, self.device, self.group)
        self.workers = workers or LocalWorkers(config, self.group.rank)
        self.league = League(config.league, self.weights())
        self.acting = self.weights()
        self.places: Places = [None] * self.workers.count
        self.iteration = 0
        self.decisions = 0
        self.seconds = 0.0
        self.last_gate: Gate | None = None
        self.gate_progress: OnGames = nothing
        self._thread: ThreadPoolExecutor | None = None
        self._ahead: Future[list[Rollout]] | None = None

    def weights(self) -> Weights:
        """Return a copy of the learner's weights."""
        return store.weights_of(self.learner.model)

    @property
    def done(self) -> bool:
        """Whether all iterations have been made."""
        return self.iteration >= self.config.iterations

    def iterate(
        self, stop: Callable[[], bool] = lambda: False, say: Say = silent
    ) -> dict[str, float]:
        """Make one iteration and return its figures.

        Raises:
            Cancelled: `stop()` turned true; the state is that of the iteration's start.
            FloatingPointError: a gradient was not finite; the state is that of the start.
        """
        before = self._snapshot()
        try:
            return self._iterate(stop, say)
        except (Cancelled, FloatingPointError):
            self._rewind(before)
            raise

    def _iterate(self, stop: Callable[[], bool], say: Say) -> dict[str, float]:
        begun, worked = time.perf_counter(), time.process_time()
        rollouts = self._rollouts(stop)
        acted = time.perf_counter()
        places: Places = [rollout.place for rollout in rollouts]
        # After the acting, so that a resumed run acts again with the league of that time.
        figures = self._gate_if_due(places, stop, say)
        weights = self.weights()
        if self.config.overlap and self.iteration + 1 < self.config.iterations:
            self._act_ahead(weights, places, stop)
        batch = joined([rollout.batch for rollout in rollouts])
        learned = time.perf_counter()
        figures |= self.learner.update(batch, self.iteration, stop)
        ended = time.perf_counter()
        self.places = places
        self.acting = weights if self.config.overlap else self.weights()
        self.iteration += 1
        self.seconds += ended - begun
        figures |= self._counted(rollouts)
        self.decisions += int(figures["decisions"])
        spent = max(acted - begun + ended - learned, 1e-9)
        times: Counter[str] = Counter()
        for rollout in rollouts:
            times.update(rollout.seconds)
        return figures | {
            "iteration": float(self.iteration),
            "decisions_total": float(self.decisions),
            "seconds": self.seconds,
            "decisions_per_s": figures["decisions"] / spent,
            "cpu_seconds": time.process_time() - worked,
            "act_seconds": times["act"] / len(rollouts),
            "learn_seconds": ended - learned,
            "wait_seconds": acted - begun if self.config.overlap else 0.0,
            "act_share": times["act"] / len(rollouts) / spent,
            "env_share": times["env"] / len(rollouts) / spent,
        }

    def _rollouts(self, stop: Callable[[], bool]) -> list[Rollout]:
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            return ahead.result()
        return self.workers.collect(self.acting, self.league, self.iteration, self.places, stop)

    def _act_ahead(self, weights: Weights, places: Places, stop: Callable[[], bool]) -> None:
        if self._thread is None:
            # OpenMP counts threads for each thread that calls it, so the new one says it again.
            self._thread = ThreadPoolExecutor(1, "acting", set_threads, (self.threads,))
        # A copy, as the league may change at the start of the next iteration.
        league = self.league.bare()
        league.weights = dict(self.league.weights)
        self._ahead = self._thread.submit(
            self.workers.collect, weights, league, self.iteration + 1, places, stop
        )

    def _counted(self, rollouts: list[Rollout]) -> dict[str, float]:
        counts: Counter[str] = Counter()
        for rollout in rollouts:
            counts.update(rollout.counts)
        names = sorted({*counts, *_always()})
        total = self.group.total(torch.tensor([float(counts[n]) for n in names]).double())
        return happened(Counter(dict(zip(names, map(int, total.tolist()), strict=True))))

    def _gate_if_due(self, places: Places, stop: Callable[[], bool], say: Say) -> dict[str, float]:
        config = self.config
        if not config.gate_every or self.iteration == 0 or self.iteration % config.gate_every:
            return {}
        passed = torch.zeros(1)
        if self.group.rank == 0:
            jobs = gate_jobs(
                config.games,
                config.gate_games,
                len(self.league.drawn),
                seed=int(
                    np.random.default_rng([config.seed, _GATES, self.iteration]).integers(2**31)
                ),
                max_turns=config.max_turns,
            )
            self.last_gate = self.workers.gate(
                jobs, self.weights(), self.league, config.gate_level, stop, self.gate_progress
            )
            passed += float(self.last_gate.passed)
        if float(self.group.total(passed)) > 0:
            entry = self.league.promote(self.weights(), self.iteration)
            say(self.iteration, f"promoted as best-{entry.number}: {self.last_gate}", "promotion")
        elif self.last_gate is not None:
            say(self.iteration, f"not promoted: {self.last_gate}", "gate")
        seats = [place.seats for place in places if place is not None]
        self.league.release(set(np.unique(np.concatenate(seats, None)).tolist()))
        gate = self.last_gate
        if gate is None:
            return {}
        return {
            "gate_level": gate.level,
            "gate_low": gate.low,
            "gate_high": gate.high,
            "gate_promoted": float(gate.passed),
            "league_best": float(self.league.best.number),
        }

    def _snapshot(self) -> dict[str, Any]:
        return {
            "model": copy.deepcopy(self.learner.model.state_dict()),
            "optimizer": copy.deepcopy(self.learner.optimizer.state_dict()),
            "updates": self.learner.updates,
            "league": (list(self.league.entries), dict(self.league.weights)),
        }

    def _rewind(self, before: dict[str, Any]) -> None:
        if self._ahead is not None:
            self._ahead.cancel()
            wait([self._ahead])
            self._ahead = None
        self.learner.model.load_state_dict(before["model"])
        self.learner.optimizer.load_state_dict(before["optimizer"])
        self.learner.updates = before["updates"]
        self.league.entries, self.league.weights = before["league"]

    def measure(self) -> dict[str, float]:
        """Play the bare policy against built-in players; return shares of games won."""
        config, found = self.config, {}
        player = net_player(config, self.weights())
        for key, game, name, _ in measured(config):
            lineup = np.ones((config.measure_games, game.snakes), np.intp)
            at = np.arange(config.measure_games)
            lineup[at, at % game.snakes] = 0
            players = (player, opponent(name))
            played = contest(players, lineup, game, seed=1, max_turns=config.max_turns)
            found[key] = float((played.results == 1).mean())
        return found

    def checkpoint(self) -> Checkpoint:
        """Return everything needed to continue bit for bit; valid between iterations.

        The league's weights are named in it, not contained: `League.save` writes them.
        """
        config, weights = self.config, self.weights()
        arrays: dict[str, NDArray[Any]] = {}
        for rank, places in enumerate(self.group.gather(self.places)):
            for index, place in enumerate(places):
                packed = {} if place is None else place.pack()
                arrays |= {f"{_PLACE}{rank}/{index}/{k}": v for k, v in packed.items()}
        if config.overlap:
            arrays |= {_ACTING + name: value for name, value in self.acting.items()}
        return Checkpoint(
            card=make_card(
                self.learner.model,
                weights,
                name=config.name,
                net=config.net,
                net_options=config.net_options(),
                scenarios=config.games,
                method=METHOD,
                step=self.learner.updates,
            ),
            weights=weights,
            optimizer=store.optimizer_arrays(self.learner.optimizer, self.learner.model),
            replay=arrays,
            config=msgspec.to_builtins(config),
            counters={
                "started_from": self.started_from,
                "iteration": self.iteration,
                "decisions": self.decisions,
                "seconds": self.seconds,
                "updates": self.learner.updates,
                FOLDER: self.league.table(),
            },
        )

    def restore(self, saved: Checkpoint, league: League, *, origin: str) -> None:
        """Go on from `saved`, a checkpoint of this configuration, with its `league`.

        Workers or learners that the checkpoint does not know begin new games.

        Raises:
            CheckpointError: what is in it does not fit.
        """
        check_net(saved.card, self.config.net, self.config.net_options(), origin=origin)
        model = store.restore_model(saved, origin=origin)
        self.learner.model.load_state_dict(model.state_dict())
        store.restore_optimizer(
            self.learner.optimizer, self.learner.model, saved.optimizer, origin=origin
        )
        counters = saved.counters
        try:
            self.started_from = str(counters["started_from"])
            self.iteration = int(counters["iteration"])
            self.decisions, self.seconds = int(counters["decisions"]), float(counters["seconds"])
            self.learner.updates = int(counters["updates"])
            self.places = [self._place(saved, i) for i in range(self.workers.count)]
        except (KeyError, ValueError, TypeError) as error:
            raise CheckpointError(f"{origin}: {error}") from None
        acting = {k.removeprefix(_ACTING): v for k, v in saved.replay.items() if k[:7] == _ACTING}
        self.acting = acting or self.weights()
        self.league = league

    def _place(self, saved: Checkpoint, index: int) -> Place | None:
        start = f"{_PLACE}{self.group.rank}/{index}/"
        found = {k.removeprefix(start): v for k, v in saved.replay.items() if k.startswith(start)}
        return Place.unpack(found) if found else None

    def save_beside(self, folder: Path) -> None:
        """Write the league's weights."""
        self.league.save(folder)

    def close(self) -> None:
        """End threads and workers."""
        if self._ahead is not None:
            self._ahead.cancel()
        if self._thread is not None:
            self._thread.shutdown(cancel_futures=True)
        self.workers.close()


def _always() -> list[str]:
    """Return the counts that every learner of a group sums up, in one order."""
    ends = [f"{kind}_{what}" for kind in ("own", "pool") for what in ("ended", "won", "drawn")]
    causes = [f"cause/{cause}" for cause in core.CAUSES if cause]
    return ["decisions", "turns", "eaten", "kills", "cut", "ended", "lifetime", *ends, *causes]
