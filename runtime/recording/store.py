"""The folder of records: running games, finished ones, and the bound on all of them.

Names come from the clock and a hash of the ids, never from the ids: a game called
`../../etc/passwd` is recorded like any other.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import IO

from snakekit.runtime.recording.event import Event, Status
from snakekit.runtime.recording.journal import (
    ABORTED,
    DECISIONS,
    GAME,
    PART,
    TEMPORARY,
    Journal,
    finish,
    has_end,
)

LONGEST_GAME = 32 << 20
"""A journal beyond so many bytes is finished as it is."""
_ENDINGS = (ABORTED, GAME, DECISIONS)


class Store:
    """Takes events one after the other. All its methods may wait for the disk."""

    def __init__(
        self,
        folder: Path,
        *,
        limit_bytes: int,
        keep_s: float,
        idle_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Lock the folder (made if missing) and go on with what an earlier run left there.

        Args:
            folder: where records lie.
            limit_bytes: bound on all of them; the oldest finished games go first.
            keep_s: finished games older than so many seconds go too.
            idle_s: a game without news for so many seconds is finished as it is.
            clock: monotonic seconds.

        Raises:
            OSError: the folder cannot be used, or another process does.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = _lock(folder)
        self._folder, self._clock = folder, clock
        self._limit, self._keep, self._idle = limit_bytes, keep_s, idle_s
        self._running: dict[str, Journal] = {}
        self._stuck: list[Journal] = []
        self._finished: OrderedDict[str, int] = OrderedDict()
        self._games = self._failed = self._bytes = 0
        self._error = ""
        self._resume()

    def _resume(self) -> None:
        for path in sorted(self._folder.iterdir()):
            if path.suffix == TEMPORARY:
                path.unlink()
            elif path.suffix == PART:
                journal = Journal(path, self._clock())
                self._bytes += journal.size
                older = self._running.pop(_key_of(path), None)
                if older is not None:
                    self._stuck.append(older)
                if has_end(path):
                    self._stuck.append(journal)
                else:
                    self._running[_key_of(path)] = journal
            elif (stem := _stem(path)) is not None:
                size = path.stat().st_size
                self._finished[stem] = self._finished.get(stem, 0) + size
                self._bytes += size

    @property
    def status(self) -> Status:
        """Counts since the start."""
        return Status(games=self._games, failed=self._failed, bytes=self._bytes, error=self._error)

    def take(self, event: Event) -> None:
        """Add one request to its game; what the disk refuses is counted, never raised."""
        key = _key(event)
        journal = self._running.get(key)
        if journal is None:
            if event.kind == "end":
                return
            journal = self._running[key] = Journal(self._new_path(key), self._clock())
        journal.seen_at = self._clock()
        before = journal.size
        try:
            self._make_room(len(event.body))
            journal.append(event)
            self._bytes += journal.size - before
        except OSError as error:
            self._note(error)
        if event.kind == "end" or journal.size > LONGEST_GAME:
            self._finish(key)

    def tick(self) -> None:
        """Finish games without news, and those that could not be finished; drop the too old."""
        now = self._clock()
        for key in [k for k, j in self._running.items() if now - j.seen_at > self._idle]:
            self._finish(key)
        self._finish_stuck()
        oldest = time.time() - self._keep
        while self._finished and self._age_limit_passed(next(iter(self._finished)), oldest):
            self._evict()

    def close(self) -> None:
        """Finish every running game as it is and give the folder free."""
        for key in list(self._running):
            self._finish(key)
        self._finish_stuck()
        self._lock.close()

    def _finish_stuck(self) -> None:
        stuck, self._stuck = self._stuck, []
        for journal in stuck:
            self._finish_journal(journal)

    def _finish(self, key: str) -> None:
        self._finish_journal(self._running.pop(key))

    def _finish_journal(self, journal: Journal) -> None:
        if not journal.size:
            journal.path.unlink(missing_ok=True)
            return
        try:
            size = finish(journal.path)
        except FileNotFoundError:
            # The owner has removed it.
            self._bytes -= journal.size
            return
        except OSError as error:
            self._note(error)
            self._stuck.append(journal)
            return
        self._finished[journal.path.stem] = size
        self._bytes += size - journal.size
        self._games += 1
        self._make_room(0)

    def _note(self, error: OSError) -> None:
        self._failed += 1
        self._error = error.strerror or type(error).__name__

    def _make_room(self, size: int) -> None:
        while self._finished and self._bytes + size > self._limit:
            self._evict()
        if size and self._bytes + size > self._limit:
            raise OSError(errno.EDQUOT, "the limit is used up by running games")

    def _evict(self) -> None:
        stem, size = self._finished.popitem(last=False)
        self._bytes -= size
        for ending in _ENDINGS:
            with contextlib.suppress(OSError):
                (self._folder / (stem + ending)).unlink()

    def _age_limit_passed(self, stem: str, oldest: float) -> bool:
        for ending in _ENDINGS:
            with contextlib.suppress(OSError):
                return (self._folder / (stem + ending)).stat().st_mtime < oldest
        return True

    def _new_path(self, key: str) -> Path:
        moment = time.time()
        seconds = time.strftime("%Y%m%dT%H%M%S", time.gmtime(moment))
        stamp = f"{seconds}{int(moment % 1 * 1000):03d}Z"
        path = self._folder / f"{stamp}-{key}{PART}"
        number = 1
        while path.exists() or path.stem in self._finished:
            number += 1
            path = self._folder / f"{stamp}_{number}-{key}{PART}"
        return path


def _lock(folder: Path) -> IO[bytes]:
    file = (folder / ".lock").open("wb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise OSError(errno.EBUSY, "another server records there") from None
    # Shows now, not at the first game, that the folder can be written.
    file.write(b"%d\n" % os.getpid())
    file.flush()
    return file


def _key(event: Event) -> str:
    text = f"{event.game}\0{event.you}".encode(errors="surrogatepass")
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def _key_of(path: Path) -> str:
    return path.stem.rpartition("-")[2]


def _stem(path: Path) -> str | None:
    ending = next((e for e in _ENDINGS if path.name.endswith(e)), None)
    return path.name.removesuffix(ending) if ending is not None else None
