"""A clock for tests of time limits on a machine that does other things as well."""

import time
from pathlib import Path


def own_time(process: int | None = None) -> float:
    """Return seconds of a clock that stands still while this thread waits for a core.

    With the id of another process it stands still as well while that one's first thread waits.
    """
    waited = waited_s(Path("/proc/thread-self"))
    if process is not None:
        waited += waited_s(Path(f"/proc/{process}"))
    return time.perf_counter() - waited


def waited_s(task: Path) -> float:
    """Return how long a thread could have run and had no core; 0 where the system does not tell."""
    try:
        return int((task / "schedstat").read_text().split()[1]) / 1e9
    except FileNotFoundError:
        return 0.0
