"""Fits a network to labelled positions and writes it as the search reads it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from snakekit import core
from snakekit.trainer.value.config import ValueConfig
from snakekit.trainer.value.samples import Samples

HELD_OUT = 10
"""Every so many games are kept for judging the fit."""
_DECIDED = 20_000
_MOST = 1900.0


class ValueNet(nn.Module):
    """One layer over the picked rows, clipped to 0..1 and squared, beside direct weights."""

    def __init__(self) -> None:
        """Create a net that thinks every position even."""
        super().__init__()
        self.rows = nn.EmbeddingBag(core.VALUE_ROWS, core.VALUE_UNITS, mode="sum")
        self.skip = nn.EmbeddingBag(core.VALUE_ROWS, 1, mode="sum")
        self.bias = nn.Parameter(torch.full((core.VALUE_UNITS,), 0.3))
        self.out = nn.Parameter(torch.randn(core.VALUE_UNITS) * 0.1)
        nn.init.normal_(self.rows.weight, 0, 0.05)
        nn.init.zeros_(self.skip.weight)

    def forward(self, picked: Tensor) -> Tensor:
        """Map rows int32 `[n, features]` to log-odds of winning `[n]`."""
        hidden = (self.rows(picked) + self.bias).clamp(0, 1)
        logits: Tensor = (hidden * hidden) @ self.out + self.skip(picked)[:, 0]
        return logits


@dataclass(frozen=True)
class Fit:
    """How well a network explains positions that it has not seen, as mean cross-entropies."""

    positions: int
    loss: float
    floor: float
    """Of labels that are known exactly."""
    even: float
    """Of thinking every position as good as the mean one."""

    @property
    def explained(self) -> float:
        """Share of what can be told from positions that the network tells."""
        return (self.even - self.loss) / max(self.even - self.floor, 1e-9)


def targets(samples: Samples, config: ValueConfig) -> NDArray[np.float32]:
    """Return the chance to win that each position is fitted to, `[n]`."""
    score = samples.score.astype(np.float32)
    chance = 1 / (1 + np.exp(-np.clip(score, -_MOST, _MOST) / config.scale))
    chance = np.where(score > _DECIDED, 1.0, np.where(score < -_DECIDED, 0.0, chance))
    mixed = config.trust * chance + (1 - config.trust) * samples.result
    return np.where(samples.played == 1, mixed, chance).astype(np.float32)


def _entropy(chance: Tensor, believed: Tensor) -> float:
    return float(functional.binary_cross_entropy(believed.clamp(1e-6, 1 - 1e-6), chance))


def fit(
    samples: Samples,
    config: ValueConfig,
    *,
    stop: Callable[[], bool],
    on_epoch: Callable[[int, float, Fit], None],
) -> tuple[ValueNet, Fit] | None:
    """Return a network fitted to `samples` with how good it is, or None if stopped.

    Args:
        samples: positions of at least HELD_OUT games.
        config: epochs, batch, rate and targets.
        stop: asked after every update.
        on_epoch: told the epoch, the mean loss in it, and the fit after it.
    """
    torch.manual_seed(config.seed)
    net = ValueNet()
    picked = torch.from_numpy(samples.rows.astype(np.int32))
    wanted = torch.from_numpy(targets(samples, config))
    held = torch.from_numpy(samples.game % HELD_OUT == 0)
    rest = (~held).nonzero()[:, 0]
    updates = max(len(rest) // config.batch, 1)
    optimizer = torch.optim.Adam(net.parameters(), lr=config.lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, config.lr, total_steps=config.epochs * updates
    )
    seen = wanted[held]
    floor, even = _entropy(seen, seen), _entropy(seen, seen.mean().expand_as(seen))
    for epoch in range(1, config.epochs + 1):
        order = rest[torch.randperm(len(rest))]
        losses = 0.0
        for part in torch.split(order, config.batch)[:updates]:
            loss = functional.binary_cross_entropy_with_logits(net(picked[part]), wanted[part])
            optimizer.zero_grad()
            torch.autograd.backward(loss)
            optimizer.step()
            schedule.step()
            losses += float(loss.detach())
            if stop():
                return None
        with torch.no_grad():
            judged = functional.binary_cross_entropy_with_logits(net(picked[held]), seen)
        found = Fit(len(samples.score), float(judged), floor, even)
        on_epoch(epoch, losses / updates, found)
    return net, found


def to_bytes(net: ValueNet, config: ValueConfig) -> bytes:
    """Return the network in whole numbers, as `core.LearnedValue` reads it."""
    one, parts = core.VALUE_ONE, core.VALUE_PARTS
    shape = np.array([core.VALUE_VERSION, core.VALUE_ROWS, core.VALUE_UNITS], "<i4")

    def whole(values: Tensor, unit: float, kind: str) -> bytes:
        rounded = np.round(values.detach().numpy().astype(np.float64) * unit)
        limits = np.iinfo(kind)
        return np.clip(rounded, limits.min, limits.max).astype(kind).tobytes()

    return b"".join(
        [
            b"snakeval",
            shape.tobytes(),
            whole(net.rows.weight, one, "<i2"),
            whole(net.bias, one, "<i2"),
            whole(net.out, config.scale * parts, "<i2"),
            whole(net.skip.weight[:, 0], config.scale * parts, "<i4"),
        ]
    )
