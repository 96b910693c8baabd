"""How long a move may take: the game's timeout less the measured network, less a margin.

All times are milliseconds. One `TimeBudget` belongs to one seat of one game.
"""

import math
from array import array
from typing import Any

WINDOW = 8
"""Overhead samples remembered."""
SMALL_SHARE = 0.25
"""A margin or first guess never takes more than this share of a short timeout."""
LARGE_SHARE = 0.8
"""Overhead and penalty together never take more than this share of the timeout."""
PENALTY_SHARE = 0.15
"""Extra caution after an engine time-out, a share of the timeout; halves with every good turn."""


def latency_ms(value: Any) -> float | None:
    """Return what an engine's `latency` says in milliseconds, or None if it says nothing.

    The official engine sends text such as "43"; also met are "", words, integers and null.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    if isinstance(value, str) and not value.strip().replace(".", "", 1).isdecimal():
        return None
    if isinstance(value, str) and len(value) > 20:
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and 0 <= number <= 3_600_000 else None


class TimeBudget:
    """Learns one seat's network overhead and turns it into a budget."""

    __slots__ = ("_guess", "_last", "_margin", "_penalty_share", "_samples", "samples", "timeouts")

    def __init__(self, *, margin_ms: float, first_guess_ms: float) -> None:
        self._margin = margin_ms
        self._guess = first_guess_ms
        self._samples = array("d")
        self._penalty_share = 0.0
        self._last: tuple[int, float] | None = None
        self.samples = 0
        """Overhead samples taken so far."""
        self.timeouts = 0
        """Time-outs that the engine has reported for this seat."""

    def answered(self, turn: int, own_ms: float) -> None:
        """Note how long the answer of `turn` took here; a repeated turn overwrites."""
        self._last = (turn, own_ms)

    def observe(self, turn: int, latency: Any, timeout_ms: float) -> bool:
        """Learn from the latency that a request of `turn` reports for the turn before.

        Returns:
            Whether the engine says that the previous answer came too late.
        """
        measured = latency_ms(latency)
        # A repeated or late request brings old news: its sample is counted already.
        if turn <= 0 or self._last is None or self._last[0] != turn - 1 or measured is None:
            return False
        own = self._last[1]
        self._last = None
        if measured >= timeout_ms > 0:
            self.timeouts += 1
            self._penalty_share = min(2 * self._penalty_share + PENALTY_SHARE, LARGE_SHARE)
            return True
        if measured == 0 and own >= 1:
            return False
        self._penalty_share /= 2
        self._samples.append(max(0.0, measured - own))
        del self._samples[:-WINDOW]
        self.samples += 1
        return False

    def overhead(self, timeout_ms: float) -> float:
        """Return the overhead to reckon with: the second largest of the last samples.

        One odd sample among three or more is forgiven; before any sample a guess stands in.
        """
        if not self._samples:
            return min(self._guess, SMALL_SHARE * timeout_ms)
        worst = sorted(self._samples)
        return worst[-2] if len(worst) >= 3 else worst[-1]

    @property
    def last_overhead(self) -> float | None:
        """The newest sample, or None."""
        return self._samples[-1] if self._samples else None

    def budget(self, timeout_ms: float) -> float:
        """Return how long the answer may take, within 0..`timeout_ms`."""
        if not math.isfinite(timeout_ms) or timeout_ms <= 0:
            return 0.0
        lost = self.overhead(timeout_ms) + self._penalty_share * timeout_ms
        lost = min(lost, LARGE_SHARE * timeout_ms)
        lost += min(self._margin, SMALL_SHARE * timeout_ms)
        return min(max(timeout_ms - lost, 0.0), timeout_ms)
