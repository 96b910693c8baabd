"""Imitation of the alpha-beta search: the net learns to answer at once what a search finds out.

A round (see `rounds.py`) plays games with the net of its start as one of the players. The policy
target is a softmax over the search's root scores (proved losses excluded), the value target a mix
of the game's outcome and the search's squashed score; the loss is cross-entropy plus
`value_weight` times squared error.
"""

import copy
import time
from collections.abc import Callable
from typing import Annotated

import msgspec
import numpy as np
import torch
from msgspec import Meta
from torch.nn import functional

from snakekit import core
from snakekit.trainer.checkpoint import Checkpoint
from snakekit.trainer.generate import Examples, Recipe, play, room
from snakekit.trainer.model import Net, kind_of
from snakekit.trainer.replay import Replay
from snakekit.trainer.rounds import Rounds, Stop, capacities
from snakekit.trainer.scenario import PATTERN, draw, parse_all
from snakekit.trainer.schedule import warm_cosine
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


class Imitation(Rounds[ImitationConfig, Replay[Examples], list[Examples]]):
    """The state of one training run."""

    METHOD = METHOD
    CONFIG = ImitationConfig

    def __init__(self, config: ImitationConfig, start: Checkpoint | None = None) -> None:
        """See `Rounds`."""
        self.kind = kind_of(config.net)
        games = parse_all(config.scenarios)
        planes = core.PLANES[self.kind.encoder]
        shapes = [(planes, *(self.kind.view or s.shape)) for s in games]
        super().__init__(
            config, config.net, Replay(room, capacities(games, shapes, config.replay)), start
        )
        self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def _optimizer(self) -> torch.optim.Optimizer:
        config = self.config
        return torch.optim.AdamW(
            self.model.parameters(), lr=config.lr, weight_decay=config.weight_decay
        )

    def learning_rate(self) -> float:
        """Return the rate of the next update."""
        config = self.config
        return warm_cosine(self.step, lr=config.lr, warmup=config.warmup, steps=config.steps)

    def generate(
        self, number: int, student: Net | None, stop: Stop = lambda: False
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

    def _ahead(self, number: int) -> Callable[[Stop], tuple[list[Examples], dict[str, float]]]:
        plays = number > self.config.student_after
        student = copy.deepcopy(self.model).eval() if plays else None
        return lambda stop: self.generate(number, student, stop)

    def _accept(self, played: list[Examples]) -> int:
        for part in played:
            self.replay.add(part)
        return sum(map(len, played))

    def _updates(self) -> int:
        return self.config.round_steps

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
