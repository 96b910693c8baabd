"""Ctrl-C and SIGTERM as a question that long work asks itself."""

import signal
import threading
from types import FrameType

from rich.console import Console


class StopFlag:
    """Turns true at the first Ctrl-C or SIGTERM; the second one has its usual effect."""

    def __init__(self, console: Console) -> None:
        """Take over both signals; outside the main thread they stay with the program around."""
        self._set = False
        self._console = console
        here = threading.current_thread() is threading.main_thread()
        signals = (signal.SIGINT, signal.SIGTERM) if here else ()
        self._before = {s: signal.signal(s, self._note) for s in signals}

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._set = True
        self.restore()
        self._console.print("stopping; once more stops without saving")

    def restore(self) -> None:
        """Give both signals back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __call__(self) -> bool:
        """Return whether a signal has come."""
        return self._set
