"""Gates: does an exported model still answer as the net it came from?"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snakekit.export.samples import Answers, Run, Sample, Truth, in_batches

LARGEST = 256
"""Largest batch where none is given."""
TIE = 0.05
"""Logits closer than this are a tie: either move is as good."""
TOLERANCE = 1e-4
"""Largest difference of fp32, and of any precision between places in a batch."""
AGREEMENT = {"fp16": 0.995, "int8": 0.98}
"""Share of positions in which the best safe move has to be the same."""
OFF = {"fp16": 0.002, "int8": 0.02}
"""Largest mean error of the chances of a model for all seats.

Equilibria are made of them: one of payoffs off by at most e can be exploited for at most 2e.
"""

_PLACES = 33
_FEW = 8
"""Batches tried at each size but the largest."""


class GateError(Exception):
    """A gate that was not passed; the message has the figures."""


@dataclass(frozen=True)
class Gate:
    """Figures of a gate and whether they are good enough."""

    name: str
    figures: dict[str, float]
    passed: bool
    rule: str
    """What was asked for, in words."""

    def text(self) -> str:
        """Return the figures in one line."""
        return ", ".join(f"{key} {value:.6g}" for key, value in self.figures.items())

    def require(self) -> None:
        """Raise GateError unless it was passed."""
        if not self.passed:
            raise GateError(f"{self.name} refused; asked {self.rule}; found {self.text()}")


def batch_sizes(most: int) -> tuple[int, ...]:
    """Return the sizes to try: one, two, an odd one, and the largest that a server uses."""
    return tuple(sorted({min(n, most) for n in (1, 2, 7, most)}))


def gate_of(
    precision: str,
    truth: Truth,
    run: Run,
    *,
    most: int = LARGEST,
    tolerance: float = TOLERANCE,
    agreement: float | None = None,
) -> Gate:
    """Compare a model of `precision` with the net.

    Args:
        precision: `fp32` goes through `exact_gate`, others through `close_gate`.
        truth: positions and the net's answers.
        run: the model.
        most: the largest batch.
        tolerance: see `exact_gate`.
        agreement: see `close_gate`; None takes that of `AGREEMENT`.
    """
    if precision == "fp32":
        return exact_gate(truth, run, most=most, tolerance=tolerance)
    share = AGREEMENT[precision] if agreement is None else agreement
    return close_gate(precision, truth, run, most=most, agreement=share, tolerance=tolerance)


def exact_gate(truth: Truth, run: Run, *, most: int, tolerance: float) -> Gate:
    """Compare a float model with the net.

    Every observation at the largest batch, some at each other batch size; the same observation
    must also get the same answer wherever it stands in a batch. All largest absolute differences
    (logits and values alike) must stay below `tolerance`.
    """
    keys = ("policy_max_abs", "value_max_abs", "batch_max_abs", "place_max_abs")
    worst = dict.fromkeys(keys, 0.0)
    for sample, expected in zip(truth.samples, truth.answers, strict=True):
        found = in_batches(run, sample.obs, most)
        for key, a, b in zip(keys[:2], expected, found, strict=True):
            worst[key] = max(worst[key], _largest((a, a), (b, b)))
        for batch in batch_sizes(most)[:-1]:
            few = slice(0, min(_FEW * batch, len(sample.obs)))
            again = in_batches(run, sample.obs[few], batch)
            gap = _largest(again, (expected[0][few], expected[1][few]))
            worst["batch_max_abs"] = max(worst["batch_max_abs"], gap)
        worst["place_max_abs"] = max(worst["place_max_abs"], _place_gap(run, sample.obs, most))
    figures = {"observations": float(truth.positions), **worst}
    passed = max(worst.values()) < tolerance
    return Gate("fp32", figures, passed, f"every difference below {tolerance:g}")


def _largest(a: Answers, b: Answers) -> float:
    # NaN must fail the gate, and NaN compares false, so it is turned into infinity.
    gap = max(float(np.abs(x - y).max()) for x, y in zip(a, b, strict=True))
    return gap if np.isfinite(gap) else float("inf")


def _place_gap(run: Run, obs: NDArray[np.uint8], most: int) -> float:
    """Return how much an answer depends on its place in a batch."""
    batch = obs[: min(_PLACES, most)]
    whole = run(batch)
    turned = run(np.ascontiguousarray(batch[::-1]))
    return _largest(whole, (turned[0][::-1], turned[1][::-1]))


def padding_gap(run: Run, truth: Truth) -> float:
    """Return the largest difference between boards alone and inside a larger tensor."""
    worst = 0.0
    for sample in truth.samples:
        obs = sample.obs[:16]
        n, planes, rows, cols = obs.shape
        padded = np.zeros((n, planes, rows + 2, cols + 5), np.uint8)
        padded[:, :, :rows, :cols] = obs
        worst = max(worst, _largest(run(obs), run(padded)))
    return worst


def close_gate(
    precision: str, truth: Truth, run: Run, *, most: int, agreement: float, tolerance: float
) -> Gate:
    """Compare a model of reduced precision with the net by the moves they would play.

    Counted are positions with at least two safe moves whose two best logits differ by `TIE` or
    more; the best safe move must be the same in at least the share `agreement` of them, and so must
    the model's own best moves between the largest and the other batch sizes. Answers must be finite
    and, within one batch, differ by less than `tolerance` wherever a position stands. The mean
    divergence of the policies (nats) and the error of the value are reported.

    Of a model for all seats the moves of each one count, and the value is the chances of the
    outcomes, whose error (total variation, which bounds that of every seat's expected result) must
    on average be at most `OFF`.
    """
    expected = _joined(truth.answers)
    allowed = _rows(np.concatenate([s.allowed for s in truth.samples]))
    parts = tuple(in_batches(run, s.obs, most) for s in truth.samples)
    found = _joined(parts)
    wanted, given = _rows(expected[0]), _rows(found[0])
    counted = _counted(wanted, allowed)
    same = _best(wanted, allowed) == _best(given, allowed)
    small = [
        _same_in_small_batches(run, sample, answers[0], most)
        for sample, answers in zip(truth.samples, parts, strict=True)
    ]
    place = max(_place_gap(run, s.obs, most) for s in truth.samples)
    seated = allowed.any(1)
    kl = _divergence(wanted[seated], given[seated])
    value_gap = _value_gap(expected[1], found[1])
    figures = {
        "observations": float(truth.positions),
        "compared": float(counted.sum()),
        "tie_margin": TIE,
        "agreement": _share(same[counted]),
        "agreement_between_batches": _share(np.concatenate(small)),
        "place_max_abs": place,
        "kl_mean": float(kl.mean()),
        "kl_p99": float(np.quantile(kl, 0.99)),
        "value_mean_abs": float(value_gap.mean()),
        "value_max_abs": float(value_gap.max()),
    }
    finite = bool(np.isfinite(found[0]).all() and np.isfinite(found[1]).all())
    least = min(figures["agreement"], figures["agreement_between_batches"])
    rule = (
        f"the best safe move agrees in at least {agreement:.1%} of the positions compared, "
        f"and no answer depends on its place in the batch by {tolerance:g}"
    )
    passed = finite and least >= agreement and place < tolerance
    if expected[1].ndim == 2:
        rule += f", and chances are off by at most {OFF[precision]:g} on average"
        passed = passed and figures["value_mean_abs"] <= OFF[precision]
    return Gate(precision, figures, passed, rule)


def _rows(seats: NDArray[Any]) -> NDArray[Any]:
    """Return policies or safe moves of all seats as rows `[N, 4]`."""
    return seats.reshape(-1, seats.shape[-1])


def _value_gap(expected: NDArray[np.float32], found: NDArray[np.float32]) -> NDArray[np.float64]:
    if expected.ndim == 1:
        return np.asarray(np.abs(expected - found), np.float64)
    # Empty slots have logits that the softmax makes nothing of.
    a, b = np.exp(_log_softmax(expected)), np.exp(_log_softmax(found))
    return np.asarray(np.abs(a - b).sum(1) / 2)


def _joined(answers: tuple[Answers, ...]) -> Answers:
    return np.concatenate([p for p, _ in answers]), np.concatenate([v for _, v in answers])


def _share(same: NDArray[np.bool_]) -> float:
    return float(same.mean()) if len(same) else 0.0


def _counted(policy: NDArray[np.float32], allowed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    ranked = np.sort(np.where(allowed, policy, -np.inf), 1)
    with np.errstate(invalid="ignore"):
        return np.asarray((allowed.sum(1) >= 2) & (ranked[:, 3] - ranked[:, 2] >= TIE))


def _best(policy: NDArray[np.float32], allowed: NDArray[np.bool_]) -> NDArray[np.intp]:
    return np.asarray(np.where(allowed, policy, -np.inf).argmax(1))


def _same_in_small_batches(
    run: Run, sample: Sample, policy: NDArray[np.float32], most: int
) -> NDArray[np.bool_]:
    """Return, at each smaller batch, whether the best safe moves are those of `policy`."""
    parts = []
    few = min(_FEW * batch_sizes(most)[-2], len(sample.obs)) if most > 1 else len(sample.obs)
    allowed, own = _rows(sample.allowed[:few]), _rows(policy[:few])
    counted, wanted = _counted(own, allowed), _best(own, allowed)
    for batch in batch_sizes(most)[:-1] or (1,):
        found = _rows(in_batches(run, sample.obs[:few], batch)[0])
        parts.append((wanted == _best(found, allowed))[counted])
    return np.concatenate(parts)


def _divergence(policy: NDArray[np.float32], other: NDArray[np.float32]) -> NDArray[np.float64]:
    a, b = _log_softmax(policy), _log_softmax(other)
    return np.asarray((np.exp(a) * (a - b)).sum(1))


def _log_softmax(x: NDArray[np.float32]) -> NDArray[np.float64]:
    shifted = x.astype(np.float64) - x.max(1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(1, keepdims=True)))
