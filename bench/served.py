"""A `snakekit serve` in a process of its own, for as long as something measures it."""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

START_S = 60.0
STOP_S = 10.0
_ADDRESSES = re.compile(r"listens on (http://\S+) .*metrics=(http://\S+)")


class ServedError(RuntimeError):
    """The server cannot be started; one sentence."""


@dataclass(frozen=True)
class Served:
    """Where a running server is, and its process."""

    url: str
    metrics_url: str
    pid: int


@contextlib.contextmanager
def served(options: list[str], *, cpus: set[int] | None = None) -> Iterator[Served]:
    """Run `snakekit serve` with `options` on free ports of the loopback address.

    Args:
        options: of the command.
        cpus: the cores that it may use, where the system can tell it so.

    Raises:
        ServedError: it ended at once or was not ready within `START_S` seconds.
    """
    command = [sys.executable, "-m", "snakekit", "serve", "--host", "127.0.0.1", "--port", "0"]
    command += ["--metrics-port", "0", "--log-level", "error", *options]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        if cpus is not None and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(process.pid, cpus)
        try:
            yield _ready(process, errors)
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _ready(process: subprocess.Popen[str], errors: IO[str]) -> Served:
    lines: list[str] = []
    pipe = process.stdout
    assert pipe is not None
    # A thread reads, since a server that prints nothing would hold a reader for ever.
    reader = threading.Thread(target=lambda: lines.append(pipe.readline()), daemon=True)
    reader.start()
    end = time.monotonic() + START_S
    reader.join(START_S)
    found = _ADDRESSES.search(lines[0]) if lines else None
    if found is None:
        raise ServedError(_failure(process, errors))
    place = Served(found[1], found[2], process.pid)
    while time.monotonic() < end and process.poll() is None:
        if _is_ready(place.url):
            return place
        time.sleep(0.05)
    raise ServedError(_failure(process, errors))


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _failure(process: subprocess.Popen[str], errors: IO[str]) -> str:
    with contextlib.suppress(subprocess.TimeoutExpired):
        # Its pipe is closed a moment before its exit code is there.
        process.wait(0.5)
    if process.poll() is None:
        return f"snakekit serve was not ready within {START_S:g} s"
    errors.seek(0)
    said = errors.read().strip().splitlines()
    reason = said[-1].removeprefix("snakekit serve: ") if said else f"code {process.returncode}"
    return f"snakekit serve ended at once: {reason}"
