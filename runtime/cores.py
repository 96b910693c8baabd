"""How many cores this process may use, and which of its threads come first on them."""

import contextlib
import math
import os
import sys
import threading
from pathlib import Path

MOST = 16
CGROUP = Path("/sys/fs/cgroup")
NICENESS = 5
"""Of threads that compute. On a busy machine with timeouts of 33 ms it saves most late answers."""


def cores(folder: Path = CGROUP) -> int:
    """Return the whole cores that affinity and the cgroup's quota leave, 1 to `MOST`.

    Args:
        folder: where the cgroup file system (version 2, else 1) is.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(usable or 1, math.floor(_quota(folder)), MOST))


def _quota(folder: Path) -> float:
    """Return the cores of CPU time that the cgroup allows, `MOST` where it sets no bound."""
    try:
        quota, period = (folder / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = (folder / "cpu/cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu/cpu.cfs_period_us").read_text().strip()
        except OSError:
            return MOST
    if not quota.isdigit() or not period.isdigit() or int(period) == 0:
        return MOST
    return int(quota) / int(period)


def yield_to_others() -> None:
    """Make the calling thread less urgent than the event loop, which has to answer in time."""
    # Elsewhere niceness belongs to the process, and a thread's number may name another one.
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
