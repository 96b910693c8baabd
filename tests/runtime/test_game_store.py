"""The memory of games: bounded, expiring, any order of calls."""

from hypothesis import given
from hypothesis import strategies as st

from snakekit.runtime.deadline import TimeBudget
from snakekit.runtime.games import GameStore


def store(capacity: int = 3, ttl_s: float = 10) -> GameStore:
    return GameStore(
        lambda: TimeBudget(margin_ms=1, first_guess_ms=1), capacity=capacity, ttl_s=ttl_s
    )


def test_state_belongs_to_the_pair() -> None:
    games = store()
    first = games.seat("g", "a", 0)
    assert games.seat("g", "b", 0) is not first
    assert games.seat("g", "a", 1) is first
    assert (len(games), games.games) == (2, 1)
    assert games.end("g", "a")
    assert not games.end("g", "a")
    assert not games.end("unknown", "a")
    assert (len(games), games.games) == (1, 1)
    assert games.seat("g", "a", 2) is not first


def test_the_longest_unseen_goes_first() -> None:
    games = store(capacity=2)
    kept = games.seat("1", "a", 0)
    games.seat("2", "a", 1)
    games.seat("1", "a", 2)
    games.seat("3", "a", 3)
    assert games.seat("1", "a", 4) is kept
    assert not games.end("2", "a")


def test_old_seats_expire() -> None:
    games = store(ttl_s=10)
    games.seat("1", "a", 0)
    games.seat("2", "a", 8)
    assert games.expire(10) == 0
    assert games.expire(11) == 1
    assert games.games == 1
    games.seat("3", "a", 100)
    assert len(games) == 1


calls = st.tuples(st.sampled_from("se"), st.sampled_from("123456"), st.sampled_from("ab"))


@given(st.lists(calls, max_size=60))
def test_counts_agree_whatever_the_order(sequence: list[tuple[str, str, str]]) -> None:
    games = store(capacity=4, ttl_s=20)
    for now, (what, game, you) in enumerate(sequence):
        if what == "s":
            games.seat(game, you, now)
        else:
            games.end(game, you)
        assert len(games) <= 4
        assert games.games == len({key[0] for key in games._seats})
