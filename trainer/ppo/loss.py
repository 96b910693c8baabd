"""The loss: clipped policy ratio, value error and entropy, over allowed moves only."""

from dataclasses import dataclass

import torch
from torch import Tensor

FORBIDDEN = -1e9
"""Logit of a move that is masked. Finite, as -inf makes its gradient and entropy NaN."""


@dataclass(frozen=True)
class Batch:
    """Decisions of the learner; all tensors share their first axis and device."""

    obs: Tensor
    """uint8 `[N, planes, rows, cols]`."""
    mask: Tensor
    """bool `[N, 4]`, moves that could be chosen."""
    moves: Tensor
    """int64 `[N]`, the moves chosen."""
    log_probs: Tensor
    """float32 `[N]`, their log-probability under the acting weights."""
    values: Tensor
    """float32 `[N]`, the acting weights' value."""
    advantages: Tensor
    """float32 `[N]`, not normalized."""
    returns: Tensor
    """float32 `[N]`, advantage + value: what the value learns."""

    def __len__(self) -> int:
        """Return the number of decisions."""
        return len(self.moves)

    def rows(self, index: Tensor) -> "Batch":
        """Return the decisions at `index`."""
        return Batch(*(getattr(self, name)[index] for name in self.__dataclass_fields__))


@dataclass(frozen=True)
class Weights:
    """Of the parts of the loss."""

    clip: float
    value_clip: float
    value: float
    entropy: float


def masked_log_probs(logits: Tensor, mask: Tensor) -> Tensor:
    """Return log-probabilities `[N, 4]` over the moves that `mask` allows; all if it allows none.

    Forbidden moves have a large negative one and a probability of exactly 0.
    """
    allowed = mask | ~mask.any(-1, keepdim=True)
    return torch.log_softmax(logits.float().masked_fill(~allowed, FORBIDDEN), -1)


def entropy_of(log_probs: Tensor) -> Tensor:
    """Return the entropy `[N]` in nats of what `masked_log_probs` returned."""
    return -(log_probs.exp() * log_probs).sum(-1)


def loss_sums(logits: Tensor, value: Tensor, batch: Batch, weights: Weights) -> dict[str, Tensor]:
    """Return sums over the batch: `loss` to be minimized, its parts, and what to watch.

    Sums, so that parts of a batch add up to the whole; divide by the number of decisions.
    `batch.advantages` are taken as they are.
    """
    log_probs = masked_log_probs(logits, batch.mask)
    chosen = log_probs.gather(1, batch.moves[:, None])[:, 0]
    change = chosen - batch.log_probs
    ratio = change.exp()
    clipped = ratio.clamp(1 - weights.clip, 1 + weights.clip)
    policy = -torch.min(ratio * batch.advantages, clipped * batch.advantages).sum()
    guess = value[:, 0].float()
    error = (guess - batch.returns) ** 2
    if weights.value_clip > 0:
        near = batch.values + (guess - batch.values).clamp(-weights.value_clip, weights.value_clip)
        error = torch.max(error, (near - batch.returns) ** 2)
    value_loss = 0.5 * error.sum()
    entropy = entropy_of(log_probs).sum()
    with torch.no_grad():
        # Schulman's estimator of KL(acting, present): never negative, low variance.
        kl = (ratio - 1 - change).sum()
        outside = ((ratio - 1).abs() > weights.clip).float().sum()
    return {
        "loss": policy + weights.value * value_loss - weights.entropy * entropy,
        "policy_loss": policy.detach(),
        "value_loss": value_loss.detach(),
        "entropy": entropy.detach(),
        "kl": kl,
        "clip_fraction": outside,
    }


def normalized(advantages: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    """Return (advantages - mean) / deviation; only the mean is taken off where all are alike."""
    return (advantages - mean) / (deviation + 1e-8)
