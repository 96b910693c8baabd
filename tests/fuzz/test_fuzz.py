"""Readers under damaged input: one typed error each, never anything else.

The slow tests run libFuzzer through atheris (dependency group `fuzz`) for
`SNAKEKIT_FUZZ_SECONDS` (30) a target.
"""

import importlib.util
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mutations import LONG, damaged, valid
from targets import SEEDS, TARGETS

from snakekit import core
from snakekit.bench import gamefile, protocol
from snakekit.runtime import api

SECONDS = int(os.environ.get("SNAKEKIT_FUZZ_SECONDS", "30"))
CASES = 500


@pytest.mark.parametrize("target", TARGETS)
def test_damaged_inputs(target: str) -> None:
    dice = random.Random(f"damage {target}")
    seeds = valid(SEEDS[target])
    assert all(TARGETS[target](seed) for seed in seeds)
    taken = 0
    for number in range(CASES):
        made = damaged(dice.choice(seeds), dice)
        try:
            taken += TARGETS[target](made)
        except Exception as error:
            pytest.fail(f"case {number}: {error!r} for {made[:2000]!r}")
    # Damage that is always refused would not reach what lies behind the decoder.
    assert 5 < taken < CASES - 50


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 120)
@pytest.mark.parametrize("target", TARGETS)
def test_libfuzzer(target: str, tmp_path: Path) -> None:
    if importlib.util.find_spec("atheris") is None:
        pytest.skip("atheris is not installed: pip install --group fuzz")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(valid(SEEDS[target])):
        (corpus / f"valid{number}").write_bytes(seed)
    done = subprocess.run(
        [
            # libFuzzer reads the peak memory, which a process inherits from the one that starts
            # it: here a small shell, not the tests with all their nets.
            "sh",
            "-c",
            '"$@"; exit $?',
            "sh",
            sys.executable,
            str(Path(__file__).with_name("targets.py")),
            target,
            str(corpus),
            f"-max_total_time={SECONDS}",
            "-max_len=20000",
            "-rss_limit_mb=2048",
            "-timeout=20",
            "-print_final_stats=1",
            f"-artifact_prefix={tmp_path}{os.sep}",
        ],
        capture_output=True,
        text=True,
        timeout=SECONDS + 100,
        check=False,
    )
    crashes = [path.read_bytes()[:2000] for path in tmp_path.glob("*-*") if path.is_file()]
    assert done.returncode == 0, f"{done.stderr[-4000:]}\n{crashes}"
    units = re.search(r"stat::number_of_executed_units:\s*(\d+)", done.stderr)
    assert units is not None
    print(f"{target}: {units[1]} inputs")
    assert int(units[1]) > 1000


def words(request: dict[str, Any]) -> str:
    with pytest.raises(api.RequestError) as error:
        api.position(api.parse(json.dumps(request).encode()))
    return str(error.value)


def test_a_long_id_listed_twice_is_refused_by_its_field() -> None:
    """The core's message cuts the id off within a character, which is not text any more."""
    request = json.loads(valid("request")[1])
    request["board"]["snakes"] *= 2
    assert words(request).startswith("board.snakes[2].id: ")


DEEP = b'{"ruleset": ' + b"[" * 100_000


@pytest.mark.parametrize("data", [DEEP, b'{"ruleset": {}}\n' + DEEP])
def test_deep_game_files_are_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "game.jsonl"
    path.write_bytes(data)
    with pytest.raises(gamefile.GameFileError, match="nested too deeply"):
        gamefile.read_game(path)


def test_a_game_and_a_result_on_one_line_is_a_game(tmp_path: Path) -> None:
    path = tmp_path / "game.jsonl"
    path.write_bytes(b'{"ruleset": {}, "isDraw": true}')
    assert gamefile.read_game(path).result is None


def test_a_deep_answer_is_a_bad_answer() -> None:
    assert protocol.read_answer(200, DEEP, 1.0).kind is protocol.Kind.BAD_ANSWER


TWICE = [core.Snake(LONG, 100, [(x, 0)]) for x in range(2)]
DOOMED = [core.Snake("a", 100, [(0, 0)], LONG)]


@pytest.mark.parametrize(
    "make",
    [
        lambda: core.State(7, 7, TWICE),
        lambda: core.State(7, 7, DOOMED),
        lambda: core.State.new_game(7, 7, ["a"], 0, core.Settings(map=LONG)),
    ],
    ids=["id twice", "unknown cause", "unknown map"],
)
def test_the_core_cuts_texts_between_characters(make: Callable[[], core.State]) -> None:
    with pytest.raises(core.StateError):
        make()


def number(dice: random.Random) -> Any:
    return dice.choice(
        [
            *(0, 1, 3, 7, 25, -1, 26, 100, 101, 255, 2**15, 2**31 - 1, -(2**31)),
            *(2**31, 2**63, -(2**70), 10**30, 1.5, float("nan"), float("inf"), None, "7", True),
            *(dice.randint(-3, 30) for _ in range(12)),
        ]
    )


def spot(dice: random.Random) -> Any:
    if dice.random() < 0.95:
        return dice.randint(-1, 7), dice.randint(-1, 7)
    return dice.choice([(number(dice), number(dice)), (1,), (1, 2, 3), None, "ab", []])


def snake(dice: random.Random) -> Any:
    if dice.random() < 0.02:
        return dice.choice([None, "snake", 3])
    size = dice.choice((0, 1, 1, 3, 3, 3, 5, 8, 121, 400, 3000))
    body = [spot(dice)] * size if dice.random() < 0.5 else [spot(dice) for _ in range(size)]
    health = dice.randint(0, 100) if dice.random() < 0.8 else number(dice)
    identity = dice.choice((*"abcdefgh", "", "é" * 99, "\x00", "\ud800", None, 7))
    cause = dice.choice((*core.CAUSES, "", "", "", "", "boredom"))
    return core.Snake(identity, health, body, cause, dice.choice(("", "a", LONG)), number(dice))


def use(state: core.State, dice: random.Random) -> None:
    """Call everything on a board that the constructor took."""
    assert state == state.copy()
    for seat in state.living():
        assert state.legal_mask(seat) | state.safe_mask(seat) < 16
        assert core.reflex_move(state, seat) in range(4)
        core.greedy_move(state, seat, dice.getrandbits(64))
    for version in core.PLANES:
        state.encode(version, state.living())
    state.spawn_food(dice.getrandbits(64))
    for _ in range(3):
        state.step([dice.randint(-5, 9) for _ in range(state.num_snakes)])
    state.hash()


def test_the_core_takes_or_refuses_extreme_values() -> None:
    dice = random.Random(7)
    refused = (core.StateError, TypeError, OverflowError)
    taken = 0
    for _ in range(4000):
        usual = dice.random() < 0.7
        width, height = (dice.randint(3, 25) if usual else number(dice) for _ in range(2))
        try:
            settings = core.Settings(
                ruleset=dice.choice((*core.RULESETS, "", LONG)),
                hazard_damage=dice.randint(-1000, 1000) if usual else number(dice),
                minimum_food=dice.randint(0, 625) if usual else number(dice),
            )
            state = core.State(
                width,
                height,
                [snake(dice) for _ in range(dice.choice((0, 1, 1, 2, 2, 3, 8, 17)))],
                [spot(dice) for _ in range(dice.choice((0, 0, 1, 3)))],
                [spot(dice)] * dice.choice((0, 0, 1, 3, 255, 256)),
                turn=dice.choice((0, 1, 10**9)) if usual else number(dice),
                settings=settings,
            )
        except refused:
            continue
        taken += 1
        use(state, dice)
    assert taken > 200
