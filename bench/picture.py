"""A board as an SVG picture that is readable on light and dark pages.

`python -m snakekit.bench.picture GAME.jsonl TURN OUT.svg` draws one turn of a game file.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from pathlib import Path

from snakekit.bench.board_view import SeenBoard, SeenSnake, color, heading, letter
from snakekit.bench.gamefile import GameFileError, read_game

_CELL = 36
_PAD = 20
_LEGEND = 250
_ROW = 52
_NAME_CHARS = 18
_STYLE = """
.card{fill:#ffffff;stroke:#d0d7de}.square{fill:#eef1f5}.food{fill:#e5484d}.leaf{fill:#2f9e63}
.hazard{fill:#57606a;opacity:.32}.ink{fill:#1f2328}.soft{fill:#59636e}.bar{fill:#d8dee4}
text{font-family:ui-sans-serif,system-ui,"Segoe UI",Helvetica,Arial,sans-serif;font-size:14px}
.title{font-weight:600}.mark{fill:#ffffff;font-weight:700;text-anchor:middle}
@media (prefers-color-scheme:dark){
.card{fill:#0d1117;stroke:#30363d}.square{fill:#1b222c}.food{fill:#ff6b70}.leaf{fill:#3fb97c}
.hazard{fill:#aab4c0;opacity:.28}.ink{fill:#f0f6fc}.soft{fill:#9198a1}.bar{fill:#30363d}}
"""


def board_svg(board: SeenBoard, title: str = "") -> str:
    """Return a whole SVG document: the board, and beside it names, lengths and health."""
    height = max(board.height * _CELL, 40 + _ROW * len(board.snakes)) + 2 * _PAD
    width = board.width * _CELL + 3 * _PAD + _LEGEND
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-label="{escape(_words(board))}">',
        f"<style>{_STYLE}</style>",
        f'<rect class="card" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="14"/>',
    ]
    parts += _squares(board)
    for snake in board.snakes:
        parts += _snake(board, snake)
    parts += _legend(board, title)
    return "\n".join([*parts, "</svg>", ""])


def _words(board: SeenBoard) -> str:
    names = ", ".join(f"{s.name} with length {len(s.body)}" for s in board.snakes)
    return f"Battlesnake board at turn {board.turn}: {names or 'no snakes'}"


def _centre(board: SeenBoard, cell: tuple[int, int]) -> tuple[float, float]:
    x, y = cell
    return _PAD + (x + 0.5) * _CELL, _PAD + (board.height - y - 0.5) * _CELL


def _squares(board: SeenBoard) -> list[str]:
    parts: list[str] = []
    half, inner = _CELL / 2, _CELL / 2 - 1.5
    for y in range(board.height):
        for x in range(board.width):
            cx, cy = _centre(board, (x, y))
            parts.append(
                f'<rect class="square" x="{cx - inner:g}" y="{cy - inner:g}" '
                f'width="{2 * inner:g}" height="{2 * inner:g}" rx="5"/>'
            )
    for cell, layers in Counter(board.hazards).items():
        cx, cy = _centre(board, cell)
        rect = (
            f'<rect class="hazard" x="{cx - half:g}" y="{cy - half:g}" '
            f'width="{_CELL}" height="{_CELL}"/>'
        )
        parts += [rect] * min(layers, 3)
    for cell in board.food:
        cx, cy = _centre(board, cell)
        parts.append(f'<circle class="food" cx="{cx:g}" cy="{cy + 1:g}" r="{_CELL * 0.24:g}"/>')
        parts.append(
            f'<ellipse class="leaf" cx="{cx + 3:g}" cy="{cy - 9:g}" rx="4.5" ry="2.4" '
            f'transform="rotate(-30 {cx + 3:g} {cy - 9:g})"/>'
        )
    return parts


def _runs(body: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Split a body where it crosses the edge of a wrapped board."""
    runs = [[body[0]]]
    for before, cell in pairwise(body):
        if abs(before[0] - cell[0]) + abs(before[1] - cell[1]) > 1:
            runs.append([])
        runs[-1].append(cell)
    return runs


def _snake(board: SeenBoard, snake: SeenSnake) -> list[str]:
    ink = color(snake.seat)
    parts: list[str] = []
    for run in _runs(snake.body):
        points = " ".join("{:g},{:g}".format(*_centre(board, cell)) for cell in run)
        if len(set(run)) == 1:
            # A line of no length is not drawn by every viewer, not even its round ends.
            points += " {:g},{:g}".format(*_centre(board, (run[0][0], run[0][1])))
            cx, cy = _centre(board, run[0])
            parts.append(f'<circle cx="{cx:g}" cy="{cy:g}" r="{_CELL * 0.33:g}" fill="{ink}"/>')
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{ink}" '
            f'stroke-width="{_CELL * 0.66:g}" stroke-linecap="round" stroke-linejoin="round"/>'
        )
    hx, hy = _centre(board, snake.body[0])
    dx, dy = heading(snake.body)
    parts.append(f'<circle cx="{hx:g}" cy="{hy:g}" r="{_CELL * 0.42:g}" fill="{ink}"/>')
    for side in (-1, 1):
        # The screen's y grows downward, the board's upward.
        ex = hx + _CELL * (0.14 * dx + 0.17 * side * dy)
        ey = hy - _CELL * (0.14 * dy - 0.17 * side * dx)
        parts.append(f'<circle cx="{ex:g}" cy="{ey:g}" r="4.4" fill="#ffffff"/>')
        parts.append(
            f'<circle cx="{ex + 1.4 * dx:g}" cy="{ey - 1.4 * dy:g}" r="2.2" fill="#14181d"/>'
        )
    return parts


def _legend(board: SeenBoard, title: str) -> list[str]:
    left = board.width * _CELL + 2 * _PAD
    words = escape(title or "Battlesnake")
    parts = [
        f'<text class="ink title" x="{left}" y="{_PAD + 16}">{words}</text>',
        f'<text class="soft" x="{left + _LEGEND}" y="{_PAD + 16}" text-anchor="end">'
        f"turn {board.turn}</text>",
    ]
    for row, snake in enumerate(board.snakes):
        top, ink = _PAD + 40 + row * _ROW, color(snake.seat)
        name = snake.name
        if len(name) > _NAME_CHARS:
            name = name[: _NAME_CHARS - 1] + "…"
        parts += [
            f'<circle cx="{left + 11}" cy="{top + 12}" r="11" fill="{ink}"/>',
            f'<text class="mark" x="{left + 11}" y="{top + 17}">{letter(snake.seat)}</text>',
            f'<text class="ink" x="{left + 30}" y="{top + 12}">{escape(name)}</text>',
            f'<text class="soft" x="{left + _LEGEND}" y="{top + 12}" text-anchor="end">'
            f"length {len(snake.body)}</text>",
            f'<rect class="bar" x="{left + 30}" y="{top + 20}" width="{_LEGEND - 30}" height="6" '
            'rx="3"/>',
            f'<rect x="{left + 30}" y="{top + 20}" '
            f'width="{(_LEGEND - 30) * min(snake.health, 100) / 100:g}" height="6" rx="3" '
            f'fill="{ink}"/>',
        ]
    return parts


def main(argv: Sequence[str] | None = None) -> int:
    """Draw one turn of a game file; return the exit code, 2 for bad input."""
    parser = argparse.ArgumentParser(prog="python -m snakekit.bench.picture", description=__doc__)
    parser.add_argument("game", type=Path, help="game file, JSON Lines")
    parser.add_argument("turn", type=int, help="turn to draw; -1 is the last one")
    parser.add_argument("out", type=Path, help="SVG file to write")
    parser.add_argument("--title", default="", help="words above the legend")
    args = parser.parse_args(argv)
    try:
        record = read_game(args.game)
        if not record.turns:
            raise GameFileError(f"{args.game}: there are no turns in it")
        last = int(record.turns[-1]["turn"])
        wanted = last if args.turn == -1 else args.turn
        chosen = next((line for line in record.turns if line["turn"] == wanted), None)
        if chosen is None:
            raise GameFileError(f"{args.game}: there is no turn {wanted}, the last is {last}")
        ids = [snake["id"] for snake in record.turns[0]["board"]["snakes"]]
        board = SeenBoard.from_request(chosen, ids)
        args.out.write_text(board_svg(board, args.title), encoding="utf-8")
    except (GameFileError, OSError) as error:
        print(f"picture: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
