"""Updates of an all-seat net from positions with targets."""

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from snakekit.trainer.model import Net
from snakekit.trainer.nash.examples import Examples
from snakekit.trainer.nash.game import Floats


def evaluator(model: Net, batch: int = 512) -> Callable[[NDArray[np.uint8]], Floats]:
    """Return the model's outcome logits as a function of features, without gradients."""

    def evaluate(obs: NDArray[np.uint8]) -> Floats:
        with torch.inference_mode():
            parts = [
                model(torch.from_numpy(obs[start : start + batch]))[1].numpy()
                for start in range(0, max(len(obs), 1), batch)
            ]
        return np.concatenate(parts)

    return evaluate


def losses(model: Net, batch: Examples) -> dict[str, Tensor]:
    """Return the losses of a batch.

    `outcome` and `policy` are cross-entropies less the targets' own entropy, so 0 is perfect; the
    policy's is a mean over living seats. `value` is the mean squared error of the chances to win.
    """
    policy, outcome = model(torch.from_numpy(batch.obs))
    wanted, target = torch.from_numpy(batch.policy), torch.from_numpy(batch.outcome)
    seats = wanted.sum(2).clamp(max=1)
    every = -(wanted * (policy.log_softmax(2) - wanted.clamp_min(1e-9).log())).sum(2)
    guess = outcome.log_softmax(1)
    gap = -(target * (guess - target.clamp_min(1e-9).log())).sum(1)
    return {
        "policy": (every * seats).sum() / seats.sum(),
        "outcome": gap.mean(),
        "value": functional.mse_loss(guess.detach().exp(), target),
    }


class Learner:
    """A net with its optimizer; the rate warms up, stays, and falls along half a cosine."""

    def __init__(
        self,
        model: Net,
        *,
        lr: float,
        steps: int,
        warmup: int = 100,
        weight_decay: float = 1e-5,
        grad_norm: float = 1.0,
        policy_weight: float = 1.0,
        average: float = 0.0,
    ) -> None:
        """Train `model` for `steps` updates; `average` is the share that its mean keeps each."""
        self.model = model
        self.average: Net = copy.deepcopy(model).eval()
        """Exponential mean of the weights: what plays and is exported."""
        self.keep = average
        self.lr, self.steps, self.warmup = lr, steps, warmup
        self.grad_norm, self.policy_weight = grad_norm, policy_weight
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=weight_decay)
        self.step = 0

    def rate(self) -> float:
        """Return the learning rate of the next update."""
        if self.step < self.warmup:
            return self.lr * (self.step + 1) / self.warmup
        span = max(self.steps - self.warmup, 1)
        return self.lr * 0.5 * (1.02 + 0.98 * math.cos(math.pi * (self.step - self.warmup) / span))

    def update(self, batch: Examples) -> dict[str, float]:
        """Make one update; return its figures.

        Raises:
            FloatingPointError: gradients are not finite.
        """
        rate = self.rate()
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        found = losses(self.model, batch)
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(found["outcome"] + self.policy_weight * found["policy"])
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.grad_norm)
        if not torch.isfinite(norm):
            raise FloatingPointError(f"gradients are not finite at step {self.step}")
        self.optimizer.step()
        self.step += 1
        self._mix()
        return {
            "policy_kl": found["policy"].item(),
            "outcome_kl": found["outcome"].item(),
            "value_loss": found["value"].item(),
            "grad_norm": norm.item(),
            "lr": rate,
        }

    @torch.no_grad()
    def _mix(self) -> None:
        # Early on it is the plain mean, so that the start is soon forgotten.
        keep = min(self.keep, self.step / (self.step + 10))
        for mean, value in zip(self.average.parameters(), self.model.parameters(), strict=True):
            mean.lerp_(value, 1 - keep)


def answer_all(model: Net, obs: NDArray[np.uint8]) -> tuple[Floats, Floats]:
    """Return policy logits `[N, slots, 4]` and outcome logits `[N, slots + 1]`, no gradients."""
    with torch.inference_mode():
        policy, outcome = model(torch.from_numpy(obs))
        return policy.numpy(), outcome.numpy()


def infer_policy(model: Net, obs: NDArray[np.uint8]) -> NDArray[Any]:
    """Return policy logits `[N, slots, actions]` without gradients."""
    with torch.inference_mode():
        return np.asarray(model(torch.from_numpy(obs))[0].numpy())
