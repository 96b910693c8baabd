"""The search: proofs against brute force, what it reports, and how it is stopped."""

import contextlib
import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from core_boards import DATA, from_json, play, scattered, snake, target, to_json
from make_signature import nodes
from slow_search import (
    DRAW_SCORE,
    MARGIN,
    WIN_SCORE,
    decided_part,
    lost,
    mixed_value,
    move_loses,
    move_wins,
    pessimistic,
    positions,
    recorded,
    sane_replies,
    value,
    won,
)

from snakekit.core import Searcher, Settings, State

PATIENCE = 30  # seconds that a thread may take on a machine busy with other work


def fixed(state: State, seat: int, depth: int, **rest: object):
    return Searcher(1).search(state, seat, budget_us=0, max_depth=depth, **rest)


BY_SCORE = {"mixing": "off", "max_n": False}
"""The best move follows from labels and scores alone."""
PLAIN = {"far_pruning": False, "selective": False, **BY_SCORE}
"""Also nothing is left out: what is decided within the depth is found."""


def seats(states: Iterator[State]) -> Iterator[tuple[State, int]]:
    """One seat of each board, in turn, so that all places in the list are seen."""
    for i, state in enumerate(states):
        living = state.living()
        yield state, living[i % len(living)]


# What brute force can walk through in reasonable time.
DEPTH = {2: 4, 3: 3, 4: 2}


def compare_proofs(states: Iterator[State], depths: dict[int, int], **options: object) -> Counter:
    """Assert every label and count them by what was found."""
    seen: Counter = Counter()
    for state, seat in seats(states):
        n = len(state.living())
        found = fixed(state, seat, depths[n], **options)
        replies = sane_replies(state, seat)
        seen["boards", n] += 1
        for move in range(4):
            label = found.labels[move]
            if found.scores[move] is None:
                assert label == "none"
                continue
            loses = move_loses(state, seat, move, found.depth, replies)
            wins = move_wins(state, seat, move, found.depth)
            about = f"seat {seat} move {move} of {json.dumps(to_json(state))}: {label}"
            assert label != "loss" or loses, f"false proof of loss: {about}"
            assert label != "win" or wins, f"false proof of a win: {about}"
            if n == 2:
                # The last completed depth has proved all that can be proved within it.
                assert label == ("loss" if loses else "win" if wins else "none"), about
            elif label == "none" and (loses or wins):
                # With more rivals a sacrifice of one can help the others; the search leaves it out.
                seen["missed", n] += 1
            seen[label, n] += 1
            if label == "none":
                assert found.distances[move] == 0
                continue
            prove = move_loses if label == "loss" else move_wins
            turns = found.distances[move]
            assert 1 <= turns <= found.depth
            assert prove(state, seat, move, turns), about
            if n == 2:
                assert turns == 1 or not prove(state, seat, move, turns - 1), about
            seen["distance", turns] += 1
    return seen


@pytest.mark.parametrize("selective", [False, True])
def test_proofs_hold_by_brute_force(selective):
    seen = compare_proofs(positions(1 + 20 * selective, 400), DEPTH, selective=selective)
    assert seen["loss", 2] > 50
    assert seen["win", 2] > 20
    assert seen["none", 2] > 50
    assert seen["loss", 3] + seen["loss", 4] > 20
    assert sum(count for (kind, d), count in seen.items() if kind == "distance" and d > 1) > 20


def test_proofs_hold_in_recorded_games():
    seen = compare_proofs(recorded(random.Random(20), 120), {2: 3, 3: 2, 4: 1})
    assert seen["boards", 2] > 20
    assert seen["loss", 2] + seen["loss", 3] + seen["loss", 4] > 10


# More of them: PROOF_POSITIONS=20000 pytest -m slow -k many_proofs --timeout 0
MANY = int(os.environ.get("PROOF_POSITIONS", "2400"))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_many_proofs_hold_by_brute_force(capsys):
    seen = compare_proofs(positions(2, MANY), {2: 6, 3: 4, 4: 2})
    seen += compare_proofs(recorded(random.Random(21), MANY // 4), {2: 4, 3: 2, 4: 2})
    seen += compare_proofs(positions(3, 400, (3, 3, 4)), {2: 6, 3: 3, 4: 3})
    with capsys.disabled():
        print()
        for key, count in sorted(seen.items(), key=str):
            print(*key, count)
    assert seen["loss", 2] > 1000
    assert seen["win", 2] > 300
    assert seen["win", 3] > 10
    # The sacrifices left out are rare.
    assert seen["missed", 3] + seen["missed", 4] < 0.05 * (seen["loss", 3] + seen["loss", 4])


def test_a_pessimistic_loss_does_not_end_the_search_before_it_is_proved():
    """All moves may lose to an opponent who sees them; which ones really lose takes more depth."""
    unproved = 0
    for state, seat in seats(positions(4, 400, (2,))):
        found = fixed(state, seat, 6)
        if "win" in found.labels or found.stopped == "proved":
            continue
        if all(s is None or s < -20_000 for s in found.scores):
            unproved += 1
            assert found.depth == 6
    assert unproved > 5


def test_proofs_hold_when_the_table_knows_other_positions():
    searcher = Searcher(1)
    labels = Counter()
    for state, seat in seats(positions(4, 150)):
        found = searcher.search(state, seat, budget_us=0, max_depth=DEPTH[len(state.living())])
        for move, label in enumerate(found.labels):
            labels[label] += 1
            turns = found.distances[move]
            if label == "loss":
                assert move_loses(state, seat, move, turns)
            elif label == "win":
                assert move_wins(state, seat, move, turns)
    assert labels["loss"] > 50
    assert labels["win"] > 20


def test_two_payoffs_need_no_linear_program():
    pytest.importorskip("scipy")
    survive = {"loss": 0.0, "draw": 1.0, "win": 1.0, "open": 1.0}
    triumph = {"loss": 0.0, "draw": 0.0, "win": 1.0, "open": 0.0}
    found = Counter()
    for state, seat in seats(positions(5, 40, (2, 2, 2, 3))):
        depth = 2 if len(state.living()) == 2 else 1
        alive, win = value(state, seat, depth, survive), value(state, seat, depth, triumph)
        assert lost(state, seat, depth) == (alive < 1e-7)
        assert won(state, seat, depth) == (win > 1 - 1e-7)
        found["lost"] += alive < 1e-7
        found["won"] += win > 1 - 1e-7
    assert min(found["lost"], found["won"]) >= 3
    # Where neither holds the value can be strictly between: two exits, one pursuer.
    assert value(contested(), 0, 1, survive) == pytest.approx(0.5)
    assert not lost(contested(), 0, 1)


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


def test_threads_find_the_same_values():
    for state, seat in seats(positions(17, 60)):
        depth = DEPTH[len(state.living())] + 2
        alone, together = (
            fixed(state, seat, depth, threads=n, exact_scores=True, **PLAIN) for n in (1, 3)
        )
        assert together.labels == alone.labels
        assert together.distances == alone.distances
        assert together.scores == alone.scores


def test_helping_threads_end_with_the_search_they_help():
    """One move is safe, which takes one iteration to see; the limit is a minute away."""
    corner = snake("a", [(0, 0), (0, 1), (0, 2), (0, 3)])
    state = State(11, 11, [corner, snake("b", [(9, 9), (9, 8), (9, 7)])])
    begin = time.perf_counter()
    found = Searcher(1).search(state, 0, budget_us=60_000_000, threads=2)
    assert (found.best, found.stopped) == (3, "single")
    assert time.perf_counter() - begin < PATIENCE


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
            found = fixed(state, seat, depth, proof=proof, exact_scores=True, **PLAIN)
            for move, score in enumerate(found.scores):
                if score is None:
                    continue
                assert found.exact[move]
                want = pessimistic(state, seat, move, found.depth)
                assert decided_part(score) == want
                kinds[want if want == DRAW_SCORE else (want > 0) - (want < 0)] += 1
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


def test_a_draw_is_better_than_a_loss_and_worse_than_anything_else():
    """Both can only go to (2, 0); equal lengths die together."""
    state = State(5, 5, [snake("a", ENCLOSED), snake("b", FORCED)])
    found = fixed(state, 0, 4)
    assert found.scores == [1 - WIN_SCORE, None, None, DRAW_SCORE]
    assert found.labels == ["loss", "none", "none", "none"]
    assert found.best == 3
    longer = State(5, 5, [snake("a", [*ENCLOSED, (2, 2)]), snake("b", FORCED)])
    assert fixed(longer, 0, 4).scores[3] == WIN_SCORE - 1
    free = State(5, 5, [snake("a", [*ENCLOSED[:3], (0, 2), (0, 3)]), snake("b", FORCED)])
    found = fixed(free, 0, 4)
    assert found.best == 0
    assert found.scores[3] == DRAW_SCORE < found.scores[0]


def contested() -> State:
    """Either exit can be met by the longer snake, though not both at once."""
    longer = [(1, 1), (2, 1), (3, 1), (4, 1), (5, 1)]
    return State(7, 7, [snake("a", [(0, 0)] * 3), snake("b", longer)])


def test_a_contested_square_is_a_risk_and_not_a_loss():
    state = contested()
    sound, article = fixed(state, 0, 1), fixed(state, 0, 1, proof="article")
    assert sound.scores == article.scores == [1 - WIN_SCORE, None, None, 1 - WIN_SCORE]
    assert sound.labels == ["none"] * 4
    assert article.labels == ["loss", "none", "none", "loss"]
    assert not move_loses(state, 0, 0, 3)


def test_the_plain_rule_claims_losses_that_are_none():
    false = true = 0
    for state, seat in seats(positions(8, 100)):
        found = fixed(state, seat, 2, proof="article")
        for move, label in enumerate(found.labels):
            if label == "win":
                assert move_wins(state, seat, move, found.depth)
            elif label == "loss":
                holds = move_loses(state, seat, move, found.depth)
                true, false = true + holds, false + (not holds)
    assert true > 30
    assert false > 10


def test_the_recorded_number_of_nodes():
    entries = json.loads((DATA / "search_signature.json").read_text(encoding="utf-8"))
    assert len(entries) == 6
    for entry in entries:
        state = from_json(entry["board"])
        assert nodes(state, entry["depth"]) == entry["nodes"]
        assert nodes(state, entry["depth"]) == entry["nodes"]


def open_board(snakes: int = 2) -> State:
    return State.new_game(11, 11, list("abcdefgh"[:snakes]), 5)


def test_fixed_depth_is_reached_and_deeper_costs_more():
    results = [fixed(open_board(), 0, depth) for depth in (1, 2, 3, 4)]
    assert [r.depth for r in results] == [1, 2, 3, 4]
    assert {r.stopped for r in results} == {"depth"}
    assert sorted({r.nodes for r in results}) == [r.nodes for r in results]
    assert all(abs(s) < -DRAW_SCORE for s in results[-1].scores if s is not None)


@pytest.mark.parametrize("snakes", [1, 2, 4, 8])
def test_one_turn_is_searched_whatever_the_budget(snakes):
    state = open_board(snakes)
    found = Searcher(1).search(state, snakes - 1, budget_us=1)
    assert found.stopped == "time"
    assert found.depth >= 1
    assert found.scores[found.best] is not None
    assert state.legal_mask(snakes - 1) >> found.best & 1


def test_a_budget_ends_the_search():
    found = Searcher(1).search(open_board(), 0, budget_us=20_000, early_stop=False)
    assert found.stopped == "time"
    assert found.depth >= 1
    assert 0 < found.seconds < PATIENCE
    deep = Searcher(1).search(open_board(), 0, budget_us=200_000, early_stop=False)
    assert deep.nodes > found.nodes


def test_a_search_ends_early_where_the_rest_would_not_matter():
    stops: Counter = Counter()
    for state, seat in seats(positions(12, 40)):
        searches = [
            Searcher(1).search(state, seat, max_nodes=5000, early_stop=early)
            for early in (True, False)
        ]
        stops.update(found.stopped for found in searches)
        assert searches[0].nodes <= searches[1].nodes
        assert searches[0].depth <= searches[1].depth
        assert searches[0].stopped != "enough" or searches[0].nodes < 5000
        assert searches[1].stopped != "enough"
    assert stops["enough"] > 5
    assert stops["nodes"] > 5


def test_a_limit_of_nodes_ends_the_search_at_the_same_place_every_time():
    limits = {"max_nodes": 3000, "early_stop": False}
    found = [Searcher(1).search(open_board(), 0, **limits) for _ in range(2)]
    assert [r.stopped for r in found] == ["nodes", "nodes"]
    assert found[0].nodes == found[1].nodes
    # The line that is shown costs a few nodes more.
    assert 3000 <= found[0].nodes < 3100
    assert fixed(open_board(), 0, found[0].depth - 1).nodes < 3000


def test_a_forced_move_does_not_use_up_the_budget():
    corner = snake("a", [(0, 0), (0, 1), (0, 2), (0, 3)])
    state = State(11, 11, [corner, snake("b", [(9, 9), (9, 8), (9, 7)])])
    found = Searcher(1).search(state, 0, budget_us=60_000_000)
    assert (found.best, found.stopped) == (3, "single")
    assert found.seconds < PATIENCE


class Running:
    """A search on its own thread that would never end by itself."""

    def __init__(self) -> None:
        self.searcher = Searcher(1)
        self.result = None
        self.thread = threading.Thread(target=self.work, daemon=True)

    def work(self) -> None:
        # A test that uses the same searcher may be inside it at this moment.
        while self.result is None:
            with contextlib.suppress(RuntimeError):
                self.result = self.searcher.search(open_board(), 0, budget_us=0)

    def stop(self) -> None:
        # A cancellation that comes before the search begins has no effect, so repeat it.
        limit = time.monotonic() + PATIENCE
        while self.thread.is_alive() and time.monotonic() < limit:
            self.searcher.cancel()
            self.thread.join(0.01)
        assert not self.thread.is_alive()


def test_a_search_is_cancelled_from_another_thread():
    running = Running()
    running.thread.start()
    time.sleep(0.05)
    assert running.thread.is_alive()
    running.stop()
    assert running.result.stopped == "cancelled"
    assert running.result.depth >= 1
    # The same searcher works again afterwards.
    again = running.searcher.search(open_board(), 0, budget_us=0, max_depth=2)
    assert (again.depth, again.stopped) == (2, "depth")


def test_cancelling_takes_effect_at_once():
    """The flag is looked at every 64 positions; the quickest of some shows it on a busy machine."""
    taken = []
    for _ in range(8):
        running = Running()
        running.thread.start()
        time.sleep(0.01)
        begin = time.perf_counter()
        running.stop()
        taken.append(time.perf_counter() - begin)
    assert min(taken) < 0.002


def test_a_busy_searcher_refuses_a_second_search():
    running = Running()
    running.thread.start()
    refused = ""
    limit = time.monotonic() + PATIENCE
    try:
        while not refused and time.monotonic() < limit:
            try:
                running.searcher.search(open_board(), 0, budget_us=0, max_depth=1)
            except RuntimeError as error:
                refused = str(error)
        assert "busy" in refused
        assert running.thread.is_alive()
    finally:
        running.stop()


def test_other_threads_run_while_one_searches():
    span = []

    def work() -> None:
        begin = time.perf_counter()
        Searcher(1).search(open_board(), 0, budget_us=400_000)
        span.extend([begin, time.perf_counter()])

    thread = threading.Thread(target=work)
    ticks = []
    thread.start()
    while thread.is_alive():
        ticks.append(time.perf_counter())
        time.sleep(0.001)
    begin, end = span
    margin = (end - begin) / 4
    assert any(begin + margin < tick < end - margin for tick in ticks)


def test_priors_order_the_root_and_change_no_proof():
    for state, seat in seats(positions(9, 40)):
        plain = fixed(state, seat, 2, **BY_SCORE)
        for favourite in range(4):
            priors = [0.1] * 4
            priors[favourite] = 0.7
            found = fixed(state, seat, 2, priors=priors, **BY_SCORE)
            assert (found.labels, found.distances) == (plain.labels, plain.distances)
            assert decided_part(found.scores[found.best]) == decided_part(plain.scores[plain.best])


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


@pytest.mark.parametrize(("rivals", "label"), [(1, "loss"), (4, "loss"), (5, "none")])
def test_with_more_than_four_rivals_nothing_is_claimed(rivals, label):
    """The far ones are not followed then, so that no proof would hold."""
    trapped = snake("a", [(0, 1), (0, 2), (0, 3)])
    wall = snake("o0", [(2, 0), (1, 0), (1, 1), (1, 2), (1, 3), (1, 4)])
    far = [snake(f"o{i}", [at] * 3) for i, at in enumerate([(5, 9), (9, 5), (9, 9), (5, 5)], 1)]
    state = State(11, 11, [trapped, wall, *far[: rivals - 1]])
    found = fixed(state, 0, 2)
    assert found.scores == [None, 2 - WIN_SCORE, None, 1 - WIN_SCORE]
    assert found.labels == ["none", label, "none", label]


def test_wrong_calls_are_refused():
    gone = snake("b", [(5, 5)], eliminated_cause="out-of-health")
    state = State(7, 7, [snake("a", [(1, 1)]), gone])
    searcher = Searcher(1)
    with pytest.raises(ValueError, match="seat 1 is dead"):
        searcher.search(state, 1, budget_us=0, max_depth=1)
    with pytest.raises(IndexError, match="seat 2 is outside"):
        searcher.search(state, 2, budget_us=0, max_depth=1)
    for changed, message in (
        ({"budget_us": -1}, "budget_us"),
        ({"max_depth": 0}, "max_depth"),
        ({"max_nodes": -1}, "max_nodes"),
        ({"priors": [0.5, 0.5]}, "priors"),
        ({"proof": "hope"}, "proof: 'hope' is unknown"),
        ({"opponents": "nice"}, "opponents: 'nice' is unknown"),
        ({"mixing": "well"}, "mixing: 'well' is unknown"),
        ({"mixed_turns": 0}, "mixed_turns"),
        ({"optimum": 0}, "optimum"),
        ({"threads": 0}, "threads"),
    ):
        with pytest.raises(ValueError, match=message):
            searcher.search(state, 0, **{"budget_us": 0, "max_depth": 1, **changed})
    for size in (0, 65537):
        with pytest.raises(ValueError, match="table_mb"):
            Searcher(size)
    # A refused call leaves the searcher free.
    assert searcher.search(state, 0, budget_us=0, max_depth=1).depth == 1
