"""A rate limit per address, for servers that stand in the open internet."""

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

CAPACITY = 4096
BURST_S = 2.0
"""An address that was silent may send as much at once as is allowed in this time."""


class RateLimit:
    """The generic cell rate algorithm (ITU-T I.371): one number per address, no timers."""

    def __init__(
        self, per_second: float, *, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self._interval = 1 / per_second
        # A millionth for the rounding of sums.
        self._slack = max(BURST_S, self._interval) - self._interval * (1 - 1e-6)
        self._clock = clock
        self._due: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._due)

    def allows(self, address: str) -> bool:
        """Count a request of `address`; return whether it keeps to the limit."""
        key = _network(address)
        now = self._clock()
        due = max(self._due.pop(key, now), now)
        allowed = due - now <= self._slack
        self._due[key] = due + self._interval if allowed else due
        if len(self._due) > CAPACITY:
            self._due.popitem(last=False)
        return allowed


def _network(address: str) -> str:
    """Return what stands for one sender: an IPv6 sender has a whole /64."""
    if ":" not in address:
        return address
    try:
        return str(ipaddress.ip_network((address.split("%", 1)[0], 64), strict=False))
    except ValueError:
        return address
