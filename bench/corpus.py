"""Recorded turns of the official engine, and whether our rules reproduce them.

One JSON object a line: the board `before`, `moves`, the settings, and `rules`, the board after the
ruleset and before the map. A point is `[x, y]`; a snake without `eliminatedCause` is alive.
"""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from snakekit.core import MOVES, Settings, Snake, State

Points = list[tuple[int, int]]


class CorpusError(ValueError):
    """A recording that cannot be read; the message names the file and the line."""


class _Snake(msgspec.Struct, rename="camel"):
    id: str
    health: int
    body: Points
    eliminated_cause: str = ""
    eliminated_by: str = ""
    eliminated_on_turn: int = 0


class _Board(msgspec.Struct):
    food: Points
    snakes: list[_Snake]
    hazards: Points | None = None


class _Settings(msgspec.Struct, rename="camel"):
    food_spawn_chance: int
    minimum_food: int
    hazard_damage_per_turn: int
    shrink_every_n_turns: int = msgspec.field(name="shrinkEveryNTurns")


class Line(msgspec.Struct, rename="camel"):
    """One recorded turn."""

    game: str
    ruleset: str
    turn: int
    width: int
    height: int
    before: _Board
    moves: list[tuple[str, str]]
    game_over: bool
    rules: _Board
    settings: _Settings
    solo: bool = False
    map: str = "standard"


def read(path: Path) -> Iterator[tuple[int, Line]]:
    """Yield line numbers and lines of a JSON Lines file, gzipped if its name ends in `.gz`.

    Raises:
        CorpusError: unreadable, or a line that is not a recorded turn.
    """
    decoder = msgspec.json.Decoder(Line)
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
            for number, text in enumerate(lines, start=1):
                if not text.strip():
                    continue
                try:
                    yield number, decoder.decode(text)
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    raise CorpusError(f"{path}, line {number}: {error}") from None
    except (OSError, EOFError) as error:
        raise CorpusError(f"{path}: cannot be read ({error})") from None


def _snake(s: _Snake) -> Snake:
    return Snake(s.id, s.health, s.body, s.eliminated_cause, s.eliminated_by, s.eliminated_on_turn)


def board(line: Line) -> State:
    """Return the board before the moves.

    Raises:
        StateError: a board that the core refuses.
    """
    given = line.settings
    return State(
        line.width,
        line.height,
        [_snake(s) for s in line.before.snakes],
        line.before.food,
        line.before.hazards or [],
        turn=line.turn,
        settings=Settings(
            ruleset=line.ruleset,
            solo=line.solo,
            food_spawn_chance=given.food_spawn_chance,
            minimum_food=given.minimum_food,
            hazard_damage=given.hazard_damage_per_turn,
            shrink_every=given.shrink_every_n_turns,
        ),
    )


def _fields(snake: Any) -> dict[str, Any]:
    return {
        "health": snake.health,
        "body": [tuple(p) for p in snake.body],
        "cause": snake.eliminated_cause,
        "by": snake.eliminated_by,
        "turn": snake.eliminated_on_turn,
    }


def differences(line: Line) -> list[str]:
    """Play the line's turn by our rules; return how the outcome differs, empty if it does not."""
    try:
        state = board(line)
    except ValueError as error:
        return [f"the board is refused: {error}"]
    over = state.game_over()
    if line.moves:
        words = dict(line.moves)
        ids = [snake.id for snake in line.before.snakes]
        state.step([MOVES.index(words[i]) if words.get(i) in MOVES else -1 for i in ids])
    else:
        # The call that initialises a game reports "not over" whatever the board holds.
        over = line.game_over
        state.initialise()
    pairs: list[tuple[str, Any, Any]] = [
        ("game over", line.game_over, over),
        ("food", line.rules.food, state.food()),
    ]
    # The royale ruleset draws its hazards at random after the turn.
    if line.ruleset != "royale":
        wanted = line.before.hazards if line.rules.hazards is None else line.rules.hazards
        pairs.append(("hazards", sorted(wanted or []), state.hazards()))
    for wanted_snake, snake in zip(line.rules.snakes, state.snakes(), strict=True):
        theirs, ours = _fields(wanted_snake), _fields(snake)
        pairs += [(f"snake {snake.id} {key}", theirs[key], ours[key]) for key in theirs]
    return [
        f"{what}: engine {theirs}, here {ours}" for what, theirs, ours in pairs if theirs != ours
    ]
