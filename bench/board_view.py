"""A board as text for the terminal: every snake in its own colour, heads with letter and arrow."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from snakekit.bench.palette import PALETTE
from snakekit.bench.protocol import Json, Seat, Turn
from snakekit.core import State

_ARROWS = {(0, 1): "▲", (0, -1): "▼", (-1, 0): "◀", (1, 0): "▶"}
_HAZARD_STYLES = ("", "on #3a3f4b", "on #4a4f5e", "on #5b6173", "on #6d7489")
_FOOD_STYLE = "bold #ef4444"


@dataclass(frozen=True)
class SeenSnake:
    """A living snake of a drawn board; `seat` is its place in the game, also when others died."""

    seat: int
    name: str
    health: int
    body: list[tuple[int, int]]


@dataclass(frozen=True)
class SeenBoard:
    """What is drawn of one turn, from a state or from a request (a line of a game file)."""

    width: int
    height: int
    turn: int
    snakes: list[SeenSnake]
    food: list[tuple[int, int]]
    hazards: list[tuple[int, int]]

    @staticmethod
    def from_request(request: Json, ids: Sequence[str] | None = None) -> "SeenBoard":
        """Read a request. `ids` in seat order keep letters and colours when snakes have died."""
        board = request["board"]
        order = list(ids) if ids is not None else [s["id"] for s in board["snakes"]]
        snakes = [
            SeenSnake(
                seat=order.index(snake["id"]),
                name=_printable(snake.get("name") or snake["id"]),
                health=snake["health"],
                body=_cells(snake["body"]),
            )
            for snake in board["snakes"]
        ]
        return SeenBoard(
            board["width"],
            board["height"],
            request["turn"],
            snakes,
            _cells(board.get("food") or []),
            _cells(board.get("hazards") or []),
        )

    @staticmethod
    def from_state(state: State) -> "SeenBoard":
        """Read a state; the snakes are called by their ids."""
        ids = [snake.id for snake in state.snakes()]
        turn = Turn({}, state, [Seat(i, i) for i in ids])
        return SeenBoard.from_request(turn.recorded(), ids)


def _printable(name: str) -> str:
    # Names come from outside, and a terminal obeys what it is sent.
    return "".join(c if c.isprintable() else "?" for c in name)


def _cells(points: list[dict[str, int]]) -> list[tuple[int, int]]:
    return [(point["x"], point["y"]) for point in points]


def heading(body: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the direction from neck to head, also across a wrapped edge; up when coiled."""
    for (x, y), (nx, ny) in pairwise(body):
        dx, dy = x - nx, y - ny
        if (dx, dy) != (0, 0):
            # A step across the edge of a wrapped board looks like a long one backwards.
            return (
                dx if abs(dx) <= 1 else -1 if dx > 0 else 1,
                dy if abs(dy) <= 1 else -1 if dy > 0 else 1,
            )
        break
    return 0, 1


def letter(seat: int) -> str:
    """Return the letter of a seat, A for the first."""
    return chr(ord("A") + seat % 26)


def color(seat: int) -> str:
    """Return the colour of a seat as #rrggbb."""
    return PALETTE[seat % len(PALETTE)]


def board_text(board: SeenBoard | State) -> Text:
    """Return the board with its top row first, two characters a square.

    Heads show the snake's letter and direction, so they can be told apart without colours.
    """
    seen = SeenBoard.from_state(board) if isinstance(board, State) else board
    cells: dict[tuple[int, int], tuple[str, str]] = {}
    depth: dict[tuple[int, int], int] = {}
    for cell in seen.hazards:
        depth[cell] = depth.get(cell, 0) + 1
    for cell in seen.food:
        cells[cell] = ("● ", _FOOD_STYLE)
    for snake in seen.snakes:
        ink = color(snake.seat)
        for cell in reversed(snake.body[1:]):
            # Letters in the colour of their ground: unseen with colours, there without them.
            cells[cell] = (letter(snake.seat).lower() + " ", f"{ink} on {ink}")
        cells[snake.body[-1]] = ("▓▓", ink)
    for snake in seen.snakes:
        arrow = _ARROWS.get(heading(snake.body), "▲")
        cells[snake.body[0]] = (letter(snake.seat) + arrow, f"bold white on {color(snake.seat)}")
    text = Text(no_wrap=True)
    edge = "─" * (2 * seen.width + 1)
    text.append(f"┌{edge}┐\n", "dim")
    for y in reversed(range(seen.height)):
        text.append("│ ", "dim")
        for x in range(seen.width):
            layers = min(depth.get((x, y), 0), len(_HAZARD_STYLES) - 1)
            glyph, style = cells.get((x, y), ("░░" if layers else "· ", "dim"))
            text.append(glyph, f"{style} {_HAZARD_STYLES[layers]}".strip())
        text.append("│\n", "dim")
    text.append(f"└{edge}┘", "dim")
    return text


def snake_table(board: SeenBoard) -> Table:
    """Return letter, name, health bar and length of every living snake."""
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    table.add_column("snake", no_wrap=True)
    table.add_column("health")
    table.add_column("", justify="right")
    table.add_column("length", justify="right")
    for snake in board.snakes:
        filled = -(-snake.health // 10)
        bar = Text("━" * filled, color(snake.seat)) + Text("━" * (10 - filled), "dim")
        mark = Text(letter(snake.seat), f"bold white on {color(snake.seat)}")
        table.add_row(mark, snake.name, bar, str(snake.health), str(len(snake.body)))
    return table


def board_panel(board: SeenBoard, title: str = "") -> RenderableType:
    """Return a whole view: a title line, the board and beside it the table of its snakes."""
    grid = Table.grid(padding=(0, 2))
    grid.add_row(board_text(board), snake_table(board))
    return Group(Text(f"{title}turn {board.turn}", "bold"), grid)
