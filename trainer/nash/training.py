"""`snakekit train nash`: deep Nash value iteration with self-play.

Two threads: one plays by the equilibria on the net of the round's start, the other trains. A round
ends when both are done, so equal seeds give equal weights, and a resumed run continues bit for bit
on one machine.
"""

import copy
import dataclasses
import math
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import msgspec
import numpy as np
import torch

from snakekit import core
from snakekit.runtime.contract import ALL_SEATS, ModelCard
from snakekit.trainer import checkpoint as store
from snakekit.trainer.checkpoint import Checkpoint, CheckpointError
from snakekit.trainer.gate import Gate, gate_jobs, run_gate
from snakekit.trainer.generate import Cancelled
from snakekit.trainer.league import FOLDER, League, LeagueRules, Weights
from snakekit.trainer.model import ALL_SEAT, Net, build, count_parameters
from snakekit.trainer.nash.config import NashConfig
from snakekit.trainer.nash.examples import Examples, Replay, augment
from snakekit.trainer.nash.learner import Learner, blended, evaluator
from snakekit.trainer.nash.players import equilibrium
from snakekit.trainer.nash.selfplay import Recipe, play
from snakekit.trainer.nash.snakes import MOVES, SnakeTable, area_opinion
from snakekit.trainer.run import source_commit
from snakekit.trainer.scenario import draw, parse_all

METHOD = "deep Nash value iteration"
SHOWN = (
    ("outcome_kl", "outcome", ".4f"),
    ("policy_kl", "policy", ".3f"),
    ("value_loss", "value", ".4f"),
    ("nash_gap", "gap", ".4f"),
    ("turns_per_game", "turns", ".0f"),
    ("draw_share", "drawn", ".1%"),
    ("positions_per_s", "pos/s", ".0f"),
    ("level", "gate", ".2f"),
)
GATE_RIVALS = 3
RAW = "model/"
"""Prefix of the weights in training, beside their mean, in a checkpoint."""


class Nash:
    """The state of one training run; `round` advances it."""

    def __init__(self, config: NashConfig, start: Checkpoint | None = None) -> None:
        """Begin from random weights, or from those of `start`, a checkpoint of the same net.

        Raises:
            CheckpointError: `start` has another net.
        """
        self.config = config
        self.scenarios = parse_all(config.scenarios)
        torch.manual_seed(config.seed)
        self.model: Net = build(ALL_SEAT, config.net_options())
        self.started_from = ""
        if start is not None:
            self._adopt(start)
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
        slots = config.slots
        self.tables = [
            SnakeTable(
                s,
                config.games,
                slots,
                seed=config.seed * 1000 + i,
                max_turns=config.max_turns,
                draw_worth=config.draw_worth,
            )
            for i, s in enumerate(self.scenarios)
        ]
        self.replay = Replay(self._capacities(), slots, MOVES)
        self.batches = np.random.default_rng([config.seed, 2])
        self.rounds = 0
        self.positions = 0
        self._latest = 0
        self.seconds = 0.0
        self.gates = 0
        self.league = League(LeagueRules(), store.weights_of(self.model))

    def _adopt(self, start: Checkpoint) -> None:
        card, wanted = start.card, self.config.net_options()
        if (card.net, card.net_options) != (ALL_SEAT, wanted):
            raise CheckpointError(f"start: net {card.net} {card.net_options}, not this run's")
        self.model.load_state_dict(store.restore_model(start, origin="start").state_dict())
        self.started_from = card.weights_sha256

    def _capacities(self) -> dict[tuple[int, int, int], int]:
        total = sum(s.weight for s in self.scenarios)
        out: dict[tuple[int, int, int], int] = {}
        for table, scenario in zip(self.tables, self.scenarios, strict=True):
            part = math.ceil(self.config.replay * scenario.weight / total)
            out[table.shape] = out.get(table.shape, 0) + part
        return out

    @property
    def net(self) -> Net:
        """What plays and is saved: the mean of the weights."""
        return self.learner.average

    @property
    def step(self) -> int:
        """Updates made."""
        return self.learner.step

    @property
    def done(self) -> bool:
        """Whether all updates have been made."""
        return self.step >= self.config.steps

    @property
    def area_share(self) -> float:
        """Share of the plain judgement by area in the present updates, falling to 0."""
        config = self.config
        return config.area * max(0.0, 1 - self.step / max(config.area_until * config.steps, 1))

    def recipe(self, number: int) -> Recipe:
        """Return how to play in round `number`; the first ones learn from outcomes."""
        config = self.config
        usual = Recipe(
            turns=config.turns,
            iterations=config.iterations,
            explore=config.explore,
            opening_explore=config.opening_explore,
            opening_turns=config.opening_turns,
            trust=config.trust,
            discount=config.discount,
        )
        if number >= config.pretrain:
            return usual
        # Whole games without exploration, which would cut them off from their outcomes; play on
        # the values of an untrained net is random enough.
        return dataclasses.replace(
            usual, turns=config.pretrain_turns, explore=0.0, opening_explore=0.0, trust=1.0
        )

    def generate(
        self,
        number: int,
        actor: Net,
        share: float,
        stop: Callable[[], bool] = lambda: False,
    ) -> tuple[Examples, dict[str, float]]:
        """Play round `number` with `actor` on one kind of game.

        Args:
            number: of the round.
            actor: the value net.
            share: see `area_share`.
            stop: asked every turn.

        Raises:
            Cancelled: `stop()` turned true; the games are somewhere in the round.
        """
        generator = np.random.default_rng([self.config.seed, 3, number])
        scenario = draw(self.scenarios, 1, generator)[0]
        table = self.tables[self.scenarios.index(scenario)]
        begun = time.perf_counter()
        judge = blended(evaluator(actor), area_opinion, share)
        examples, figures = play(table, judge, self.recipe(number), generator, stop)
        figures["generate_seconds"] = time.perf_counter() - begun
        return examples, figures

    def round(
        self, pool: ThreadPoolExecutor, stop: Callable[[], bool] = lambda: False
    ) -> dict[str, float]:
        """Train while the next positions are played; return figures.

        The first round has nothing to train on and waits for its own games.

        Raises:
            Cancelled: `stop()` turned true; the state is that of the round's start.
        """
        begun = time.perf_counter()
        actor = copy.deepcopy(self.net)
        share = self.area_share
        before = self._snapshot()
        try:
            if len(self.replay) == 0:
                self._take(pool.submit(self.generate, 0, actor, share, stop).result()[0])
                before = self._snapshot()
            ahead = pool.submit(self.generate, self.rounds + 1, actor, share, stop)
            figures = self._train(ahead, stop)
            trained = time.perf_counter()
            examples, found = ahead.result()
        except Cancelled:
            self._rewind(before)
            raise
        self._take(examples)
        self.rounds += 1
        spent = time.perf_counter() - begun
        self.seconds += spent
        return {
            **figures,
            **found,
            "round": float(self.rounds),
            "replay": float(len(self.replay)),
            "positions_total": float(self.positions),
            "positions_per_s": len(examples) / spent,
            "seconds": self.seconds,
            "train_seconds": trained - begun,
        }

    def _take(self, examples: Examples) -> None:
        self.replay.add(examples)
        self.positions += len(examples)
        self._latest = len(examples)

    def _snapshot(self) -> dict[str, Any]:
        return {
            "model": copy.deepcopy(self.model.state_dict()),
            "net": copy.deepcopy(self.net.state_dict()),
            "optimizer": copy.deepcopy(self.learner.optimizer.state_dict()),
            "batches": store.pack_generator(self.batches),
            "step": self.learner.step,
            "tables": [table.pack() for table in self.tables],
        }

    def _rewind(self, before: dict[str, Any]) -> None:
        self.model.load_state_dict(before["model"])
        self.net.load_state_dict(before["net"])
        self.learner.optimizer.load_state_dict(before["optimizer"])
        self.learner.step = before["step"]
        self.batches = store.unpack_generator(before["batches"])
        for table, arrays in zip(self.tables, before["tables"], strict=True):
            table.unpack(arrays)

    def _train(self, ahead: Future[Any], stop: Callable[[], bool]) -> dict[str, float]:
        config = self.config
        count = max(1, round(self._latest * config.reuse / config.batch))
        count = min(count, config.steps - self.step)
        totals: dict[str, float] = {}
        for _ in range(count):
            if stop():
                raise Cancelled
            if ahead.done():
                ahead.result()  # an error there ends the round here
            batch = augment(self.replay.sample(config.batch, self.batches), self.batches)
            for key, value in self.learner.update(batch).items():
                totals[key] = totals.get(key, 0.0) + value / count
        return totals

    def gate(self, stop: Callable[[], bool] = lambda: False) -> Gate:
        """Play the present net against the best ones so far; promote it if it wins enough.

        Raises:
            Cancelled: `stop()` turned true.
        """
        config = self.config
        entries = self.league.drawn[-GATE_RIVALS:]
        rivals = [self._player(self.league.weights[e.number]) for e in entries]
        jobs = gate_jobs(
            self.scenarios,
            config.gate_games,
            len(rivals),
            seed=config.seed + 7919 * (self.gates + 1),
            max_turns=config.max_turns,
        )
        weights = store.weights_of(self.net)
        found = run_gate(jobs, self._player(weights), rivals, config.gate_level, stop=stop)
        self.gates += 1
        if found.passed:
            self.league.promote(weights, self.rounds)
            self.league.release(())
        return found

    def _player(self, weights: Weights) -> Any:
        net = build(ALL_SEAT, self.config.net_options())
        net.load_state_dict({name: torch.from_numpy(a.copy()) for name, a in weights.items()})
        return equilibrium(net.eval(), self.config.slots, iterations=64)

    def card(self, weights: dict[str, Any]) -> ModelCard:
        """Return the model card for `weights` at the present step."""
        card = ModelCard(
            name=self.config.name,
            net=ALL_SEAT,
            net_options=self.config.net_options(),
            encoder=ALL_SEATS,
            planes=core.all_seat_planes(self.config.slots),
            view=None,
            boards=sorted({(s.width, s.height) for s in self.scenarios}),
            rulesets=sorted({s.ruleset for s in self.scenarios}),
            snakes=sorted({s.snakes for s in self.scenarios}),
            method=METHOD,
            step=self.step,
            parameters=count_parameters(self.model),
            weights_sha256="",
            source_commit=source_commit(),
        )
        return store.finish_card(card, weights, self.step)

    def checkpoint(self) -> Checkpoint:
        """Return everything needed to continue bit for bit; valid between rounds."""
        weights = store.weights_of(self.net)
        arrays = self.replay.pack()
        arrays |= {f"{RAW}{name}": a for name, a in store.weights_of(self.model).items()}
        for number, table in enumerate(self.tables):
            arrays |= {f"table/{number}/{name}": a for name, a in table.pack().items()}
        return Checkpoint(
            card=self.card(weights),
            weights=weights,
            optimizer=store.optimizer_arrays(self.learner.optimizer, self.model),
            replay=arrays,
            config=msgspec.to_builtins(self.config),
            counters={
                "started_from": self.started_from,
                "step": self.step,
                "round": self.rounds,
                "positions": self.positions,
                "latest": self._latest,
                "seconds": self.seconds,
                "gates": self.gates,
                FOLDER: self.league.table(),
            },
            rng={"batches": store.pack_generator(self.batches), "torch": store.pack_torch_rng()},
        )

    @classmethod
    def resume(cls, saved: Checkpoint, *, origin: str) -> "Nash":
        """Continue from a checkpoint of this method; the league is the caller's to put back.

        Raises:
            CheckpointError: another method's checkpoint, or one that does not fit.
        """
        if saved.card.method != METHOD:
            raise CheckpointError(f"{origin}: trained by {saved.card.method!r}, not by {METHOD!r}")
        try:
            run = cls(msgspec.convert(saved.config, NashConfig))
            run.replay.unpack(saved.replay)
            raw = {k.removeprefix(RAW): a for k, a in saved.replay.items() if k.startswith(RAW)}
            run.model.load_state_dict({k: torch.from_numpy(a.copy()) for k, a in raw.items()})
            for number, table in enumerate(run.tables):
                name = f"table/{number}/"
                parts = {k.removeprefix(name): v for k, v in saved.replay.items()}
                table.unpack({k: v for k, v in parts.items() if "/" not in k})
            counters = saved.counters
            run.started_from = str(counters["started_from"])
            run.learner.step, run.rounds = int(counters["step"]), int(counters["round"])
            run.positions, run.seconds = int(counters["positions"]), float(counters["seconds"])
            run.gates, run._latest = int(counters["gates"]), int(counters["latest"])
        except (ValueError, KeyError, TypeError, RuntimeError) as error:
            raise CheckpointError(f"{origin}: {error}") from None
        run.net.load_state_dict(store.restore_model(saved, origin=origin).state_dict())
        store.restore_optimizer(run.learner.optimizer, run.model, saved.optimizer, origin=origin)
        run.batches = store.unpack_generator(saved.rng.get("batches", {}))
        store.unpack_torch_rng(saved.rng.get("torch", ""))
        return run


def train(
    run: Nash,
    *,
    log: Callable[[int, dict[str, float]], None],
    say: Callable[[int, str], None],
    save: Callable[[Nash], object],
    stop: Callable[[], bool],
) -> bool:
    """Train until all updates are made or `stop()` turns true; return whether it finished.

    The state is saved every `checkpoint_seconds`, when stopped, and at the end; a stop gives up
    the round in progress. Torch is set to one thread, since the games are played in another one.
    """
    torch.set_num_threads(1)
    saved = time.monotonic()
    every = run.config.gate_every
    # OpenMP counts threads for each thread that calls it, so the games' thread says it again.
    with ThreadPoolExecutor(1, "games", torch.set_num_threads, (1,)) as pool:
        while not run.done and not stop():
            before = run.step
            try:
                figures = run.round(pool, stop)
                if every and (before // every < run.step // every or run.done):
                    found = run.gate(stop)
                    figures |= {"level": found.level, "gate_turns": found.turns}
                    say(run.step, f"{'new best' if found.passed else 'gate'}: {found}")
            except Cancelled:
                break
            log(run.step, figures)
            if time.monotonic() - saved > run.config.checkpoint_seconds and not run.done:
                save(run)
                saved = time.monotonic()
    save(run)
    return run.done
