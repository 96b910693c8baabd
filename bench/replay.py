"""`snakekit replay`: step through a game file in the terminal, or turn it into a page.

Reads what `snakekit serve --record` and `snakekit play --out` keep and what the official tool
writes. Decisions are shown where the file of decisions lies beside the game file.
"""

import argparse
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from snakekit.bench.board_view import SeenBoard, board_panel
from snakekit.bench.gamefile import GameFileError, GameRecord, read_game
from snakekit.core import MOVES
from snakekit.runtime.decided import Decided
from snakekit.runtime.recording import columns
from snakekit.runtime.recording.journal import DECISIONS
from snakekit.runtime.watch.page import Frame, page

KEYS = {
    b"\x1b[C": "next", b"n": "next", b" ": "next", b"l": "next",
    b"\x1b[D": "back", b"p": "back", b"h": "back",
    b"\x1b[H": "first", b"\x1b[1~": "first", b"\x1b[F": "last", b"\x1b[4~": "last",
    b"\x1b[6~": "on", b"\x1b[5~": "off", b"\n": "jump", b"\r": "jump", b"g": "jump",
    b"q": "quit", b"\x1b": "quit", b"\x03": "quit", b"\x04": "quit", b"": "quit",
}  # fmt: skip
STRIDE = 10
_KEY = re.compile(rb"\x1b\[[0-9;]*[A-Za-z~]|.", re.DOTALL)
_HELP = "← → step   PgUp PgDn ten   Home End   number Enter: that turn   q quit"
_ARROWS = ("▲", "▼", "◀", "▶")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file and the options."""
    parser.add_argument("file", type=Path, metavar="FILE", help="game file, JSON Lines")
    parser.add_argument(
        "--turn", type=int, metavar="N", help="show this turn and end; negative counts from the end"
    )
    parser.add_argument("--html", type=Path, metavar="OUT", help="write a page that steps itself")


def run(args: argparse.Namespace) -> int:
    """Show the game; return the exit code."""
    try:
        replay = load(args.file)
        if args.html is not None:
            args.html.write_text(page(f"game {replay.title}", replay.frames()), encoding="utf-8")
            return 0
        start = _index(replay, args.turn) if args.turn is not None else 0
    except (GameFileError, OSError) as error:
        print(f"snakekit replay: {error}", file=sys.stderr)
        return 2
    if replay.missing:
        print(f"snakekit replay: {replay.missing}", file=sys.stderr)
    console = Console()
    if args.turn is not None:
        console.print(replay.view(start))
    elif console.is_terminal and sys.stdin.isatty():
        step(replay, console)
    else:
        for index in range(len(replay.boards)):
            console.print(replay.view(index))
    return 0


@dataclass(frozen=True)
class Replay:
    """A game file with its decisions. `missing` says why these are not there, if so."""

    title: str
    record: GameRecord
    boards: list[SeenBoard]
    decisions: dict[int, Decided]
    missing: str = ""

    def view(self, index: int, typed: str = "") -> RenderableType:
        """Return what the terminal shows of the turn at `index`."""
        board = self.boards[index]
        title = f"{self.title}  {index + 1}/{self.size}  "
        parts: list[RenderableType] = [board_panel(board, title)]
        row = self.decisions.get(board.turn)
        if row is not None:
            parts.append(decision_table(row))
        if index == self.size - 1:
            parts.append(Text(self._result(), "bold"))
        return Group(*parts, Text(f"turn {typed}_" if typed else "", "dim"))

    @property
    def size(self) -> int:
        """Turns in the file."""
        return len(self.boards)

    def _result(self) -> str:
        result = self.record.result
        if result is None:
            return "the file ends before the game does"
        if result.get("isDraw"):
            return "a draw"
        return f"won by {printable(str(result.get('winnerName') or result.get('winnerId') or '?'))}"

    def frames(self) -> list[Frame]:
        """Return the turns as the watch page draws them."""
        found = []
        for turn, board in zip(self.record.turns, self.boards, strict=True):
            frame = Frame(
                game=str(self.record.game.get("id", "")),
                # In other files `you` is any snake, and may be another one each turn.
                you=next((row.you for row in self.decisions.values()), ""),
                turn=board.turn,
                board=msgspec.Raw(msgspec.json.encode(turn["board"])),
                decided=self.decisions.get(board.turn),
            )
            found.append(frame)
        if found:
            found[-1] = msgspec.structs.replace(found[-1], over=True)
        return found


def load(path: Path) -> Replay:
    """Read a game file and, beside it, its decisions.

    Raises:
        GameFileError: it cannot be read, or has no turns.
    """
    record = read_game(path)
    if not record.turns:
        raise GameFileError(f"{path}: there are no turns in it")
    boards: list[SeenBoard] = []
    ids: dict[str, None] = {}
    for number, turn in enumerate(record.turns, start=2):
        try:
            ids |= dict.fromkeys(snake["id"] for snake in turn["board"]["snakes"])
            boards.append(SeenBoard.from_request(turn, list(ids)))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise GameFileError(f"{path}, line {number}: not a board ({error!r})") from None
    rows, missing = _decisions(path)
    return Replay(printable(path.name), record, boards, rows, missing)


def _decisions(path: Path) -> tuple[dict[int, Decided], str]:
    beside = path.with_name(path.name.partition(".")[0] + DECISIONS)
    if not beside.exists():
        return {}, ""
    if not columns.available():
        return {}, f"decisions are not shown: {columns.INSTALL}"
    try:
        return {row.turn: row for row in columns.read(beside)}, ""
    except ValueError as error:
        return {}, f"decisions are not shown: {error}"


def printable(text: str) -> str:
    """Return text from a file without what a terminal would obey."""
    return "".join(c if c.isprintable() else "?" for c in text)


def decision_table(row: Decided) -> RenderableType:
    """Return the decision, and what policy and search said of each move."""
    words = f"{_ARROWS[MOVES.index(row.move)]} {row.move}  {row.reason.replace('_', ' ')}"
    times = f"  {row.answer_ms:.1f} ms of {row.budget_ms:.0f} ms"
    table = Table(box=None, pad_edge=False)
    for heading in ("", "policy", "", "search", "proof"):
        table.add_column(heading, justify="right" if heading in ("policy", "search") else "left")
    for i, move in enumerate(MOVES):
        share = row.policy[i] if row.policy is not None else None
        score = row.search_scores[i] if row.search_scores is not None else None
        proof = ""
        if row.search_labels is not None and row.search_labels[i] != "none":
            distance = row.search_distances[i] if row.search_distances is not None else 0
            proof = f"{row.search_labels[i]} in {distance}"
        table.add_row(
            Text(f"{_ARROWS[i]} {move}", "bold" if move == row.move else ""),
            f"{share:.1%}" if share is not None else "–",
            Text("━" * round(20 * share) if share is not None else "", "blue"),
            str(score) if score is not None else "–",
            Text(proof, "green" if proof.startswith("win") else "red"),
        )
    facts = [f"value {row.value:.2f}"] if row.value is not None else []
    if row.search_depth is not None:
        facts.append(f"depth {row.search_depth}, {row.search_nodes} positions")
    if row.search_line:
        line = " ".join(_ARROWS[MOVES.index(m)] for m in row.search_line if m in MOVES)
        facts.append(f"expects {line}")
    facts.append(f"model {printable(row.model)}")
    return Group(Text(words, "bold") + Text(times, "dim"), table, Text(", ".join(facts), "dim"))


def _index(replay: Replay, turn: int) -> int:
    if turn < 0:
        turn += replay.boards[-1].turn + 1
    for index, board in enumerate(replay.boards):
        if board.turn == turn:
            return index
    last = replay.boards[-1].turn
    raise GameFileError(f"turn: there is no turn {turn} in the file, the last is {last}")


class Cursor:
    """Where one is in a game, and the number typed so far."""

    def __init__(self, replay: Replay) -> None:
        """Begin at the first turn."""
        self._replay = replay
        self.index, self.typed = 0, ""

    def press(self, key: bytes) -> bool:
        """Act on a key; return False where it ends the show."""
        if key.isdigit():
            self.typed = (self.typed + key.decode())[-6:]
            return True
        word, last = KEYS.get(key), self._replay.size - 1
        steps = {"next": 1, "back": -1, "on": STRIDE, "off": -STRIDE, "first": -last, "last": last}
        if word == "jump" and self.typed:
            wanted = int(self.typed)
            turns = [board.turn for board in self._replay.boards]
            self.index = min(range(last + 1), key=lambda i: abs(turns[i] - wanted))
        elif word in steps:
            self.index = min(max(self.index + steps[word], 0), last)
        self.typed = ""
        return word != "quit"


def step(replay: Replay, console: Console) -> None:
    """Show turn after turn as keys are pressed, until `q`."""
    cursor = Cursor(replay)
    source = sys.stdin.fileno()
    with _keys(source), Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            view = Group(replay.view(cursor.index, cursor.typed), Text(_HELP, "dim"))
            live.update(view, refresh=True)
            # Who types fast, or holds a key, has several keys in one reading.
            if not all(cursor.press(key) for key in split(os.read(source, 64))):
                return


def split(data: bytes) -> list[bytes]:
    """Return the keys of what a terminal sent; an empty key for its end."""
    return _KEY.findall(data) or [b""]


@contextmanager
def _keys(source: int) -> Iterator[None]:
    """Give keys as they are pressed, not line by line."""
    import termios
    import tty

    before = termios.tcgetattr(source)
    try:
        tty.setcbreak(source)
        yield
    finally:
        termios.tcsetattr(source, termios.TCSADRAIN, before)
