"""What a net learns from a search: a policy over moves and a value, from root scores.

Scores are those of `core.Games.search`: float32 `[N, 4]`, -inf for moves not searched, proved
losses at -1e6 plus the turns left, proved wins at 1e6 minus the turns left, the rest in hundredths
of the evaluation's unit.
"""

import numpy as np
from numpy.typing import NDArray

PROOF = 5e5
"""Scores beyond this are proofs; evaluations stay far below."""

Floats = NDArray[np.float32]


def soft_targets(scores: Floats, temperature: float, proof_temperature: float = 1.0) -> Floats:
    """Return move probabilities `[N, 4]` that favour higher scores.

    A softmax over scores / `temperature`. Where a move wins by proof, only winning moves count,
    sooner ones more; proved losses count only where every move loses, later ones more; both with
    `proof_temperature` in turns. Moves not searched get 0; a row without any searched move is
    uniform over the four.

    Args:
        scores: `[N, 4]`, see the module's description.
        temperature: in the unit of the scores, above 0.
        proof_temperature: in turns, above 0.
    """
    best = scores.max(1, keepdims=True)
    best = np.where(np.isneginf(best), 0, best)
    proved = np.abs(best) > PROOF
    scale = np.where(proved, proof_temperature, temperature)
    # With a win in hand everything else is far below; with an evaluation in hand losses are; so
    # the differences alone sort the three kinds apart once they are clipped.
    gap = np.where(proved & (scores < PROOF) & (best > 0), -np.inf, (scores - best) / scale)
    gap = np.where(~proved & (scores < -PROOF), -np.inf, gap)
    weights = np.exp(np.maximum(gap, -80.0)) * np.isfinite(gap)
    total = weights.sum(1, keepdims=True)
    uniform = np.full_like(weights, 0.25)
    return np.where(total > 0, weights / np.where(total > 0, total, 1), uniform).astype(np.float32)


def search_values(scores: Floats, scale: float) -> Floats:
    """Return the search's opinion of each state, `[N]` in -1..1.

    The best score through tanh(score / `scale`); a proved win is 1 and a proved loss -1, and so
    is a state without any searched move.
    """
    best = scores.max(1)
    value = np.tanh(np.where(np.isneginf(best), -PROOF * 2, best) / np.float32(scale))
    value = np.where(best > PROOF, 1.0, np.where(best < -PROOF, -1.0, value))
    return value.astype(np.float32)
