"""Runs of `train nash` that take seconds."""

from snakekit.trainer.nash.config import NashConfig

TINY = NashConfig(
    scenarios=("5x5x2", "5x5x3"),
    channels=8,
    blocks=1,
    hidden=8,
    steps=24,
    batch=32,
    reuse=2,
    games=6,
    turns=8,
    iterations=32,
    replay=1000,
    gate_every=8,
    gate_games=12,
    gate_level=0.01,
    max_turns=30,
    checkpoint_seconds=0,
)
