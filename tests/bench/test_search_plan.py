"""Texts of search players."""

from pathlib import Path

import pytest

from snakekit.bench.arena.entrants import parse_entrant
from snakekit.bench.players import PlayerError, parse_player
from snakekit.bench.search_plan import PlanError, SearchPlan, parse_plan
from snakekit.core import SHIPPED_VALUE, State


def test_limits_and_options_are_read() -> None:
    assert parse_plan("50") == parse_plan("ms=50") == SearchPlan(budget_us=50_000)
    assert parse_plan("2.5,depth=9") == SearchPlan(budget_us=2500, depth=9)
    plan = parse_plan(
        "nodes=2000,threads=2,mixing=off,opponents=best-reply,selective=on,max_n=off,table_mb=3"
    )
    assert (plan.nodes, plan.table_mb, plan.size_mb) == (2000, 3, 3)
    assert plan.engine == {
        "threads": 2,
        "mixing": "off",
        "opponents": "best_reply",
        "selective": True,
        "max_n": False,
    }
    assert parse_entrant("hybrid::nodes=90,mixed=sample").plan == SearchPlan(nodes=90, sample=True)


def test_every_option_reaches_the_search() -> None:
    state = State.new_game(11, 11, ["a", "b", "c"], 3)
    for options in (
        "threads=2",
        "optimum=0.7,early_stop=off",
        "mixing=always,mixed_turns=2,mixed=sample",
        "opponents=best-reply,max_n=on,far_pruning=off,draw_score=-900",
        "selective=on,proof=article",
    ):
        plan = parse_plan(f"nodes=300,depth=3,{options}")
        assert 1 <= plan.search(plan.searcher(), state, 0, 5).depth <= 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mixing=off", "expected a limit"),
        ("never", "expected a search as search:MS"),
        ("5,speed=9", "found 'speed'"),
        ("5,mixing=maybe", "mixing: expected off, contested or always, found 'maybe'"),
        ("5,opponents=best_reply", "opponents: expected paranoid or best-reply"),
        ("5,draw_score=-2001", "draw_score: expected -2000 to 2000"),
        ("5,threads=0", "threads: expected 1 to 256, found '0'"),
        ("5,max_n=1", "max_n: expected on or off, found '1'"),
        ("5,optimum=0", "optimum: expected a share above 0"),
        ("5,optimum=nan", "optimum: expected a share above 0"),
        ("nan,depth=1", "expected a search as search:MS"),
        ("ms=nan", "ms: expected 1 to 60000 milliseconds"),
        ("nodes=5,nodes=6", "nodes is given twice"),
        ("5,weights=", "expected weights=FILE"),
        ("5,value=", "expected value=FILE or value=off"),
        ("5,value=gone.value", "gone.value: No such file"),
        ("5,", "found ''"),
    ],
)
def test_what_cannot_be_understood_is_refused(text: str, words: str) -> None:
    with pytest.raises(PlanError) as error:
        parse_plan(text)
    assert words in str(error.value)
    with pytest.raises(PlayerError, match="player search:"):
        parse_player(f"search:{text}")


def test_what_judges_duels(tmp_path: Path) -> None:
    file = tmp_path / "some.value"
    file.write_bytes(SHIPPED_VALUE)
    plain, off, learned = (
        parse_plan(f"depth=3{rest}") for rest in ("", ",value=off", f",value={file}")
    )
    assert (plain.weights, off.weights) == (None, {})
    assert learned.learned is not None
    assert len({plain.fingerprint, off.fingerprint, learned.fingerprint}) == 3
    file.write_bytes(b"other")
    with pytest.raises(PlanError, match=r"some\.value: learned value: not a learned value"):
        parse_plan(f"depth=3,value={file}")
