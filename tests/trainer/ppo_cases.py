"""Small PPO configurations and batches for the tests."""

from typing import Any

import msgspec
import numpy as np
import torch

from snakekit.trainer.model import build
from snakekit.trainer.ppo.config import PpoConfig
from snakekit.trainer.ppo.loss import Batch, masked_log_probs

TINY = PpoConfig(
    channels=8,
    blocks=1,
    hidden=8,
    scenarios=("7x7x2", "7x7x4"),
    iterations=4,
    envs=4,
    steps=10,
    epochs=2,
    minibatches=3,
    lr=3e-3,
    selfplay_share=0.3,
    builtins=("greedy", "search1"),
    builtin_share=0.3,
    gate_every=2,
    gate_games=24,
    gate_level=0.01,
    max_turns=30,
    torch_threads=1,
    checkpoint_seconds=0,
)
TIMES = ("seconds", "_per_s", "_share")


def tiny(**changes: Any) -> PpoConfig:
    return msgspec.structs.replace(TINY, **changes)


def untimed(figures: dict[str, float]) -> dict[str, float]:
    """Return the figures that two equal runs share."""
    return {k: v for k, v in figures.items() if not k.endswith(TIMES)}


def made_batch(count: int, seed: int = 0, config: PpoConfig = TINY) -> Batch:
    """Return made-up decisions on 7x7 boards, whose log-probs are those of a net of that seed."""
    torch.manual_seed(seed)
    random = np.random.default_rng(seed)
    net = build(config.net, config.net_options())
    obs = random.integers(0, 20, (count, 22, 7, 7), dtype=np.uint8)
    obs[:, 0], obs[:, 1] = 1, 0
    obs[np.arange(count), 1, random.integers(7, size=count), random.integers(7, size=count)] = 1
    mask = random.random((count, 4)) < 0.6
    mask[np.arange(count), random.integers(4, size=count)] = True
    moves = np.where(mask, random.random((count, 4)), -1).argmax(1)
    shown = torch.from_numpy(obs)
    with torch.no_grad():
        logits, value = net(shown)
        log_probs = masked_log_probs(logits, torch.from_numpy(mask))
    chosen = torch.from_numpy(moves)
    advantages = torch.from_numpy(random.normal(size=count).astype(np.float32))
    return Batch(
        obs=shown,
        mask=torch.from_numpy(mask),
        moves=chosen,
        log_probs=log_probs.gather(1, chosen[:, None])[:, 0],
        values=value[:, 0],
        advantages=advantages,
        returns=advantages + value[:, 0],
    )
