"""Every recorded transition of the official engine, compared field by field.

`SNAKEKIT_CORPUS=FILE` runs the comparison over that recording instead of the committed sample.
"""

import difflib
import json
import os
from collections import Counter
from pathlib import Path

import pytest
from core_boards import SAMPLE, corpus, fields, points, snake_of, state_of

from snakekit.core import State

WORDS = {"up": 0, "down": 1, "left": 2, "right": 3}
SHOWN = 5


def recorded() -> Path:
    return Path(os.environ.get("SNAKEKIT_CORPUS", SAMPLE))


def expected(line: dict) -> dict:
    return {
        "snakes": [fields(snake_of(entry)) for entry in line["rules"]["snakes"]],
        "food": points(line["rules"]["food"]),
        "hazards": sorted(points(line["before"]["hazards"])),
    }


def found(state: State) -> dict:
    return {
        "snakes": [fields(snake) for snake in state.snakes()],
        "food": state.food(),
        "hazards": state.hazards(),
    }


def turn(line: dict) -> tuple[bool, State]:
    """Whether the game was over before, and the board afterwards."""
    state = state_of(line)
    over = state.game_over()
    if not line["moves"]:
        state.initialise()
        return over, state
    words = dict(line["moves"])
    state.step([WORDS.get(words.get(snake.id, ""), -1) for snake in state.snakes()])
    return over, state


def rows(values: dict) -> list[str]:
    out = [f"snake {snake}" for snake in values["snakes"]]
    return [*out, f"food {values['food']}", f"hazards {values['hazards']}"]


def difference(line: dict, want: dict, got: dict) -> str:
    head = (
        f"{line['game']} turn {line['turn']}: {line['ruleset']} solo={line['solo']} "
        f"{line['map']} {line['width']}x{line['height']} tags={line['tags']}\n"
        f"before {json.dumps(line['before'])}\nmoves {line['moves']}\n"
    )
    return head + "\n".join(
        difflib.unified_diff(rows(want), rows(got), "engine", "here", "", "", 0)
    )


@pytest.mark.timeout(600)
def test_every_recorded_turn_is_reproduced_exactly():
    wrong = []
    count = 0
    for line in corpus(recorded()):
        count += 1
        over, state = turn(line)
        want, got = expected(line), found(state)
        # An initialising call reports "not over" whatever the board holds.
        same_end = over == line["gameOver"] or not line["moves"]
        if want == got and same_end:
            continue
        if not same_end:
            want["snakes"].append(("game over", line["gameOver"]))
            got["snakes"].append(("game over", over))
        wrong.append(difference(line, want, got))
    assert count > 0
    assert not wrong, f"{len(wrong)} of {count} turns differ\n\n" + "\n\n".join(wrong[:SHOWN])


def test_a_finished_turn_counts_and_a_finished_game_stands_still():
    for line in corpus():
        if not line["moves"]:
            continue
        over, state = turn(line)
        assert state.turn == line["turn"] + (0 if over else 1)


def test_the_sample_shows_every_case():
    tags: Counter[str] = Counter()
    rulesets, sizes, maps, snakes = set(), set(), set(), set()
    ends = Counter()
    for line in corpus():
        tags.update(line["tags"])
        rulesets.add((line["ruleset"], line["solo"]))
        sizes.add((line["width"], line["height"]))
        maps.add(line["map"])
        snakes.add(len(line["before"]["snakes"]))
        ends[line["gameOver"]] += 1
    assert len(tags) == 54
    assert min(count for tag, count in tags.items() if tag != "self_beats_other") >= 30
    assert len(rulesets) == 12
    assert len(sizes) == 11
    assert len(maps) == 25
    assert snakes == set(range(1, 11))
    assert ends[True] >= 30
    assert ends[False] >= 1000
