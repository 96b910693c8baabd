"""What a net learns from a search: a policy over moves and a value, from root scores.

Scores are those of `core.VectorEnv.search`: float32 `[N, 4]`, -inf for moves not searched, the
rest in the evaluation's unit. Within the search's horizon a decided game lies far outside the
range of the evaluation: a win at a large number minus the turns until then, a loss at minus that
number plus the turns. The search is pessimistic (the others see our move), so such a loss is what
can be forced on a player whose moves are known, which is also the player that the net is taught
not to be.
"""

import numpy as np
from numpy.typing import NDArray

DECIDED = 20_000
"""Scores beyond this are decided games; evaluations stay below 2,000 and draws at -2,000."""

Floats = NDArray[np.float32]


def soft_targets(scores: Floats, temperature: float, turn_temperature: float = 1.0) -> Floats:
    """Return move probabilities `[N, 4]` that favour higher scores.

    A softmax over scores / `temperature`. Where a move wins, only winning moves count, sooner ones
    more; losing moves count only where every move loses, later ones more; both with
    `turn_temperature` in turns. Moves not searched get 0; a row without any searched move is
    uniform over the four.

    Args:
        scores: `[N, 4]`, see the module's description.
        temperature: in the unit of the scores, above 0.
        turn_temperature: in turns, above 0.
    """
    best = scores.max(1, keepdims=True)
    best = np.where(np.isneginf(best), 0, best)
    decided = np.abs(best) > DECIDED
    scale = np.where(decided, turn_temperature, temperature)
    gap = np.where(decided & (scores < DECIDED) & (best > 0), -np.inf, (scores - best) / scale)
    gap = np.where(~decided & (scores < -DECIDED), -np.inf, gap)
    weights = np.exp(np.maximum(gap, -80.0)) * np.isfinite(gap)
    total = weights.sum(1, keepdims=True)
    uniform = np.full_like(weights, 0.25)
    return np.where(total > 0, weights / np.where(total > 0, total, 1), uniform).astype(np.float32)


def losing(scores: Floats) -> NDArray[np.bool_]:
    """Return `[N, 4]`: was the move searched and found to lose?"""
    return (scores < -DECIDED) & np.isfinite(scores)


def with_bonus(scores: Floats, where: NDArray[np.bool_], bonus: float) -> Floats:
    """Return `scores` `[N, 4]` with `bonus` added `where` asked, except for decided games."""
    open_games = np.abs(scores) < DECIDED
    return np.where(where & open_games, scores + np.float32(bonus), scores).astype(np.float32)


def search_values(scores: Floats, scale: float) -> Floats:
    """Return the search's opinion of each state, `[N]` in -1..1.

    The best score through tanh(score / `scale`); a win is 1, a loss -1, and so is a state without
    any searched move.
    """
    best = scores.max(1)
    value = np.tanh(np.where(np.isneginf(best), -DECIDED * 2, best) / np.float32(scale))
    value = np.where(best > DECIDED, 1.0, np.where(best < -DECIDED, -1.0, value))
    return value.astype(np.float32)
