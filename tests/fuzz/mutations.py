"""Valid inputs of every reader, and ways to damage them."""

import copy
import json
import random
from typing import Any

from snakekit.core import Settings, Snake, State
from snakekit.runtime import wire
from snakekit.runtime.boardjson import BoardRecord, GameFile, write_game, write_request
from snakekit.runtime.frames import FrameRecord, FrameSeat, write_frame

SIZE = (7, 9)
# Long names that are cut off, lone surrogates, numbers at the edges of every integer type.
VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    1,
    3,
    25,
    26,
    101,
    256,
    2**15,
    2**31 - 1,
    2**31,
    -(2**31) - 1,
    2**63,
    10**40,
    0.5,
    -0.0,
    1e308,
    "",
    "a",
    "b",
    "solo",
    "\x00",
    "é" * 300,
    "a" + "é" * 300,
    "\ud800",
    "🐍" * 70,
    [],
    [None],
    [[]],
    [{}],
    [{"x": 0, "y": 0} for _ in range(400)],
    [{"x": 1, "y": y % 9} for y in range(2000)],
    [{"X": -1, "Y": 0} for _ in range(3)],
    {},
    {"x": 5, "y": 5},
    {"X": 3, "Y": -9},
    {"Cause": "a" + "é" * 60, "Turn": 0, "EliminatedBy": ""},
    {"name": None},
]
KEYS = ("", "x", "id", "board", "ruleset", "isDraw", "Data", "line\nfeed", "long" * 900)
BITS = (b"\n", b"\r", b"\xff", b"null", b"1e400", b'"\\ud800"', b"-")


# Cut at an even number of bytes it ends within a character.
LONG = "a" + "é" * 60


def _state(ids: list[str], *, dead: bool) -> State:
    snakes = [
        Snake(ids[0], 90, [(1, 1), (1, 2), (1, 2)]),
        Snake(ids[1], 100, [(4, 4), (4, 5), (5, 5)]),
        Snake(ids[2], 0, [(7, 0), (6, 0)], "wall-collision", "", 3),
    ]
    food, hazards = [(0, 0), (3, 3)], [(2, 2), (2, 2), (1, 9)]
    return State(*SIZE, snakes if dead else snakes[:2], food, hazards, turn=4)


def _valid(ids: list[str]) -> dict[str, bytes]:
    settings = Settings()
    game = wire.game_object(
        game_id="g", ruleset="standard", map_name="standard", timeout_ms=500, settings=settings
    )
    state, whole = _state(ids, dead=False), _state(ids, dead=True)
    record = BoardRecord(game, state, [wire.Seat(i, i.upper()) for i in ids[:2]], 0)
    lost = BoardRecord(game, whole, [wire.Seat(i, i.upper()) for i in ids], 2)
    result = wire.Result(winner_id=ids[0], winner_name="A", is_draw=False)
    frame = FrameRecord(whole, [FrameSeat(id=i, name=i, color="#123456") for i in ids])
    return {
        "request": write_request(record),
        "game": write_game(GameFile(game, [record, lost], result)),
        "frame": write_frame(frame),
    }


def valid(kind: str) -> list[bytes]:
    """Good inputs of a kind; an answer to `/move` is the simplest."""
    if kind == "answer":
        return [b'{"move": "left", "shout": "hello"}', b'{"move": "up"}']
    return [_valid(ids)[kind] for ids in (["a", "b", "c"], [LONG, "b" + LONG, "c" + LONG])]


def _places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(node, (dict, list)):
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in items:
            found += _places(value, (*path, key))
    return found


def _at(node: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        node = node[key]
    return node


def damaged_value(value: Any, dice: random.Random) -> Any:
    """Replace, remove, repeat or swap a few parts of a JSON document."""
    made = copy.deepcopy(value)
    for _ in range(dice.choice((1, 1, 2, 5))):
        places = _places(made)
        if not places:
            return dice.choice(VALUES)
        path = dice.choice(places)
        node = _at(made, path[:-1])
        action = dice.random()
        if action < 0.15:
            del node[path[-1]]
        elif action < 0.3 and isinstance(node, list):
            node.insert(dice.randrange(len(node) + 1), copy.deepcopy(node[path[-1]]))
        elif action < 0.4:
            node[path[-1]] = copy.deepcopy(_at(value, dice.choice(_places(value))))
        elif action < 0.55 and isinstance(node, dict):
            node[dice.choice(("", "x", "id", "board", "ruleset", "isDraw", "Data"))] = node[
                path[-1]
            ]
        elif action < 0.7:
            node[path[-1]] = dice.randint(-3, 30)
        else:
            node[path[-1]] = copy.deepcopy(dice.choice(VALUES))
    return made


def damaged_bytes(data: bytes, dice: random.Random) -> bytes:
    """Change, cut, repeat or nest bytes."""
    made = bytearray(data)
    for _ in range(dice.choice((1, 2, 6))):
        at = dice.randrange(len(made) + 1)
        action = dice.randrange(5)
        if action == 0:
            made[at : at + 1] = bytes([dice.randrange(256)])
        elif action == 1:
            del made[at : at + dice.choice((1, 5, 50))]
        elif action == 2:
            made[at:at] = made[at : at + 40]
        elif action == 3:
            made[at:at] = dice.choice((b"[", b'{"a":')) * dice.choice((1, 60, 30_000))
        else:
            made[at:at] = dice.choice(
                (b"\n", b"\r", b"\xff", b"null", b"1e400", b'"\\ud800"', b"-")
            )
    return bytes(made)


def damaged(data: bytes, dice: random.Random) -> bytes:
    """Damage the structure of one line, or the bytes of all."""
    if dice.random() < 0.3:
        return damaged_bytes(data, dice)
    lines = [json.loads(line) for line in data.splitlines()]
    at = dice.randrange(len(lines))
    lines[at] = damaged_value(lines[at], dice)
    if dice.random() < 0.1:
        dice.shuffle(lines)
    return b"\n".join(json.dumps(line).encode() for line in lines)
