"""Imitation of the alpha-beta search: the net learns to answer at once what a search finds out.

One round plays games in a second thread, with the net of the round's start as one of the players,
while this thread trains on the positions of the rounds before. Both sides are pure functions of
the seed and the round, and a round begins only when both have finished, so equal seeds give equal
weights and a resumed run continues bit for bit on one machine. The price is some waiting, which
the metrics show as `wait_seconds`.

The policy target is a softmax over the search's root scores (proved losses excluded), the value
target a mix of the game's outcome and the search's squashed score; the loss is cross-entropy plus
`value_weight` times squared error.
"""

import copy
import math
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Annotated, Any

import msgspec
import numpy as np
import torch
from msgspec import Meta
from torch.nn import functional

from snakekit import core
from snakekit.runtime.contract import ModelCard
from snakekit.trainer import checkpoint as store
from snakekit.trainer.checkpoint import Checkpoint, CheckpointError
from snakekit.trainer.generate import Cancelled, Examples, Recipe, play
from snakekit.trainer.model import Net, build, count_parameters, kind_of
from snakekit.trainer.replay import Replay
from snakekit.trainer.run import source_commit
from snakekit.trainer.scenario import PATTERN, draw, parse_all
from snakekit.trainer.symmetry import augment, shape_keeping

METHOD = "imitation of alpha-beta search"
SHOWN = (
    ("policy_kl", "kl", ".3f"),
    ("value_loss", "value", ".3f"),
    ("agreement", "agree", ".1%"),
    ("blunders", "blunder", ".2%"),
    ("wait_seconds", "wait", ".1f"),
)
Text = Annotated[str, Meta(pattern=f"^{PATTERN}$")]
Count = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]
DEFAULT_SCENARIOS = (
    "11x11x2@4:5",
    "11x11x4@2:4",
    "7x7x2@4:1",
    "7x7x4@2:0.5",
    "19x19x2@2:0.3",
    "19x19x4@1:0.3",
)


class ImitationConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that decides what `snakekit train imitation` does."""

    name: Annotated[
        str, Meta(pattern="^[a-z0-9-]+$", description="name of the run and the model")
    ] = "imitation"
    seed: Annotated[int, Meta(ge=0, lt=2**31, description="of weights, games and batches")] = 0
    net: Annotated[str, Meta(pattern="^(article|compact)$", description="architecture")] = "compact"
    channels: Annotated[int, Meta(ge=8, le=256, description="width of the compact net")] = 32
    blocks: Annotated[int, Meta(ge=1, le=32, description="depth of the compact net")] = 3
    hidden: Annotated[int, Meta(ge=8, le=1024, description="readout of the compact net")] = 64
    scenarios: Annotated[
        tuple[Text, ...],
        Meta(description="kinds of games, WIDTHxHEIGHTxSNAKES[/ruleset][@depth][:weight]"),
    ] = DEFAULT_SCENARIOS
    steps: Annotated[int, Meta(ge=1, description="parameter updates in all")] = 8000
    batch: Annotated[int, Meta(ge=8, le=65536, description="positions an update")] = 256
    lr: Annotated[float, Meta(gt=0, le=1, description="highest learning rate")] = 1e-3
    warmup: Annotated[int, Meta(ge=0, description="updates until the rate is at its height")] = 200
    weight_decay: Annotated[float, Meta(ge=0, le=1, description="AdamW's")] = 1e-4
    value_weight: Annotated[float, Meta(ge=0, description="of the value's loss")] = 0.5
    grad_norm: Annotated[float, Meta(gt=0, description="gradients are clipped to it")] = 1.0
    replay: Annotated[int, Meta(ge=1000, description="positions kept, all boards together")] = 80000
    round_steps: Annotated[int, Meta(ge=1, description="updates a round")] = 128
    round_sets: Annotated[int, Meta(ge=1, le=64, description="sets of games a round")] = 3
    games: Annotated[int, Meta(ge=1, le=4096, description="games side by side in a set")] = 8
    turns: Annotated[int, Meta(ge=1, description="turns played in each game of a set")] = 240
    explore: Annotated[Share, Meta(description="mean share of random safe moves")] = 0.1
    student_share: Annotated[Share, Meta(description="share of seats the net plays itself")] = 0.4
    student_after: Annotated[int, Meta(ge=0, description="rounds before it plays")] = 10
    eat_bonus: Annotated[float, Meta(ge=0, description="added where a move eats")] = 300.0
    seek_bonus: Annotated[float, Meta(ge=0, description="added where a move seeks food")] = 60.0
    quiet_share: Annotated[Share, Meta(description="kept of positions where no move loses")] = 0.4
    temperature: Annotated[float, Meta(gt=0, description="of the policy target, score unit")] = 40.0
    value_scale: Annotated[float, Meta(gt=0, description="score that counts as tanh(1)")] = 700.0
    outcome_weight: Annotated[Share, Meta(description="share of the outcome in the value")] = 0.5
    checkpoint_seconds: Annotated[float, Meta(ge=0, description="time between checkpoints")] = 180.0
    keep: Annotated[int, Meta(ge=1, description="checkpoints kept")] = 3

    def __post_init__(self) -> None:
        """Check what no single field shows; raises ValueError."""
        parse_all(self.scenarios)
        if self.net == "article" and kind_of(self.net).encoder not in core.PLANES:
            raise ValueError("net: this build has no observation version 1")

    def net_options(self) -> dict[str, int]:
        """Return the options that the chosen net knows."""
        return {name: getattr(self, name) for name in kind_of(self.net).options}


class Imitation:
    """The state of one training run; `round` advances it."""

    def __init__(self, config: ImitationConfig, start: Checkpoint | None = None) -> None:
        """Begin a run from random weights, or from those of `start`, a checkpoint of the same net.

        Raises:
            CheckpointError: `start` has another net.
        """
        self.config = config
        self.kind = kind_of(config.net)
        self.scenarios = parse_all(config.scenarios)
        torch.manual_seed(config.seed)
        model = build(config.net, config.net_options())
        self.model: Net = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=config.lr, weight_decay=config.weight_decay
        )
        self.replay = Replay(self._capacities())
        self.batches = np.random.default_rng([config.seed, 2])
        self.started_from = ""
        if start is not None:
            self._adopt(start)
        self.step = 0
        self.rounds = 0
        self.seconds = 0.0
        self.positions = 0
        self.wait_seconds = 0.0

    def _adopt(self, start: Checkpoint) -> None:
        card, origin = start.card, "start"
        if (card.net, card.net_options) != (self.config.net, self.config.net_options()):
            raise CheckpointError(f"{origin}: net {card.net} {card.net_options}, not this run's")
        self.model.load_state_dict(store.restore_model(start, origin=origin).state_dict())
        self.started_from = card.weights_sha256

    def _capacities(self) -> dict[tuple[int, int, int], int]:
        planes = core.PLANES[self.kind.encoder]
        total = sum(s.weight for s in self.scenarios)
        out: dict[tuple[int, int, int], int] = {}
        for scenario in self.scenarios:
            shape = (planes, *(self.kind.view or scenario.shape))
            part = math.ceil(self.config.replay * scenario.weight / total)
            out[shape] = out.get(shape, 0) + part
        return out

    @property
    def done(self) -> bool:
        """Whether all updates have been made."""
        return self.step >= self.config.steps

    def learning_rate(self) -> float:
        """Return the rate of the next update: a linear warm-up, then half a cosine to 0."""
        config = self.config
        if self.step < config.warmup:
            return config.lr * (self.step + 1) / config.warmup
        span = max(config.steps - config.warmup, 1)
        return config.lr * 0.5 * (1 + math.cos(math.pi * (self.step - config.warmup) / span))

    def generate(
        self, number: int, student: Net | None, stop: Callable[[], bool] = lambda: False
    ) -> tuple[list[Examples], dict[str, float]]:
        """Play the games of round `number`: a pure function of the seed, round and student.

        Raises:
            Cancelled: `stop()` turned true.
        """
        config = self.config
        random = np.random.default_rng([config.seed, 3, number])
        parts: list[Examples] = []
        figures: dict[str, float] = {}
        start = time.perf_counter()
        for scenario in draw(self.scenarios, config.round_sets, random):
            recipe = Recipe(
                encoder=self.kind.encoder,
                games=config.games,
                turns=config.turns,
                explore=config.explore,
                student_share=config.student_share,
                eat_bonus=config.eat_bonus,
                seek_bonus=config.seek_bonus,
                quiet_share=config.quiet_share,
                temperature=config.temperature,
                value_scale=config.value_scale,
                outcome_weight=config.outcome_weight,
            )
            part, found = play(scenario, recipe, int(random.integers(2**31)), student, stop)
            parts.append(part)
            figures |= {f"{key}/{scenario}": value for key, value in found.items()}
        figures["generate_seconds"] = time.perf_counter() - start
        return parts, figures

    def round(
        self, pool: ThreadPoolExecutor, stop: Callable[[], bool] = lambda: False
    ) -> dict[str, float]:
        """Train `round_steps` updates while the next games are played; return figures.

        The first round has nothing to train on and waits for its own games.

        Raises:
            Cancelled: `stop()` turned true; the state is that of the round's start.
        """
        start = time.perf_counter()
        if self.rounds == 0 and len(self.replay) == 0:
            self._take(pool.submit(self.generate, 0, None, stop).result()[0])
        before = self._snapshot()
        student = copy.deepcopy(self.model).eval()
        number = self.rounds + 1
        plays = number > self.config.student_after
        ahead = pool.submit(self.generate, number, student if plays else None, stop)
        try:
            figures = self._train(ahead, stop)
            trained = time.perf_counter()
            parts, found = ahead.result()
        except Cancelled:
            self._rewind(before)
            raise
        self._take(parts)
        self.wait_seconds = time.perf_counter() - trained
        self.rounds = number
        self.seconds += time.perf_counter() - start
        return {
            **figures,
            **found,
            "round": float(self.rounds),
            "replay": float(len(self.replay)),
            "positions_total": float(self.positions),
            "seconds": self.seconds,
            "train_seconds": trained - start,
            "wait_seconds": self.wait_seconds,
        }

    def _take(self, parts: list[Examples]) -> None:
        for part in parts:
            self.replay.add(part)
            self.positions += len(part)

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

    def _train(self, ahead: Future[Any], stop: Callable[[], bool]) -> dict[str, float]:
        totals: dict[str, float] = {}
        count = min(self.config.round_steps, self.config.steps - self.step)
        for _ in range(count):
            if stop():
                raise Cancelled
            if ahead.done():
                ahead.result()  # an error there ends the round here
            for key, value in self._update().items():
                totals[key] = totals.get(key, 0.0) + value / count
        return totals

    def _update(self) -> dict[str, float]:
        config = self.config
        examples = self.replay.sample(config.batch, self.batches)
        first = int(self.batches.integers(len(shape_keeping(*examples.obs.shape[-2:]))))
        obs, policy = augment(examples.obs, examples.policy, first)
        target, value = torch.from_numpy(policy), torch.from_numpy(examples.value)
        rate = self.learning_rate()
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        logits, guess = self.model(torch.from_numpy(obs))
        policy_loss = functional.cross_entropy(logits, target)
        value_loss = functional.mse_loss(guess[:, 0], value)
        loss = policy_loss + config.value_weight * value_loss
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), config.grad_norm)
        if not torch.isfinite(norm):
            raise FloatingPointError(f"gradients are not finite at step {self.step}")
        self.optimizer.step()
        self.step += 1
        best = target.gather(1, logits.detach().argmax(1, keepdim=True))[:, 0]
        entropy = -(target * target.clamp_min(1e-9).log()).sum(1).mean()
        return {
            "policy_loss": policy_loss.item(),
            "policy_kl": policy_loss.item() - entropy.item(),
            "value_loss": value_loss.item(),
            "agreement": (best >= target.amax(1) - 1e-6).float().mean().item(),
            "blunders": (best < 1e-3).float().mean().item(),
            "grad_norm": norm.item(),
            "lr": rate,
        }

    def card(self, weights: dict[str, Any]) -> ModelCard:
        """Return the model card for `weights` at the present step."""
        card = ModelCard(
            name=self.config.name,
            net=self.config.net,
            net_options=self.config.net_options(),
            encoder=self.kind.encoder,
            planes=core.PLANES[self.kind.encoder],
            view=self.kind.view,
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
        weights = store.weights_of(self.model)
        return Checkpoint(
            card=self.card(weights),
            weights=weights,
            optimizer=store.optimizer_arrays(self.optimizer, self.model),
            replay=self.replay.pack(),
            config=msgspec.to_builtins(self.config),
            counters={
                "started_from": self.started_from,
                "step": self.step,
                "round": self.rounds,
                "seconds": self.seconds,
                "positions": self.positions,
            },
            rng={"batches": store.pack_generator(self.batches), "torch": store.pack_torch_rng()},
        )

    @classmethod
    def resume(cls, saved: Checkpoint, *, origin: str) -> "Imitation":
        """Continue from a checkpoint of this method.

        Raises:
            CheckpointError: another method's checkpoint, or one that does not fit.
        """
        if saved.card.method != METHOD:
            raise CheckpointError(f"{origin}: trained by {saved.card.method!r}, not by {METHOD!r}")
        try:
            run = cls(msgspec.convert(saved.config, ImitationConfig))
            run.replay.unpack(saved.replay)
            counters = saved.counters
            run.started_from = str(counters["started_from"])
            run.step, run.rounds = int(counters["step"]), int(counters["round"])
            run.seconds, run.positions = float(counters["seconds"]), int(counters["positions"])
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{origin}: {error}") from None
        run.model.load_state_dict(store.restore_model(saved, origin=origin).state_dict())
        store.restore_optimizer(run.optimizer, run.model, saved.optimizer, origin=origin)
        run.batches = store.unpack_generator(saved.rng.get("batches", {}))
        store.unpack_torch_rng(saved.rng.get("torch", ""))
        return run


def train(
    run: Imitation,
    *,
    log: Callable[[int, dict[str, float]], None],
    save: Callable[[Checkpoint], object],
    stop: Callable[[], bool],
) -> bool:
    """Train until all updates are made or `stop()` turns true; return whether it finished.

    The state is saved every `checkpoint_seconds`, when stopped, and at the end; a stop gives up
    the round in progress, so that it takes effect at once. Torch is set to
    one thread, since the games are played in another one.
    """
    torch.set_num_threads(1)
    saved = time.monotonic()
    # OpenMP counts threads for each thread that calls it, so the games' thread says it again.
    with ThreadPoolExecutor(1, "games", torch.set_num_threads, (1,)) as pool:
        while not run.done and not stop():
            try:
                figures = run.round(pool, stop)
            except Cancelled:
                break
            log(run.step, figures)
            if time.monotonic() - saved > run.config.checkpoint_seconds and not run.done:
                save(run.checkpoint())
                saved = time.monotonic()
    save(run.checkpoint())
    return run.done
