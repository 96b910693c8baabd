"""A sequential test between two players: stops as soon as the games have decided.

The hypotheses are that the first player is stronger by `elo0` or by `elo1`. One observation is a
block of two games from the same start with the seats swapped, worth 0, 1/4, 1/2, 3/4 or 1: the
games of a pair are alike, so counting them one by one would claim too much. The likelihood ratio
is the generalised one for these five outcomes (each hypothesis fixes the mean only, the rest is
fitted), and the bounds are Wald's, log(b / (1 - a)) and log((1 - b) / a).

Blocks count in the order of the schedule and only without gaps: those that end first have the
shorter games, and to look at them first would favour whoever wins quickly.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from snakekit.bench.arena.bout import BoutRecord

OUTCOMES = (0.0, 0.25, 0.5, 0.75, 1.0)
ERRORS = 0.05
_UNSEEN = 1e-3
Verdict = Literal["first is stronger", "first is not stronger", "undecided"]


def expected_score(elo: float) -> float:
    """Return the points a game of someone stronger by `elo`."""
    return 1 / (1 + 10 ** (-elo / 400))


def _fitted(shares: Sequence[float], mean: float) -> list[float]:
    """Return the likeliest distribution over OUTCOMES with the given mean, for observed shares."""
    from scipy import optimize

    gaps = [outcome - mean for outcome in OUTCOMES]
    # All weights 1 + x * gap stay positive between these, and the sum falls from +inf to -inf.
    low, high = -1 / max(gaps), -1 / min(gaps)
    margin = (high - low) * 1e-12

    def balance(x: float) -> float:
        return sum(s * g / (1 + x * g) for s, g in zip(shares, gaps, strict=True))

    x = float(optimize.brentq(balance, low + margin, high - margin))
    return [s / (1 + x * g) for s, g in zip(shares, gaps, strict=True)]


def log_ratio(counts: Sequence[int], elo0: float, elo1: float) -> float:
    """Return the log-likelihood ratio of `elo1` to `elo0` for counts of the five outcomes."""
    if not any(counts):
        return 0.0
    # A tiny count for outcomes not seen yet keeps both means possible.
    padded = [count or _UNSEEN for count in counts]
    shares = [count / sum(padded) for count in padded]
    under0 = _fitted(shares, expected_score(elo0))
    under1 = _fitted(shares, expected_score(elo1))
    return sum(n * math.log(b / a) for n, a, b in zip(padded, under0, under1, strict=True))


@dataclass(frozen=True)
class SprtState:
    """Where the test stands."""

    elo0: float
    elo1: float
    llr: float
    bound: float
    """The test ends when `llr` leaves -bound..bound."""
    blocks: int
    counts: tuple[int, ...]
    verdict: Verdict


class Sprt:
    """The test, fed with finished games in any order."""

    def __init__(self, first: str, elo0: float, elo1: float) -> None:
        """Test whether player `first` is stronger than the other one by `elo1`, not `elo0`."""
        self._first, self._elo0, self._elo1 = first, elo0, elo1
        self._open: dict[int, list[float]] = {}
        self._next = 0
        self._counts = [0] * len(OUTCOMES)
        self._bound = math.log((1 - ERRORS) / ERRORS)
        self._llr = 0.0

    def add(self, record: BoutRecord) -> None:
        """Add a game of the two; ignored once the test has decided."""
        own = record.places[record.seats.index(self._first)]
        other = record.places[1 - record.seats.index(self._first)]
        points = 1.0 if own < other else 0.5 if own == other else 0.0
        self._open.setdefault(record.block, []).append(points)
        while abs(self._llr) < self._bound and len(self._open.get(self._next, [])) == 2:
            mean = sum(self._open.pop(self._next)) / 2
            self._counts[OUTCOMES.index(mean)] += 1
            self._next += 1
            self._llr = log_ratio(self._counts, self._elo0, self._elo1)

    @property
    def state(self) -> SprtState:
        """Where the test stands."""
        verdict: Verdict = "undecided"
        if self._llr >= self._bound:
            verdict = "first is stronger"
        elif self._llr <= -self._bound:
            verdict = "first is not stronger"
        return SprtState(
            self._elo0,
            self._elo1,
            self._llr,
            self._bound,
            self._next,
            tuple(self._counts),
            verdict,
        )
