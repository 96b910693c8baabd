"""What the terminal shows while games run: a progress bar and, if asked for, a live board."""

import time
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from snakekit.bench.board_view import SeenBoard, board_panel
from snakekit.bench.match import GameReport
from snakekit.bench.protocol import Json

_REFRESH_S = 0.25


class Screen:
    """A watcher that draws. On anything but a terminal it draws nothing.

    It refreshes from the event loop only, between turns: a drawing thread would hold the
    interpreter lock at the moment when an answer arrives, and that would count as latency.
    """

    def __init__(self, console: Console, games: int, *, view: bool) -> None:
        """Prepare for `games` games; `view` adds the board of one running game."""
        self._view, self._total = view, games
        self._shown: int | None = None
        self._ids: list[str] = []
        self._board: SeenBoard | None = None
        self._drawn_at = 0.0
        self._turns = 0
        self._live: Live | None = None
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            auto_refresh=False,
        )
        self._task = self._progress.add_task("games", total=games)
        if console.is_terminal:
            self._live = Live(self._progress, console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        """Start drawing."""
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the terminal clean."""
        if self._live is not None:
            self._live.stop()

    def on_turn(self, index: int, request: Json) -> None:
        """Draw the board of the watched game, or at times the progress bar."""
        self._turns += 1
        if self._live is None:
            return
        if not self._view:
            self._draw()
            return
        if self._shown is None:
            self._shown = index
            self._ids = [snake["id"] for snake in request["board"]["snakes"]]
        if index == self._shown:
            self._board = SeenBoard.from_request(request, self._ids)
            self._draw(force=True)

    def on_game(self, report: GameReport) -> None:
        """Count a finished game and look for another to watch."""
        if not report.aborted:
            self._progress.advance(self._task)
        if report.index == self._shown:
            self._shown = None
        self._draw(force=True)

    def _draw(self, *, force: bool = False) -> None:
        if self._live is None or (not force and time.monotonic() - self._drawn_at < _REFRESH_S):
            return
        self._drawn_at = time.monotonic()
        self._progress.update(self._task, description=f"games, {self._turns} turns")
        if self._board is None:
            self._live.update(self._progress, refresh=True)
        else:
            title = f"game {self._shown + 1}, " if self._shown is not None else ""
            self._live.update(Group(board_panel(self._board, title), self._progress), refresh=True)
