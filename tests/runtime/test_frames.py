"""Frames of the event stream: the same values back, and refusals by the field's path."""

import gzip
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from board_games import LONG, Json, change, duel, games, many, random_settings, start, turns

from snakekit import core
from snakekit.core import Snake, State
from snakekit.runtime.boardjson import BoardError
from snakekit.runtime.frames import FrameRecord, FrameSeat, is_frame, read_frame, write_frame

DATA = Path(__file__).parents[1] / "data"


@games
@many
def test_frames_come_back_with_their_dead(seed: int, ruleset: str, count: int, text: str) -> None:
    dice = random.Random(seed)
    settings = random_settings(dice, ruleset, solo=dice.random() < 0.5)
    for state in turns(dice, start(dice, settings, count), 40)[-3:]:
        seats = [
            FrameSeat(id=s.id, name=text, color=text, latency=text, is_bot=False)
            for s in state.snakes()
        ]
        body = write_frame(FrameRecord(state, seats))
        found = read_frame(body, state.width, state.height, settings)
        assert found.state == state
        assert found.seats == seats
        assert write_frame(found) == body


def test_frames_of_all_causes() -> None:
    dead = [
        Snake(f"s{i}", 0, [(-1, 2), (0, 2)], cause, "s1" if i % 2 else "", i)
        for i, cause in enumerate(core.CAUSES[1:])
    ]
    state = State(5, 4, [Snake("a", 1, [(4, 3)]), *dead], turn=9)
    record = FrameRecord(state, [FrameSeat(id=s.id) for s in state.snakes()])
    assert read_frame(write_frame(record), 5, 4).state == state


def test_recorded_boards_come_back() -> None:
    """Boards of the official engine, with the dead where they died, also off the board."""
    found = 0
    with gzip.open(DATA / "rules_corpus_sample.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            before = line["before"]
            snakes = [
                Snake(
                    s["id"],
                    s["health"],
                    [(x, y) for x, y in s["body"]],
                    s.get("eliminatedCause", ""),
                    s.get("eliminatedBy", ""),
                    s.get("eliminatedOnTurn", 0),
                )
                for s in before["snakes"]
            ]
            food, hazards = ([(x, y) for x, y in before[name]] for name in ("food", "hazards"))
            width, height = line["width"], line["height"]
            state = State(width, height, snakes, food, hazards, turn=line["turn"])
            record = FrameRecord(state, [FrameSeat(id=s.id) for s in snakes])
            assert read_frame(write_frame(record), width, height).state == state
            found += len(state.living()) < len(snakes)
    assert found > 500


def frame() -> Json:
    """One turn of a real stream's form, with the snake that hit the wall still listed."""
    looks = {"Color": "#4d004d", "HeadType": "silly", "TailType": "pixel"}
    rest = {"URL": "", "Latency": "0", "Shout": "", "Squad": "", "APIVersion": "", "Author": "x"}
    return {
        "Type": "frame",
        "Data": {
            "Turn": 2,
            "Snakes": [
                {
                    "ID": "a",
                    "Name": "one",
                    "Body": [{"X": 1, "Y": 7}, {"X": 1, "Y": 6}],
                    "Health": 98,
                    "Death": {"Cause": "wall-collision", "Turn": 2, "EliminatedBy": ""},
                    **looks,
                    **rest,
                },
                {
                    "ID": "b",
                    "Body": [{"X": 5, "Y": 2}, {"X": 5, "Y": 1}],
                    "Health": 98,
                    "Death": None,
                    "StatusCode": 200,
                    "Error": "",
                    "IsBot": False,
                    "IsEnvironment": True,
                },
            ],
            "Food": [{"X": 3, "Y": 3}],
            "Hazards": [{"X": 0, "Y": 0}],
        },
    }


def read_json_frame(value: Json) -> FrameRecord:
    return read_frame(json.dumps(value).encode(), 7, 7)


def test_a_frame_keeps_every_value() -> None:
    record = read_json_frame(frame())
    assert record.state.living() == [1]
    assert record.state.snakes()[0].eliminated_on_turn == 2
    assert record.seats[0].head_type == "silly"
    assert json.loads(write_frame(record)) == frame()


def test_events_are_told_apart() -> None:
    assert is_frame(json.dumps(frame()).encode())
    assert not is_frame(b'{"Type": "game_end", "Data": {"Game": {}}}')
    for body in (b"", b"[]", b"{}", b"\xff"):
        with pytest.raises(BoardError):
            is_frame(body)
    with pytest.raises(BoardError, match=r"^Type: invalid enum value 'game_end'"):
        read_frame(b'{"Type": "game_end", "Data": {"Game": {}}}', 7, 7)


FIRST = ("Data", "Snakes", 0)
REFUSED_FRAMES: list[tuple[tuple[Any, ...], Any, str]] = [
    ((*FIRST, "Health"), 101, "Data.Snakes[0].Health: 101 is outside 0..100"),
    ((*FIRST, "Body"), [], "Data.Snakes[0].Body: empty"),
    ((*FIRST, "Body"), None, "Data.Snakes[0].Body: expected array, got null"),
    ((*FIRST, "Body", 1), {"X": 0, "Y": 70}, "Data.Snakes[0].Body[1]: (0, 70) is off"),
    ((*FIRST, "Death"), None, "Data.Snakes[0].Body[0]: (1, 7) is off"),
    ((*FIRST, "Death"), KeyError, "Data.Snakes[0].Death: missing"),
    ((*FIRST, "Death", "Cause"), "", "Data.Snakes[0].Death.Cause: '' is unknown"),
    ((*FIRST, "Death", "Cause"), LONG, "Data.Snakes[0].Death.Cause: "),
    ((*FIRST, "ID"), "b", "Data.Snakes[1].ID: 'b' is listed twice"),
    ((*FIRST, "ID"), KeyError, "Data.Snakes[0].ID: missing"),
    (("Data", "Food", 0), {"X": 7, "Y": 0}, "Data.Food[0]: (7, 0) is off"),
    (("Data", "Hazards", 0), {"X": 0, "Y": 14}, "Data.Hazards[0]: (0, 14) is off"),
    (("Data", "Hazards"), None, "Data.Hazards: expected array, got null"),
    (("Data", "Turn"), -1, "Data.Turn: -1 is outside"),
    (("Data", "Snakes"), None, "Data.Snakes: expected array, got null"),
]


@pytest.mark.parametrize(
    ("path", "new", "words"), REFUSED_FRAMES, ids=[words for _, _, words in REFUSED_FRAMES]
)
def test_bad_frames_are_refused_by_field(path: tuple[Any, ...], new: Any, words: str) -> None:
    made = change(frame(), path, new)
    with pytest.raises(BoardError, match="^" + re.escape(words)):
        read_json_frame(made)


def test_frames_need_a_possible_size() -> None:
    with pytest.raises(BoardError, match=r"^width: 2 is outside"):
        read_frame(json.dumps(frame()).encode(), 2, 7)


def test_what_cannot_be_told_is_not_written() -> None:
    with pytest.raises(BoardError, match=r"^Data\.Snakes: other ids"):
        write_frame(FrameRecord(duel(), []))
    haunted = State(5, 5, [Snake("a", 9, [(1, 1)], "", "b", 4)])
    with pytest.raises(BoardError, match=r"^Data\.Snakes\[0\]\.Death: without a cause"):
        write_frame(FrameRecord(haunted, [FrameSeat(id="a")]))
