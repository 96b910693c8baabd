"""Learning: some epochs of minibatches over what was just acted."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from snakekit.trainer.device import mixed, placed
from snakekit.trainer.generate import Cancelled
from snakekit.trainer.model import Net
from snakekit.trainer.ppo.config import PpoConfig
from snakekit.trainer.ppo.loss import Batch, Weights, loss_sums, normalized

_ORDER = 23


class Group(Protocol):
    """The learners that share one set of weights, each with decisions of its own."""

    rank: int
    size: int

    def total(self, values: Tensor) -> Tensor:
        """Return the sum of `values` over all learners."""

    def gather(self, places: Any) -> list[Any]:
        """Return what every learner gave, by rank."""

    def wrap(self, net: Net, device: torch.device) -> nn.Module:
        """Return `net` so that its gradients are averaged over all learners."""


class Alone:
    """A group of one."""

    rank, size = 0, 1

    def total(self, values: Tensor) -> Tensor:
        """Return `values`."""
        return values

    def gather(self, places: Any) -> list[Any]:
        """Return a list of one."""
        return [places]

    def wrap(self, net: Net, device: torch.device) -> nn.Module:
        """Return `net`."""
        return net


def scheduled(first: float, last: float, share: float, kind: str) -> float:
    """Return a rate after `share` (0..1) of a run that goes from `first` to `last`."""
    if kind == "constant":
        return first
    if kind == "cosine":
        share = 0.5 * (1 - math.cos(math.pi * min(share, 1.0)))
    return first + (last - first) * min(share, 1.0)


class Learner:
    """The net in training with its optimizer."""

    def __init__(
        self, config: PpoConfig, model: Net, device: torch.device, group: Group | None = None
    ) -> None:
        """Train `model` on `device`, together with the rest of `group`."""
        self.config, self.device = config, device
        self.group = group or Alone()
        self.model = placed(model, device)
        self.optimizer = torch.optim.Adam(
            self.model.parameters(), lr=config.lr, eps=config.adam_eps
        )
        self.net = self.group.wrap(self.model, device)
        self._run: Callable[[Tensor], tuple[Tensor, Tensor]] = (
            torch.compile(self.net, dynamic=True) if config.compile else self.net
        )
        self.updates = 0

    def update(
        self, batch: Batch, iteration: int, stop: Callable[[], bool] = lambda: False
    ) -> dict[str, float]:
        """Learn from `batch`; return figures, means over its decisions and epochs.

        Args:
            batch: this learner's decisions.
            iteration: counted from 0; sets the rates and the order of the minibatches.
            stop: asked before every update.

        Raises:
            Cancelled: `stop()` was true; weights and optimizer are in between.
            FloatingPointError: a gradient was not finite.
        """
        config = self.config
        share = iteration / config.iterations
        rate = scheduled(config.lr, config.lr_final, share, config.schedule)
        weights = Weights(
            config.clip,
            config.value_clip,
            config.value_weight,
            scheduled(config.entropy, config.entropy_final, share, "linear"),
        )
        for slot in self.optimizer.param_groups:
            slot["lr"] = rate
        advantages = self._moments(batch.advantages) if config.normalize == "batch" else None
        totals: dict[str, Tensor] = {}
        norms: list[Tensor] = []
        epochs = 0
        for epoch in range(config.epochs):
            none = torch.zeros((), device=self.device)
            seen, count = totals.get("kl", none).clone(), totals.get("count", none).clone()
            for index in self._order(len(batch), iteration, epoch):
                if stop():
                    raise Cancelled
                norms.append(self._step(batch, index, weights, advantages, totals))
            epochs += 1
            if config.target_kl > 0:
                fresh = self.group.total(
                    torch.stack([(totals["kl"] - seen), (totals["count"] - count)])
                )
                if float(fresh[0] / fresh[1].clamp(min=1)) > config.target_kl:
                    break
        return self._figures(batch, totals, norms, rate, weights.entropy, epochs)

    def _order(self, count: int, iteration: int, epoch: int) -> list[Tensor]:
        config = self.config
        random = np.random.default_rng([config.seed, _ORDER, self.group.rank, iteration, epoch])
        parts = np.array_split(random.permutation(count), config.minibatches)
        if self.group.size == 1:
            parts = [part for part in parts if len(part)]
        return [torch.from_numpy(part).to(self.device) for part in parts]

    def _moments(self, advantages: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation over the decisions of the whole group."""
        wide = advantages.double()
        sums = torch.stack([wide.sum(), (wide**2).sum(), wide.new_tensor(float(len(wide)))])
        total = self.group.total(sums)
        mean = total[0] / total[2]
        deviation = (total[1] / total[2] - mean**2).clamp(min=0).sqrt()
        return mean.float(), deviation.float()

    def _step(
        self,
        batch: Batch,
        index: Tensor,
        weights: Weights,
        moments: tuple[Tensor, Tensor] | None,
        totals: dict[str, Tensor],
    ) -> Tensor:
        """Make one update from the decisions at `index`; return the gradient's norm."""
        config = self.config
        if config.normalize == "minibatch":
            moments = self._moments(batch.advantages[index])
        everyone = self.group.total(torch.tensor([float(len(index))], device=self.device))
        # Averaging over the group is left to it, so each member's sum is scaled by its size.
        scale = self.group.size / everyone[0].clamp(min=1)
        self.optimizer.zero_grad(set_to_none=True)
        parts = torch.split(index, config.micro_batch) if len(index) else (index,)
        for number, rows in enumerate(parts):
            part = batch.rows(rows)
            if moments is not None:
                part = Batch(
                    part.obs,
                    part.mask,
                    part.moves,
                    part.log_probs,
                    part.values,
                    normalized(part.advantages, *moments),
                    part.returns,
                )
            with self._quiet(last=number == len(parts) - 1):
                with mixed(self.device, config.precision):
                    logits, value = self._run(part.obs)
                sums = loss_sums(logits, value, part, weights)
                torch.autograd.backward(sums.pop("loss") * scale)
            sums["count"] = torch.tensor(float(len(rows)), device=self.device)
            for key, found in sums.items():
                totals[key] = totals[key] + found if key in totals else found
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), config.grad_norm)
        self.optimizer.step()
        self.updates += 1
        return norm

    def _quiet(self, *, last: bool) -> AbstractContextManager[Any]:
        """Exchange gradients only with the last part of a minibatch."""
        if last or not isinstance(self.net, nn.parallel.DistributedDataParallel):
            return nullcontext()
        silent: AbstractContextManager[Any] = self.net.no_sync()
        return silent

    def _figures(
        self,
        batch: Batch,
        totals: dict[str, Tensor],
        norms: list[Tensor],
        rate: float,
        entropy: float,
        epochs: int,
    ) -> dict[str, float]:
        norm = torch.stack(norms)
        if not bool(torch.isfinite(norm).all()):
            raise FloatingPointError("gradients are not finite: the weights before are kept")
        spread = batch.returns.double()
        error = (batch.returns - batch.values).double()
        sums = torch.stack(
            [
                *(totals[k].double() for k in sorted(totals)),
                spread.sum(),
                (spread**2).sum(),
                error.sum(),
                (error**2).sum(),
                spread.new_tensor(float(len(spread))),
            ]
        )
        *found, total, squares, miss, misses, n = self.group.total(sums).tolist()
        means = dict(zip(sorted(totals), found, strict=True))
        count = means.pop("count")
        variance = squares / n - (total / n) ** 2
        unexplained = misses / n - (miss / n) ** 2
        return {
            **{key: value / count for key, value in means.items()},
            "explained_variance": 1 - unexplained / variance if variance > 0 else 0.0,
            "mean_return": total / n,
            "grad_norm": float(norm.mean()),
            "lr": rate,
            "entropy_weight": entropy,
            "epochs": float(epochs),
        }
