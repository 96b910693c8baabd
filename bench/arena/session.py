"""Plays what is left of an arena, with a progress bar, until the end or Ctrl-C."""

import queue
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from snakekit.bench.arena.bout import BoutRecord
from snakekit.bench.arena.lanes import Crew
from snakekit.bench.arena.sprt import Sprt
from snakekit.bench.arena.store import Store

_WAIT_S = 0.1
_TELL_S = 60.0


@dataclass(frozen=True)
class Played:
    """What one session played."""

    games: int
    seconds: float
    stopped: bool
    """By Ctrl-C or a signal, with games left to play."""

    @property
    def per_minute(self) -> float:
        """Games a minute, 0 if none were played."""
        return 60 * self.games / self.seconds if self.seconds else 0.0


class Session:
    """One sitting of an arena."""

    def __init__(self, crew: Crew, store: Store, sprt: Sprt | None) -> None:
        self._crew, self._store, self._sprt = crew, store, sprt
        self._interrupted = False

    def interrupt(self) -> None:
        """Stop soon; finished games are kept."""
        self._interrupted = True
        self._crew.stop()

    def play(self, on_game: Callable[[BoutRecord, float], None]) -> Played:
        """Play; `on_game` gets each finished game and the rate in games a minute.

        Raises:
            Exception: whatever broke a lane; games finished before are kept.
        """
        begun, games = time.perf_counter(), 0
        failure: BaseException | None = None
        self._crew.start()
        # The last games may arrive between the two questions, hence this order of them.
        while self._crew.alive or not self._crew.results.empty():
            try:
                found = self._crew.results.get(timeout=_WAIT_S)
            except queue.Empty:
                continue
            if isinstance(found, BaseException):
                failure = failure or found
                continue
            self._store.add(found)
            games += 1
            on_game(found, 60 * games / (time.perf_counter() - begun))
            if self._sprt is not None:
                self._sprt.add(found)
                if self._sprt.state.verdict != "undecided":
                    self._crew.stop()
        self._crew.join()
        if failure is not None:
            raise failure
        return Played(games, time.perf_counter() - begun, self._interrupted)


@contextmanager
def stopping(session: Session) -> Iterator[None]:
    """Let the first Ctrl-C or SIGTERM end the session in order, the second one at once."""
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in signals}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def stop(number: int, frame: FrameType | None) -> None:
        session.interrupt()
        restore()

    try:
        for number in signals:
            signal.signal(number, stop)
    except ValueError:
        # Not the main thread: the program around decides about signals.
        yield
        return
    try:
        yield
    finally:
        restore()


def watched(session: Session, total: int, done: int, console: Console) -> Played:
    """Play with a progress bar; off a terminal, with a line now and then.

    Args:
        session: what is played.
        total: games of the whole arena.
        done: those that an earlier session played.
        console: where to show it.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    hidden = not console.is_terminal
    with (
        Progress(*columns, console=console, transient=True, disable=hidden) as progress,
        stopping(session),
    ):
        task = progress.add_task("games", total=total, completed=done, rate="")
        told, count = time.monotonic(), done

        def on_game(record: BoutRecord, rate: float) -> None:
            nonlocal told, count
            count += 1
            progress.update(task, advance=1, rate=f"{rate:.0f}/min")
            if hidden and time.monotonic() - told > _TELL_S:
                told = time.monotonic()
                left = (total - count) / rate
                words = f"{count} of {total} games, {rate:.0f} a minute, {left:.0f} minutes left"
                console.print(words, highlight=False)

        return session.play(on_game)
