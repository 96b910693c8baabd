"""The override rule, by examples and for all inputs."""

import math
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snakekit.runtime.decide import Decision, Reason, best_of, decide

UP, DOWN, LEFT, RIGHT = range(4)
NAN = math.nan


class Found(NamedTuple):
    best: int
    labels: tuple[str, ...]
    distances: tuple[int, ...] = (0, 0, 0, 0)


def found(best: int, distances: tuple[int, ...] = (0, 0, 0, 0), **labels: str) -> Found:
    words = ("up", "down", "left", "right")
    return Found(best, tuple(labels.get(word, "none") for word in words), distances)


WANTS_LEFT = [0.0, 0.5, 2.0, 1.0]


@pytest.mark.parametrize(
    ("logits", "search", "move", "reason"),
    [
        (WANTS_LEFT, found(UP), LEFT, Reason.POLICY),
        (WANTS_LEFT, found(UP, left="loss"), UP, Reason.SEARCH_AVOIDS_LOSS),
        (WANTS_LEFT, found(LEFT, up="loss", left="loss"), LEFT, Reason.POLICY),
        (WANTS_LEFT, found(UP, up="loss"), LEFT, Reason.POLICY),
        (WANTS_LEFT, found(UP, (3, 0, 0, 0), up="win"), UP, Reason.SEARCH_WIN),
        (WANTS_LEFT, found(UP, (5, 0, 5, 3), up="win", left="win", right="win"), RIGHT, "sooner"),
        (WANTS_LEFT, found(UP, (3, 0, 3, 0), up="win", left="win"), LEFT, Reason.POLICY),
        (WANTS_LEFT, found(UP, (3, 0, 1, 0), up="win", left="loss"), UP, Reason.SEARCH_WIN),
        ([NAN, 0, 0, 0], found(RIGHT), RIGHT, Reason.SEARCH_NO_POLICY),
        ([math.inf, 0, 0, 0], found(RIGHT), RIGHT, Reason.SEARCH_NO_POLICY),
        ([0.0, 1.0], found(RIGHT), RIGHT, Reason.SEARCH_NO_POLICY),
        (None, found(RIGHT), RIGHT, Reason.SEARCH_NO_POLICY),
        (WANTS_LEFT, None, LEFT, Reason.POLICY_NO_SEARCH),
        (WANTS_LEFT, Found(9, ("none",) * 4), LEFT, Reason.POLICY_NO_SEARCH),
        (WANTS_LEFT, Found(0, ()), LEFT, Reason.POLICY_NO_SEARCH),
        ([NAN] * 4, None, DOWN, Reason.REFLEX),
        (None, None, DOWN, Reason.REFLEX),
    ],
)
def test_examples(logits: list[float] | None, search: Found | None, move: int, reason: str) -> None:
    decision = decide(legal=15, safe=15, reflex=DOWN, logits=logits, search=search)
    assert decision.move == move
    assert decision.reason == (Reason.SEARCH_WIN if reason == "sooner" else reason)


def test_policy_is_masked_by_safe_moves_then_by_legal_ones() -> None:
    assert decide(legal=15, safe=0b1010, reflex=1, logits=WANTS_LEFT).move == RIGHT
    assert decide(legal=0b0011, safe=0, reflex=0, logits=WANTS_LEFT).move == DOWN
    assert decide(legal=0, safe=0, reflex=0, logits=WANTS_LEFT).move == LEFT


def test_one_safe_move_is_forced_whatever_else_is_said() -> None:
    decision = decide(
        legal=15, safe=0b0100, reflex=UP, logits=[9, 0, 0, 0], search=found(UP, up="win")
    )
    assert decision == Decision(LEFT, Reason.FORCED, None)


def test_modes_name_what_was_not_asked() -> None:
    only = decide(legal=15, safe=15, reflex=0, search=found(RIGHT), policy_asked=False)
    assert only == Decision(RIGHT, Reason.SEARCH_ONLY, None)
    alone = decide(legal=15, safe=15, reflex=0, logits=WANTS_LEFT, search_asked=False)
    assert alone == Decision(LEFT, Reason.POLICY, LEFT)


def test_best_of_takes_the_first_of_equals() -> None:
    assert best_of([1, 1, 1, 1], 0b1100) == LEFT
    assert best_of([1, 1, 1, 1], 0) is None


numbers = st.floats(allow_nan=True, allow_infinity=True, width=32)
policies = st.none() | st.lists(numbers, min_size=4, max_size=4)
labels = st.sampled_from(["win", "loss", "none"])
searches = st.none() | st.builds(
    Found,
    st.integers(-1, 4),
    st.tuples(labels, labels, labels, labels),
    st.tuples(*[st.integers(0, 30)] * 4),
)
masks = st.integers(0, 15)


@given(masks, masks, policies, searches, st.integers(0, 3), st.booleans(), st.booleans())
def test_for_all_inputs(
    legal: int,
    safe: int,
    logits: list[float] | None,
    search: Found | None,
    reflex: int,
    policy_asked: bool,
    search_asked: bool,
) -> None:
    safe &= legal
    decision = decide(
        legal=legal,
        safe=safe,
        reflex=reflex,
        logits=logits,
        search=search,
        policy_asked=policy_asked,
        search_asked=search_asked,
    )
    move, reason, wanted = decision
    assert move in range(4)
    if reason is Reason.REFLEX:
        assert move == reflex
        return
    if legal:
        assert legal >> move & 1
    if reason in (Reason.POLICY, Reason.POLICY_NO_SEARCH):
        assert move == wanted
        assert not safe or safe >> move & 1 or (search and search.labels[move] == "win")
    if reason is Reason.SEARCH_WIN:
        assert search is not None
        wins = [m for m in range(4) if (legal or 15) >> m & 1 and search.labels[m] == "win"]
        assert search.distances[move] == min(search.distances[m] for m in wins)
        assert move != wanted
    if reason is Reason.SEARCH_AVOIDS_LOSS:
        assert search is not None
        assert wanted is not None
        assert search.labels[wanted] == "loss"
        assert move == search.best != wanted
