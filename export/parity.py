"""Gates: does an exported model still answer as the net it came from?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snakekit.export.observations import Sample
from snakekit.export.session import Answers, Session

BATCHES = (1, 2, 7, 256)
"""Batch sizes tried: one, two, an odd one, and the largest a server uses."""
TIE = 0.05
"""Logits closer than this are a tie: either move is as good."""

Reference = Callable[[NDArray[np.uint8]], Answers]


class GateError(Exception):
    """A gate that was not passed; the message has the figures."""


@dataclass(frozen=True)
class Gate:
    """Figures of a gate and whether they are good enough."""

    figures: dict[str, float]
    passed: bool
    rule: str
    """What was asked for, in words."""

    def text(self) -> str:
        """Return the figures in one line."""
        return ", ".join(f"{key} {value:.6g}" for key, value in self.figures.items())


def _largest(a: Answers, b: Answers) -> float:
    # NaN must fail the gate, and NaN compares false, so it is turned into infinity.
    gap = max(float(np.abs(x - y).max()) for x, y in zip(a, b, strict=True))
    return gap if np.isfinite(gap) else float("inf")


def exact_gate(
    reference: Reference, session: Session, samples: Sequence[Sample], *, tolerance: float
) -> Gate:
    """Compare a float model with its reference.

    Every observation at the largest batch, some at each other batch size; the same observation
    must also get the same answer alone, in the middle of a batch, and at its end. All largest
    absolute differences (logits and values alike) must stay within `tolerance`.
    """
    keys = ("policy_max_abs", "value_max_abs", "batch_max_abs", "place_max_abs")
    worst = dict.fromkeys(keys, 0.0)
    for sample in samples:
        expected = reference(sample.obs)
        found = session.batched(sample.obs, BATCHES[-1])
        for key, a, b in zip(keys[:2], expected, found, strict=True):
            worst[key] = max(worst[key], _largest((a, a), (b, b)))
        for batch in BATCHES[:-1]:
            few = slice(0, min(8 * batch, len(sample.obs)))
            again = session.batched(sample.obs[few], batch)
            gap = _largest(again, (expected[0][few], expected[1][few]))
            worst["batch_max_abs"] = max(worst["batch_max_abs"], gap)
        worst["place_max_abs"] = max(worst["place_max_abs"], _place_gap(session, sample.obs))
    figures = {"observations": float(sum(len(s.obs) for s in samples)), **worst}
    return Gate(figures, max(worst.values()) < tolerance, f"every difference below {tolerance:g}")


def _place_gap(session: Session, obs: NDArray[np.uint8]) -> float:
    """Return how much an answer depends on its place in a batch."""
    batch = obs[:33]
    whole = session(batch)
    turned = session(np.ascontiguousarray(batch[::-1]))
    return _largest(whole, (turned[0][::-1], turned[1][::-1]))


def padding_gap(session: Session, samples: Sequence[Sample]) -> float:
    """Return the largest difference between boards alone and inside a larger tensor."""
    worst = 0.0
    for sample in samples:
        obs = sample.obs[:16]
        n, planes, rows, cols = obs.shape
        padded = np.zeros((n, planes, rows + 2, cols + 5), np.uint8)
        padded[:, :, :rows, :cols] = obs
        worst = max(worst, _largest(session(obs), session(padded)))
    return worst


def close_gate(
    reference: Reference, session: Session, samples: Sequence[Sample], *, agreement: float
) -> Gate:
    """Compare a quantized model with its reference by the moves they would play.

    Counted are positions with at least two safe moves whose two best logits differ by `TIE` or
    more; the best safe move must be the same in at least the share `agreement` of them. The mean
    divergence of the policies (nats) and the error of the value are reported.
    """
    expected = [reference(s.obs) for s in samples]
    found = [session.batched(s.obs, BATCHES[-1]) for s in samples]
    policy, value = (np.concatenate(parts) for parts in zip(*expected, strict=True))
    other, guess = (np.concatenate(parts) for parts in zip(*found, strict=True))
    allowed = np.concatenate([s.allowed for s in samples])
    masked = np.where(allowed, policy, -np.inf)
    ranked = np.sort(masked, 1)
    with np.errstate(invalid="ignore"):
        counted = (allowed.sum(1) >= 2) & (ranked[:, 3] - ranked[:, 2] >= TIE)
    same = masked.argmax(1) == np.where(allowed, other, -np.inf).argmax(1)
    kl = _divergence(policy, other)
    figures = {
        "observations": float(len(policy)),
        "compared": float(counted.sum()),
        "tie_margin": TIE,
        "agreement": float(same[counted].mean()) if counted.any() else 0.0,
        "kl_mean": float(kl.mean()),
        "kl_p99": float(np.quantile(kl, 0.99)),
        "value_mean_abs": float(np.abs(value - guess).mean()),
        "value_max_abs": float(np.abs(value - guess).max()),
    }
    finite = bool(np.isfinite(other).all() and np.isfinite(guess).all())
    rule = f"the best safe move agrees in at least {agreement:.1%} of the positions compared"
    return Gate(figures, finite and figures["agreement"] >= agreement, rule)


def _divergence(policy: NDArray[np.float32], other: NDArray[np.float32]) -> NDArray[np.float64]:
    def log_softmax(x: NDArray[np.float32]) -> NDArray[np.float64]:
        shifted = x.astype(np.float64) - x.max(1, keepdims=True)
        return np.asarray(shifted - np.log(np.exp(shifted).sum(1, keepdims=True)))

    a, b = log_softmax(policy), log_softmax(other)
    return np.asarray((np.exp(a) * (a - b)).sum(1))
