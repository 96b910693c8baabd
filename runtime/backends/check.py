"""Two backends side by side: the first answers, every difference to the second is counted."""

import logging
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from snakekit.runtime.backends.base import Backend, BackendInfo, Outputs

log = logging.getLogger("snakekit.check")


class CheckBackend:
    """Runs two backends on every batch and compares their answers row by row.

    A position disagrees if any number differs by more than the tolerance or is finite in one
    answer only. A second backend that fails disagrees on the whole batch; its failures never
    reach the caller.
    """

    def __init__(
        self,
        first: Backend,
        second: Backend,
        *,
        tolerance: float,
        on_compared: Callable[[int, int], None] | None = None,
    ) -> None:
        """Compare `first` with `second`.

        Args:
            first: answers.
            second: is only compared with.
            tolerance: largest difference of a logit or value that counts as equal.
            on_compared: called after each batch with the positions compared and those that
                disagreed, from the thread that called `infer`.
        """
        self._first, self._second = first, second
        self._tolerance = tolerance
        self._on_compared = on_compared
        self.pads = first.pads or second.pads
        self.compared = 0
        self.disagreements = 0

    def infer(self, batch: NDArray[np.uint8]) -> Outputs:
        """Return the first backend's answer; see `Backend.infer`."""
        answer = self._first.infer(batch)
        try:
            count = int(self._differs(answer, self._second.infer(batch)).sum())
        except Exception as error:
            log.warning("the compared backend failed: %s", error)
            count = len(batch)
        self.compared += len(batch)
        self.disagreements += count
        if count:
            log.warning("backends disagree on %d of %d positions", count, len(batch))
        if self._on_compared is not None:
            self._on_compared(len(batch), count)
        return answer

    def _differs(self, one: Outputs, other: Outputs) -> NDArray[np.bool_]:
        a, b = (np.column_stack([x.reshape(len(x), -1) for x in pair]) for pair in (one, other))
        if a.shape != b.shape:
            raise ValueError(f"answers of shape {a.shape} and {b.shape}")
        close = np.isclose(a, b, rtol=0, atol=self._tolerance, equal_nan=True)
        return np.asarray(~close.all(1))

    def describe(self) -> BackendInfo:
        """Return what runs: both names, the first one's precision."""
        first, second = self._first.describe(), self._second.describe()
        return BackendInfo(
            requested="check",
            actual=f"{first.actual}+{second.actual}",
            precision=first.precision,
            device=f"{first.device}+{second.device}",
        )

    def close(self) -> None:
        """Close both."""
        try:
            self._first.close()
        finally:
            self._second.close()
