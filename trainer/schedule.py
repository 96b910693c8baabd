"""Learning rates by step."""

import math


def warm_cosine(step: int, *, lr: float, warmup: int, steps: int, floor: float = 0.0) -> float:
    """Return the rate of update `step` (from 0): a linear warm-up to `lr`, then half a cosine.

    Args:
        step: updates made before.
        lr: the highest rate.
        warmup: updates until it is reached.
        steps: updates in all.
        floor: share of `lr` that is left at the end.
    """
    if step < warmup:
        return lr * (step + 1) / warmup
    fallen = 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(steps - warmup, 1)))
    return lr * (floor + (1 - floor) * fallen)
