"""Intervals of what was counted."""

import math

import numpy as np
from numpy.typing import NDArray

# The two-sided 95 % point of the normal distribution.
_Z95 = 1.959963984540054


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Return the Wilson 95 % interval of a share, (0, 1) without trials."""
    if trials == 0:
        return 0.0, 1.0
    share, z2 = successes / trials, _Z95**2
    centre = share + z2 / (2 * trials)
    spread = _Z95 * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2))
    scale = 1 + z2 / trials
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)


def block_interval(
    values: NDArray[np.float64], blocks: NDArray[np.intp], *, resamples: int = 1000, seed: int = 0
) -> tuple[float, float]:
    """Return the bootstrap 95 % interval of the mean of `values` `[N]`.

    Whole blocks are resampled: `blocks` `[N]` numbers them 0..B-1. Games of one block share their
    start and line-up, so they are no independent trials.
    """
    count = int(blocks.max()) + 1
    sums = np.bincount(blocks, values, count)
    sizes = np.bincount(blocks, minlength=count)
    drawn = np.random.default_rng(seed).integers(count, size=(resamples, count))
    means = sums[drawn].sum(1) / sizes[drawn].sum(1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)
