"""Duels' turns solved with mixed strategies, against linear programs."""

from collections import Counter
from collections.abc import Iterator

import pytest
from search_parts import contested, fixed, open_board, seats
from slow_search import MARGIN, WIN_SCORE, mixed_value, move_loses, positions, utility

from snakekit.bench.search import fixed_positions
from snakekit.core import Searcher, State


def compare_mixtures(states: Iterator[State], turns: int) -> Counter:
    seen: Counter = Counter()
    for state, seat in seats(states):
        found = fixed(state, seat, turns, mixing="always", mixed_turns=turns)
        if found.mixed_depth == 0:
            assert found.stopped == "proved"
            continue
        assert found.mixed_depth == turns or found.depth < turns
        assert sum(found.mixture) == pytest.approx(1)
        assert min(found.mixture) >= 0
        assert found.value == pytest.approx(mixed_value(state, seat, found.mixed_depth), abs=1e-6)
        seen["mixed" if max(found.mixture) < 0.99 else "pure"] += 1
    return seen


def test_turns_of_a_duel_are_solved_exactly():
    pytest.importorskip("scipy")
    seen = compare_mixtures(positions(13, 250, (2,)), 1)
    seen += compare_mixtures(positions(14, 60, (2,)), 2)
    assert seen["mixed"] > 15
    assert seen["pure"] > 100


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_more_turns_of_more_duels_are_solved_exactly():
    pytest.importorskip("scipy")
    seen = compare_mixtures(positions(15, 500, (2,)), 2)
    seen += compare_mixtures(positions(16, 60, (2,)), 3)
    assert seen["mixed"] > 40


def test_a_contested_square_is_played_at_random():
    """Going up or right is met by the longer snake half of the time, whatever we do."""
    found = fixed(contested(), 0, 1)
    assert found.mixture == pytest.approx([0.5, 0, 0, 0.5], abs=0.2)
    assert found.labels[found.best] == "none"
    assert fixed(contested(), 0, 1, mixing="off").mixture is None
    assert fixed(open_board(), 0, 2).mixture is None
    assert fixed(open_board(4), 0, 1, mixing="always").mixture is None


def test_solving_a_turn_ends_where_the_rest_would_not_matter():
    nodes, same = Counter[bool](), 0
    states = fixed_positions(2, 40, 3)
    for state in states:
        early, whole = (
            Searcher(1).search(state, 0, max_nodes=4000, mixing="always", early_stop=stops)
            for stops in (True, False)
        )
        nodes += Counter({True: early.nodes, False: whole.nodes})
        assert early.mixed_depth <= whole.mixed_depth
        same += early.best == whole.best
    assert nodes[True] < 0.65 * nodes[False]
    assert same > 0.8 * len(states)


def test_moves_can_be_drawn_from_the_mixture():
    found = [fixed(contested(), 0, 1, sample=bits) for bits in range(200)]
    shares = Counter(r.best for r in found)
    for move, share in enumerate(found[0].mixture):
        assert abs(shares[move] / 200 - share) < 0.12
    assert [fixed(contested(), 0, 1, sample=bits).best for bits in range(20)] == [
        r.best for r in found[:20]
    ]
    for state, seat in seats(positions(20, 150, (2,))):
        plain, drawn = (fixed(state, seat, 2, sample=bits) for bits in (None, 3))
        assert (drawn.labels, drawn.mixture) == (plain.labels, plain.mixture)
        assert drawn.labels[drawn.best] == plain.labels[plain.best]
        if drawn.best != plain.best:
            assert drawn.mixture[drawn.best] > 0


def test_luck_is_tried_only_where_it_gains():
    kinds: Counter = Counter()
    for state, seat in seats(positions(21, 200, (2,))):
        plain = fixed(state, seat, 2, mixing="off")
        found = fixed(state, seat, 2, mixing="always")
        if found.mixture is None or plain.labels[plain.best] != "none":
            continue
        seen = plain.scores[plain.best]
        tried = seen < MARGIN - WIN_SCORE or found.value >= utility(seen) + 0.2
        kinds[tried] += 1
        if tried:
            assert found.mixture[found.best] > 0
        else:
            assert found.best == plain.best
    assert min(kinds[True], kinds[False]) > 5


def test_a_contested_square_is_a_risk_and_not_a_loss():
    state = contested()
    sound, article = fixed(state, 0, 1), fixed(state, 0, 1, proof="article")
    assert sound.scores == article.scores == [1 - WIN_SCORE, None, None, 1 - WIN_SCORE]
    assert sound.labels == ["none"] * 4
    assert article.labels == ["loss", "none", "none", "loss"]
    assert not move_loses(state, 0, 0, 3)
