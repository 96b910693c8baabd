"""Budgets: within 0..timeout whatever the engine says, and learned from what it says."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snakekit.runtime.deadline import TimeBudget, latency_ms


def budget(margin: float = 25, guess: float = 80) -> TimeBudget:
    return TimeBudget(margin_ms=margin, first_guess_ms=guess)


@pytest.mark.parametrize(
    ("value", "expected"),
    [("43", 43), ("0", 0), (" 7 ", 7), ("7.5", 7.5), (12, 12), (1.5, 1.5)]
    + [(odd, None) for odd in ("", "abc", "-5", "1e9", "²", "9" * 500, "nan", "inf", "0x10")]
    + [(odd, None) for odd in (None, True, [], {}, -1, float("nan"), float("inf"), 10**400)],
)
def test_latency(value: Any, expected: float | None) -> None:
    assert latency_ms(value) == expected


def test_first_move_uses_the_guess_and_small_timeouts_shrink_both() -> None:
    assert budget().budget(500) == 500 - 80 - 25
    assert budget().budget(33) == pytest.approx(33 * 0.5)
    assert budget().budget(0) == budget().budget(-5) == budget().budget(float("nan")) == 0


def test_overhead_is_latency_less_own_time() -> None:
    b = budget()
    b.answered(0, 200)
    assert not b.observe(1, "230", 500)
    assert b.overhead(500) == 30
    assert b.budget(500) == 500 - 30 - 25


def test_one_outlier_is_forgiven_and_two_are_not() -> None:
    b = budget()
    for turn, latency in enumerate(["30", "31", "300", "29"]):
        b.answered(turn, 10)
        b.observe(turn + 1, latency, 500)
    assert b.overhead(500) == 21
    b.answered(8, 10)
    b.observe(9, "250", 500)
    assert b.overhead(500) == 240


def test_only_the_turn_before_counts_and_only_once() -> None:
    b = budget()
    assert not b.observe(5, "100", 500)
    b.answered(5, 10)
    assert not b.observe(5, "100", 500)
    assert not b.observe(7, "100", 500)
    assert b.samples == 0
    b.observe(6, "100", 500)
    b.observe(6, "100", 500)
    assert b.samples == 1


def test_nothing_is_learned_from_nonsense() -> None:
    for odd in ("", "abc", None, "0", [], -3):
        b = budget()
        b.answered(1, 20)
        assert not b.observe(2, odd, 500)
        assert b.samples == 0


def test_timeouts_are_counted_and_make_cautious_for_a_while() -> None:
    b = budget()
    b.answered(0, 10)
    b.observe(1, "20", 500)
    calm = b.budget(500)
    b.answered(1, 10)
    assert b.observe(2, "500", 500)
    assert b.timeouts == 1
    frightened = b.budget(500)
    assert frightened < calm - 50
    for turn in range(2, 12):
        b.answered(turn, 10)
        assert not b.observe(turn + 1, "20", 500)
    assert b.budget(500) == pytest.approx(calm, abs=1)


anything = st.one_of(
    st.none(), st.text(max_size=8), st.integers(), st.floats(), st.integers(0, 600).map(str)
)


@given(
    st.lists(st.tuples(st.integers(-2, 30), anything, st.floats(0, 2000)), max_size=30),
    st.floats(0, 60_000),
    st.floats(0, 500),
    st.floats(0, 500),
)
def test_budget_stays_within_the_timeout(
    moves: list[tuple[int, Any, float]], timeout: float, margin: float, guess: float
) -> None:
    b = budget(margin, guess)
    for turn, latency, own in moves:
        b.observe(turn, latency, timeout)
        assert 0 <= b.budget(timeout) <= timeout
        b.answered(turn, own)
        assert 0 <= b.budget(timeout) <= timeout
