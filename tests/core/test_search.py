"""Scores, moves and lines of the search."""

import json
import random
from collections import Counter

from core_boards import DATA, from_json, play, scattered, snake, target
from make_signature import nodes
from search_parts import BY_SCORE, DEPTH, PLAIN, fixed, open_board, seats
from slow_search import (
    DRAW_SCORE,
    LOW_DRAW,
    MARGIN,
    WIN_SCORE,
    decided_part,
    move_loses,
    move_wins,
    pessimistic,
    positions,
)

from snakekit.core import Searcher, Settings, State


def test_threads_find_the_same_values():
    for state, seat in seats(positions(17, 60)):
        depth = DEPTH[len(state.living())] + 2
        alone, together = (
            fixed(state, seat, depth, threads=n, exact_scores=True, **PLAIN) for n in (1, 3)
        )
        assert together.labels == alone.labels
        assert together.distances == alone.distances
        assert together.scores == alone.scores


def test_one_opponent_at_a_time_sees_less_harm_and_claims_no_more():
    kinder = 0
    for state, seat in seats(positions(18, 60, (3, 4))):
        paranoid = fixed(state, seat, 2, exact_scores=True, **PLAIN)
        other = fixed(state, seat, 2, opponents="best_reply", exact_scores=True, **PLAIN)
        for move in range(4):
            if other.labels[move] == "loss":
                assert move_loses(state, seat, move, other.distances[move])
            elif other.labels[move] == "win":
                assert move_wins(state, seat, move, other.distances[move])
            if other.scores[move] is None or other.labels[move] != "none":
                continue
            kinder += other.scores[move] > paranoid.scores[move]
    assert kinder > 5


def test_where_paranoia_sees_only_losses_the_others_are_taken_to_mind_their_own_good():
    """Two neighbours could close both exits together; neither gains from dying for it."""
    changed = 0
    for state, seat in seats(positions(19, 600, (3, 4))):
        with_it, without = (fixed(state, seat, 2, max_n=on) for on in (True, False))
        assert with_it.scores == without.scores
        if with_it.best == without.best:
            continue
        changed += 1
        assert all(s is None or s < MARGIN - WIN_SCORE for s in with_it.scores)
        assert with_it.labels[with_it.best] == "none"
    assert changed > 3


def test_decided_scores_are_those_of_the_plain_minimax():
    kinds = Counter()
    for state, seat in seats(positions(6, 150)):
        for proof in ("sound", "article"):
            depth = DEPTH[len(state.living())]
            found = fixed(
                state, seat, depth, proof=proof, exact_scores=True, draw_score=LOW_DRAW, **PLAIN
            )
            for move, score in enumerate(found.scores):
                if score is None:
                    continue
                assert found.exact[move]
                want = pessimistic(state, seat, move, found.depth)
                assert decided_part(score) == want
                kinds[want if want == LOW_DRAW else (want > 0) - (want < 0)] += 1
    assert len(kinds) == 4
    assert min(kinds.values()) > 20


def test_scores_that_are_not_exact_are_upper_bounds():
    bounds = 0
    for state, seat in seats(positions(7, 100)):
        depth = DEPTH[len(state.living())]
        plain, all_of_them = (
            fixed(state, seat, depth, **PLAIN, exact_scores=exact) for exact in (False, True)
        )
        if (plain.depth, plain.labels) != (all_of_them.depth, all_of_them.labels):
            continue  # a proof ended one of them sooner
        for move, score in enumerate(plain.scores):
            if score is None:
                continue
            truth = all_of_them.scores[move]
            assert score == truth if plain.exact[move] else score >= truth
            bounds += not plain.exact[move]
        if plain.labels[plain.best] == "none":
            open_moves = [m for m in range(4) if plain.labels[m] == "none" and plain.scores[m]]
            best = max(all_of_them.scores[m] for m in open_moves)
            assert all_of_them.scores[plain.best] == best
    assert bounds > 30


def test_the_best_move_goes_by_label_then_score():
    for state, seat in seats(positions(7, 150)):
        found = fixed(state, seat, 3, **BY_SCORE)
        tried = [m for m in range(4) if found.scores[m] is not None]

        def rank(m: int) -> tuple:
            label, turns = found.labels[m], found.distances[m]  # noqa: B023 - used at once
            order = {"win": (2, -turns), "none": (1, 0), "loss": (0, turns)}[label]
            return (*order, found.scores[m])  # noqa: B023

        assert rank(found.best) == max(rank(m) for m in tried)
        assert found.pv[0] == found.best


LONG = [(0, 2), (1, 2), (2, 2), (3, 2), (4, 2)]


def test_a_win_in_one_turn_is_taken_at_once():
    """The other can only leave its corner onto the square that the longer snake takes."""
    state = State(7, 7, [snake("a", LONG), snake("b", [(0, 0), (1, 0), (2, 0), (3, 0)])])
    found = fixed(state, 0, 4)
    assert (found.best, found.labels[1], found.distances[1]) == (1, "win", 1)
    assert found.scores[1] == WIN_SCORE - 1
    assert (found.stopped, found.depth) == ("proved", 1)


def test_of_two_losses_the_later_one_is_played():
    """A dead end of five turns, or the wall of it at once."""
    wall = [(2, 0), (1, 0), (1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (1, 6)]
    state = State(7, 7, [snake("a", [(0, 4), (0, 5), (0, 6)]), snake("b", wall)])
    found = fixed(state, 0, 7)
    assert found.labels == ["none", "loss", "none", "loss"]
    assert found.scores == [None, 5 - WIN_SCORE, None, 1 - WIN_SCORE]
    assert (found.best, found.distances[1], found.distances[3]) == (1, 5, 1)
    assert found.stopped == "proved"


ENCLOSED = [(1, 0), (0, 0), (0, 1), (1, 1), (1, 2)]


FORCED = [(3, 0), (3, 1), (4, 1), (4, 0), (4, 0)]


def test_a_draw_is_better_than_a_loss_worse_than_a_win_and_worth_what_is_asked():
    """Both can only go to (2, 0); equal lengths die together."""
    state = State(5, 5, [snake("a", ENCLOSED), snake("b", FORCED)])
    found = fixed(state, 0, 4)
    assert found.scores == [1 - WIN_SCORE, None, None, DRAW_SCORE]
    assert found.labels == ["loss", "none", "none", "none"]
    assert found.best == 3
    longer = State(5, 5, [snake("a", [*ENCLOSED, (2, 2)]), snake("b", FORCED)])
    assert fixed(longer, 0, 4).scores[3] == WIN_SCORE - 1
    free = State(5, 5, [snake("a", [*ENCLOSED[:3], (0, 2), (0, 3)]), snake("b", FORCED)])
    found = fixed(free, 0, 4, draw_score=LOW_DRAW, exact_scores=True, **BY_SCORE)
    assert found.scores[3] == LOW_DRAW < found.scores[0]
    assert found.best == 0
    found = fixed(free, 0, 4, draw_score=-LOW_DRAW, exact_scores=True, **BY_SCORE)
    assert found.scores[3] == found.scores[found.best] == -LOW_DRAW


def test_the_recorded_number_of_nodes():
    entries = json.loads((DATA / "search_signature.json").read_text(encoding="utf-8"))
    assert len(entries) == 6
    for entry in entries:
        state = from_json(entry["board"])
        assert nodes(state, entry["depth"]) == entry["nodes"]
        assert nodes(state, entry["depth"]) == entry["nodes"]


def test_fixed_depth_is_reached_and_deeper_costs_more():
    results = [fixed(open_board(), 0, depth) for depth in (1, 2, 3, 4)]
    assert [r.depth for r in results] == [1, 2, 3, 4]
    assert {r.stopped for r in results} == {"depth"}
    assert sorted({r.nodes for r in results}) == [r.nodes for r in results]
    assert all(abs(s) < -LOW_DRAW for s in results[-1].scores if s is not None)


def test_priors_order_the_root_and_change_no_proof():
    plain_options = {**BY_SCORE, "draw_score": LOW_DRAW}
    for state, seat in seats(positions(9, 40)):
        plain = fixed(state, seat, 2, **plain_options)
        for favourite in range(4):
            priors = [0.1] * 4
            priors[favourite] = 0.7
            found = fixed(state, seat, 2, priors=priors, **plain_options)
            assert (found.labels, found.distances) == (plain.labels, plain.distances)
            assert decided_part(found.scores[found.best]) == decided_part(plain.scores[plain.best])


def test_priors_decide_between_moves_held_equal():
    decided = 0
    for state, seat in seats(positions(9, 150)):
        options = {"exact_scores": True, **BY_SCORE}
        plain = fixed(state, seat, 2, **options)
        if plain.labels[plain.best] != "none":
            continue
        best = (plain.scores[plain.best], "none")
        top = [m for m in range(4) if (plain.scores[m], plain.labels[m]) == best]
        for wanted in top if len(top) > 1 else ():
            priors = [0.1] * 4
            priors[wanted] = 0.7
            assert fixed(state, seat, 2, priors=priors, **options).best == wanted
            decided += 1
    assert decided > 5


def test_the_line_of_a_lone_snake_can_be_played():
    rng = random.Random(3)
    for _ in range(30):
        state = scattered(rng, 6, 6, 1, Settings(solo=True), food=3)
        for _ in play(state, rng, rng.randint(3, 40)):
            pass
        if not state.living():
            continue
        found = fixed(state, 0, 5)
        assert 1 <= len(found.pv) <= max(found.depth, 1)
        assert found.labels == ["none"] * 4
        for move in found.pv:
            if state.legal_mask(0):
                assert state.legal_mask(0) >> move & 1
            assert state.safe_mask(0) == 0 or state.safe_mask(0) >> move & 1
            state.step([move])


def test_lines_begin_with_legal_moves():
    for state, seat in seats(positions(10, 100)):
        found = fixed(state, seat, 3)
        legal = state.legal_mask(seat)
        assert legal == 0 or legal >> found.best & 1
        assert 1 <= len(found.pv) <= found.depth
        assert all(0 <= move < 4 for move in found.pv)
        for move, score in enumerate(found.scores):
            assert (score is None) == (legal != 0 and not legal >> move & 1)


def test_a_lone_survivor_still_gets_a_move():
    """The engine asks the winner once more, on a board whose ruleset knows no end."""
    gone = snake("b", [(5, 5), (5, 4)], eliminated_cause="head-collision")
    for others in ([], [gone]):
        state = State(7, 7, [snake("a", [(0, 0), (0, 1), (0, 2)]), *others])
        found = Searcher(1).search(state, 0, budget_us=50_000)
        assert found.best == 3
        assert found.labels == ["none"] * 4
        assert target(state, 0, found.best) == (1, 0)
