"""The objects of the official request, of which game files are made too, and how to fill them.

Every field that the engine writes today is required; those that it has dropped or added over time
may be absent, and then stay absent.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from snakekit import core

# The core takes 32 bits and names its own, narrower ranges.
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Text = str | UnsetType
Flag = bool | UnsetType


class Point(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, gc=False):
    """A square of a request."""

    x: Int32
    y: Int32


class Looks(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """How a snake looks."""

    color: str
    head: str
    tail: str


class Customization(Looks, frozen=True, kw_only=True):
    """Looks with the engine's defaults."""

    color: str = "#888888"
    head: str = "default"
    tail: str = "default"


class Seat(msgspec.Struct):
    """What a request says about one snake beyond the board: names, looks, last answer."""

    id: str
    name: str
    looks: Looks = Customization()
    latency: str = "0"
    shout: str = ""
    squad: str = ""


class SnakeObject(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """One snake of a request."""

    id: str
    name: str
    latency: str
    health: Int32
    body: list[Point]
    head: Point
    length: Int32
    shout: str
    squad: str
    customizations: Looks


class Royale(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Settings of the ruleset royale."""

    shrink_every: Int32 = msgspec.field(name="shrinkEveryNTurns")


class Squad(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """Settings of a ruleset that no longer exists."""

    allow_body_collisions: Flag = UNSET
    shared_elimination: Flag = UNSET
    shared_health: Flag = UNSET
    shared_length: Flag = UNSET


class RulesetSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """Settings of a game."""

    food_spawn_chance: Int32
    minimum_food: Int32
    hazard_damage_per_turn: Int32
    hazard_map: Text = UNSET
    hazard_map_author: Text = UNSET
    royale: Royale
    squad: Squad | UnsetType = UNSET


class Ruleset(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Rules of a game by name."""

    name: str
    version: str
    settings: RulesetSettings


class Game(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The `game` object of every request of one game."""

    id: str
    ruleset: Ruleset
    map: Text = UNSET
    timeout: Int32
    source: Text = UNSET


class BoardObject(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The `board` object of a request."""

    height: Int32
    width: Int32
    snakes: list[SnakeObject]
    food: list[Point]
    hazards: list[Point]


class RequestObject(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A request as it stands in JSON."""

    game: Game
    turn: Int32
    board: BoardObject
    you: SnakeObject


class Result(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """The last line of a game file."""

    winner_id: str
    winner_name: str
    is_draw: bool


def game_object(
    *, game_id: str, ruleset: str, map_name: str, timeout_ms: int, settings: core.Settings
) -> Game:
    """Return the `game` object as the official engine fills it. `timeout_ms` in milliseconds."""
    return Game(
        id=game_id,
        ruleset=Ruleset(
            name=ruleset,
            version="snakekit",
            settings=RulesetSettings(
                food_spawn_chance=settings.food_spawn_chance,
                minimum_food=settings.minimum_food,
                hazard_damage_per_turn=settings.hazard_damage,
                hazard_map="",
                hazard_map_author="",
                royale=Royale(shrink_every=settings.shrink_every),
                squad=Squad(
                    allow_body_collisions=False,
                    shared_elimination=False,
                    shared_health=False,
                    shared_length=False,
                ),
            ),
        ),
        map=map_name,
        timeout=timeout_ms,
        source="custom",
    )


def snake_object(snake: core.Snake, seat: Seat) -> SnakeObject:
    """Return one snake as it stands in `board.snakes` and `you`."""
    body = points(snake.body)
    return SnakeObject(
        id=seat.id,
        name=seat.name,
        latency=seat.latency,
        health=snake.health,
        body=body,
        head=body[0],
        length=len(body),
        shout=seat.shout,
        squad=seat.squad,
        customizations=seat.looks,
    )


def board_object(state: core.State, snakes: Iterable[SnakeObject]) -> BoardObject:
    """Return the board with `snakes` (the living ones, for a request) on it."""
    return BoardObject(
        height=state.height,
        width=state.width,
        snakes=list(snakes),
        food=points(state.food()),
        hazards=points(state.hazards()),
    )


def points(cells: Sequence[tuple[int, int]]) -> list[Point]:
    """Return squares as objects."""
    return [Point(x=x, y=y) for x, y in cells]


def cells(points: Sequence[Point]) -> list[tuple[int, int]]:
    """Return objects as squares."""
    return [(p.x, p.y) for p in points]
