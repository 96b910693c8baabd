"""The recording process: events on standard input, status lines on standard output.

`python -m snakekit.runtime.recording.writer FOLDER LIMIT_BYTES KEEP_S IDLE_S`, started by
`recorder`. It ends when its input does; signals meant for the server do not end it.
"""

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from snakekit.runtime.recording.event import Status, unpack
from snakekit.runtime.recording.store import Store

TICK_S = 2.0
_CHUNK = 1 << 18
_NICE = 10


def main(argv: Sequence[str]) -> int:
    """Record until the input ends; return the exit code."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _step_back()
    folder, limit, keep, idle = argv
    try:
        store = Store(Path(folder), limit_bytes=int(limit), keep_s=float(keep), idle_s=float(idle))
    except OSError as error:
        _tell(Status(refused=error.strerror or str(error)))
        return 2
    _tell(store.status)
    try:
        _run(store, sys.stdin.fileno())
    finally:
        store.close()
        _tell(store.status)
    return 0


def _step_back() -> None:
    """Take the processor only when the server leaves it, and never wake up in front of it."""
    os.nice(_NICE)
    # Not every system has it.
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _run(store: Store, source: int) -> None:
    buffer = bytearray()
    told = store.status
    due = time.monotonic() + TICK_S
    while True:
        ready, _, _ = select.select([source], [], [], max(0.0, due - time.monotonic()))
        if ready:
            chunk = os.read(source, _CHUNK)
            if not chunk:
                return
            buffer += chunk
            for event in unpack(buffer):
                store.take(event)
        if time.monotonic() >= due:
            store.tick()
            due = time.monotonic() + TICK_S
        status = store.status
        if (status.games, status.failed) != (told.games, told.failed):
            _tell(status)
            told = status


def _tell(status: Status) -> None:
    # A server that is gone reads no more, but its games are still to be finished.
    with contextlib.suppress(BrokenPipeError):
        os.write(sys.stdout.fileno(), msgspec.json.encode(status) + b"\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
