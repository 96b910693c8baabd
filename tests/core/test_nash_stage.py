"""Observation v3, joint moves and planned lines against slow enumeration over single steps."""

import itertools
import json
import random

import numpy as np
import pytest
from core_boards import (
    DATA,
    SYMMETRIES,
    corpus,
    from_json,
    play,
    scattered,
    snake,
    state_of,
    turned_state,
)
from slow_planes import candidates, joint_lines, slow_v3
from test_encode import overlapping, random_boards, turned_planes

from snakekit import core
from snakekit.core import PlanLines, Settings, StageGames, State


def fights(seed: int, count: int, snakes: int, side: int = 7, turns: int = 40) -> list[State]:
    """Boards of one size in the midst of games, at least two snakes alive."""
    rng = random.Random(seed)
    made: list[State] = []
    while len(made) < count:
        state = scattered(rng, side, side, snakes, Settings(minimum_food=3), food=3)
        for _ in play(state, rng, rng.randint(0, turns)):
            pass
        if len(state.living()) >= 2 and not state.game_over():
            made.append(state)
    return made


def exact_line(root: State, end: State, outcome, slots: int) -> tuple[np.ndarray, np.ndarray]:
    """Outcome and utility of one line over the root's slots; `outcome` judges an open board."""
    living = root.living()
    chances, utility = np.zeros(slots + 1), np.zeros(slots)
    left = end.living()
    if not end.game_over():
        given = outcome(end)
        chances[-1] = given[-1]
        for k, seat in enumerate(left):
            chances[living.index(seat)] = given[k]
            utility[living.index(seat)] = given[k] + given[-1] / len(left)
    elif left:
        chances[living.index(left[0])] = utility[living.index(left[0])] = 1
    else:
        chances[-1] = 1
        last = max(end.snakes()[seat].eliminated_on_turn for seat in living)
        shared = [s for s in living if end.snakes()[s].eliminated_on_turn == last]
        for seat in shared:
            utility[living.index(seat)] = 1 / len(shared)
    return chances, utility


def opinion(slots: int):
    """A fixed odd judgement of open boards, as probabilities over the board's own slots."""

    def judge(state: State) -> np.ndarray:
        rng = np.random.default_rng(state.hash() % 2**32)
        given = np.zeros(slots + 1)
        living = len(state.living())
        part = rng.dirichlet(np.ones(living + 1))
        given[:living], given[-1] = part[:-1], part[-1]
        return given

    return judge


def test_every_plane_of_random_and_recorded_boards():
    used = set()
    recorded = (state_of(line) for line in itertools.islice(corpus(), 0, None, 60))
    boards = [*random_boards(7, 40), *(s for s in recorded if not overlapping(s))]
    for state in boards:
        for slots in {max(2, len(state.living())), core.MAX_SLOTS}:
            got, want = core.encode_all([state], slots=slots)[0], slow_v3(state, slots)
            assert got.shape == want.shape
            for plane in range(len(want)):
                assert np.array_equal(got[plane], want[plane]), f"plane {plane}"
        used |= set(np.nonzero(got.any(axis=(1, 2)))[0])
    assert used >= set(range(core.all_seat_planes(4)))


def test_golden_planes():
    with np.load(DATA / "golden_v3.npz", allow_pickle=False) as golden:
        texts = [str(text) for text in golden["boards"]]
        wanted = [golden[f"planes_{i}"] for i in range(len(texts))]
    for text, want in zip(texts, wanted, strict=True):
        got = core.encode_all([from_json(json.loads(text))], slots=core.MAX_SLOTS)[0]
        assert got.dtype == want.dtype == np.uint8
        assert np.array_equal(got, want)


@pytest.mark.parametrize("symmetry", SYMMETRIES, ids=str)
def test_planes_turn_with_the_board(symmetry):
    for state in random_boards(8, 15):
        want = turned_planes(symmetry, core.encode_all([state], slots=8))
        assert np.array_equal(core.encode_all([turned_state(symmetry, state)], slots=8), want)


def test_planes_of_slots_exchange_with_the_seats():
    bodies = [[(1, 1), (1, 2), (1, 3)], [(4, 4), (4, 3), (4, 2), (4, 1)], [(6, 6), (6, 5), (6, 4)]]
    common, block = core.ALL_SEAT_COMMON, core.ALL_SEAT_BLOCK
    assert core.all_seat_planes(3) == common + 3 * block == len(core.all_seat_scale(3))
    plain = core.encode_all(
        [State(7, 7, [snake(str(i), b) for i, b in enumerate(bodies)])], slots=3
    )
    for order in itertools.permutations(range(3)):
        state = State(7, 7, [snake(str(i), bodies[i]) for i in order])
        got = core.encode_all([state], slots=3)
        assert np.array_equal(got[:, :common], plain[:, :common])
        for slot, i in enumerate(order):
            mine = slice(common + slot * block, common + (slot + 1) * block)
            its = slice(common + i * block, common + (i + 1) * block)
            assert np.array_equal(got[:, mine], plain[:, its])


@pytest.mark.parametrize(("snakes", "slots"), [(2, 2), (3, 4), (4, 4)])
def test_joint_moves_and_their_equilibria(snakes, slots):
    states = fights(snakes, 25, snakes)
    games = StageGames(states, slots=slots)
    lines = [joint_lines(state) for state in states]
    leaves = [end for ends in lines for end in ends if not end.game_over()]
    assert games.games == len(states)
    assert games.lines == sum(map(len, lines))
    assert games.leaves == len(leaves)
    assert np.array_equal(games.encode_roots(), core.encode_all(states, slots=slots))
    assert np.array_equal(games.encode(), core.encode_all(leaves, slots=slots))
    judge = opinion(slots)
    given = np.stack([judge(leaf) for leaf in leaves])
    policy, outcome, value, gap = games.solve(given, logits=False, iterations=5)
    for i, (state, ends) in enumerate(zip(states, lines, strict=True)):
        living = state.living()
        assert games.seats[i].tolist() == living + [-1] * (slots - len(living))
        moves = [candidates(state, seat) for seat in living]
        exact = [exact_line(state, end, judge, slots) for end in ends]
        shape = tuple(map(len, moves))
        utility = np.stack([u[: len(living)] for _, u in exact]).reshape(*shape, -1)
        want, worth, distance = core.solve_stage(utility, iterations=5)
        for slot, own in enumerate(moves):
            np.testing.assert_allclose(policy[i, slot, own], want[slot], atol=1e-4)
            assert policy[i, slot].sum() == pytest.approx(1, abs=1e-5)
            assert np.flatnonzero(games.candidates[i, slot]).tolist() == own
        assert (policy[i, len(living) :] == 0).all()
        assert not games.candidates[i, len(living) :].any()
        np.testing.assert_allclose(value[i, : len(living)], worth, atol=1e-4)
        assert gap[i] == pytest.approx(distance, abs=1e-4)
        joint = np.array([1.0])
        for slot in range(len(living)):
            joint = np.multiply.outer(joint, want[slot]).ravel()
        chances = (joint[:, None] * np.stack([c for c, _ in exact])).sum(0)
        np.testing.assert_allclose(outcome[i], chances, atol=1e-4)
        assert outcome[i].sum() == pytest.approx(1, abs=1e-5)


def test_logits_mean_the_same_as_probabilities():
    states = fights(9, 10, 3)
    games = StageGames(states, slots=4)
    given = np.random.default_rng(0).normal(size=(games.leaves, 5)).astype(np.float32)
    by_logits = games.solve(given, iterations=5)
    # Slots of snakes that have died take no part, whatever the numbers there.
    by_chance = games.solve(np.exp(given), logits=False, iterations=5)
    for a, b in zip(by_logits, by_chance, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)


def test_a_draw_can_be_made_something_to_avoid():
    """Equal heads, one square between them: meeting there is a draw."""
    left, right = [(2, 3), (1, 3), (0, 3)], [(4, 3), (5, 3), (6, 3)]
    games = StageGames([State(7, 7, [snake("a", left), snake("b", right)])], slots=2)
    even = np.tile([0.49, 0.49, 0.02], (games.leaves, 1))
    whole = games.solve(even, logits=False)
    cheap = games.solve(even, logits=False, draw_worth=0.2)
    assert whole[0][0, 0, 3] == pytest.approx(1 / 3, abs=0.01)  # all moves are worth the same
    assert whole[2].sum() == pytest.approx(1, abs=1e-5)
    assert cheap[0][0, 0, 3] < 0.05
    assert cheap[1][0, 2] < whole[1][0, 2]
    with pytest.raises(ValueError, match="draw_worth: expected 0 to 1"):
        games.solve(even, draw_worth=1.5)


def test_deeper_games_are_those_of_the_leaves():
    states = fights(10, 6, 2)
    games = StageGames(states, slots=2)
    deeper = games.deepen()
    leaves = [end for s in states for end in joint_lines(s) if not end.game_over()]
    again = StageGames(leaves, slots=2)
    assert (deeper.games, deeper.leaves) == (games.leaves, again.leaves)
    assert np.array_equal(deeper.encode(), again.encode())
    given = np.random.default_rng(1).normal(size=(again.leaves, 3)).astype(np.float32)
    inner = deeper.solve(given)
    for a, b in zip(inner, again.solve(given), strict=True):
        np.testing.assert_array_equal(a, b)
    outer = games.solve(inner[1], logits=False)
    np.testing.assert_allclose(outer[2].sum(1), 1, atol=1e-5)


def test_a_certain_kill_is_found_in_one_turn():
    """The longer snake can take the only square that the other has left."""
    hunted = snake("a", [(0, 0), (1, 0), (2, 0)])
    hunter = snake("b", [(1, 2), (2, 2), (3, 2), (4, 2)])
    state = State(7, 7, [hunted, hunter])
    games = StageGames([state], slots=2)
    even = np.tile([0.45, 0.45, 0.1], (games.leaves, 1))
    policy, outcome, value, _ = games.solve(even, logits=False, method="exact")
    assert policy[0, 0].tolist() == [1, 0, 0, 0]
    assert value[0, 1] == pytest.approx(0.5)
    kill = State(7, 7, [hunted, snake("b", [(0, 2), (1, 2), (2, 2), (3, 2)])])
    games = StageGames([kill], slots=2)
    policy, outcome, value, _ = games.solve(
        np.tile([0.45, 0.45, 0.1], (games.leaves, 1)), logits=False, method="exact"
    )
    assert policy[0, 1, 1] == 1
    assert value[0].tolist() == [0, 1]
    assert outcome[0].tolist() == [0, 1, 0]


@pytest.mark.parametrize("snakes", [2, 4])
def test_planned_lines_are_single_steps(snakes):
    rng = np.random.default_rng(11)
    judge = opinion(4)
    ended = 0
    for state in fights(12, 8, snakes):
        living = state.living()
        plans = rng.integers(0, 4, (30, len(living), 5)).astype(np.int8)
        lines = PlanLines(state, plans, slots=4)
        ends, leaves = [], []
        for plan in plans:
            end = state.copy()
            for turn in range(5):
                if end.game_over():
                    break
                moves = [-1] * state.num_snakes
                for seat, move in zip(living, plan[:, turn], strict=True):
                    moves[seat] = int(move)
                end.step(moves)
            ends.append(end)
            leaves += [] if end.game_over() else [end]
        assert (lines.lines, lines.leaves) == (30, len(leaves))
        if leaves:
            assert np.array_equal(lines.encode(), core.encode_all(leaves, slots=4))
        given = np.stack([judge(leaf) for leaf in leaves]) if leaves else np.zeros((0, 5))
        outcome, value = lines.values(given, logits=False)
        for i, end in enumerate(ends):
            chances, utility = exact_line(state, end, judge, 4)
            np.testing.assert_allclose(outcome[i], chances, atol=1e-5)
            np.testing.assert_allclose(value[i], utility, atol=1e-5)
            ended += end.game_over()
    assert ended > 0


def test_too_many_joint_moves_keep_the_likely_ones():
    bodies = [[(2 * i + 1, 5), (2 * i + 1, 4), (2 * i + 1, 3)] for i in range(5)]
    state = State(11, 11, [snake(str(i), b) for i, b in enumerate(bodies)])
    whole = StageGames([state], slots=8)
    assert whole.lines == 3 * 3 * 3 * 3 * 3 or whole.lines <= 256
    priors = np.zeros((1, 8, 4), np.float32)
    priors[0, :, 3] = 1
    few = StageGames([state], slots=8, limit=1, priors=priors)
    assert few.lines == 1
    assert few.solve(np.zeros((1, 9), np.float32))[0][0, :5].argmax(1).tolist() == [3] * 5


def test_wrong_calls_are_refused():
    two = State(7, 7, [snake("a", [(1, 1)]), snake("b", [(5, 5)])])
    one = State(7, 7, [snake("a", [(1, 1)])])
    wide = State(9, 7, [snake("a", [(1, 1)]), snake("b", [(5, 5)])])
    three = State(7, 7, [snake(str(i), [(2 * i, 3)]) for i in range(3)])
    for boards, message in [
        ([], "empty"),
        ([one], r"boards\[0\]: expected at least two living snakes, found 1"),
        ([two, wide], r"boards\[1\]: another size"),
        ([three], r"boards\[0\]: 3 living snakes for 2 slots"),
    ]:
        with pytest.raises(core.StateError, match=message):
            StageGames(boards, slots=2)
    for slots in (1, 9):
        with pytest.raises(ValueError, match="slots: expected 2 to 8"):
            StageGames([two], slots=slots)
    games = StageGames([two], slots=2)
    with pytest.raises(ValueError, match="outcomes: expected float32"):
        games.solve(np.zeros((games.leaves, 2), np.float32))
    with pytest.raises(ValueError, match="plans: expected int8"):
        PlanLines(two, np.zeros((3, 1, 2), np.int8), slots=2)
    with pytest.raises(ValueError, match="a move is 0 to 3"):
        PlanLines(two, np.full((3, 2, 2), 4, np.int8), slots=2)
    with pytest.raises(core.StateError, match="one size"):
        core.encode_all([two, wide], slots=2)


@pytest.mark.parametrize("snakes", [2, 4])
def test_reflexes_keep_planned_lines_out_of_certain_death(snakes):
    rng = np.random.default_rng(13)
    saved = 0
    for state in fights(14, 8, snakes):
        living = state.living()
        plans = rng.integers(-1, 4, (20, len(living), 4)).astype(np.int8)
        lines = PlanLines(state, plans, slots=4, reflexes=True)
        ends = []
        for plan in plans:
            end = state.copy()
            for turn in range(4):
                if end.game_over():
                    break
                moves = [-1] * state.num_snakes
                for seat, wanted in zip(living, plan[:, turn].tolist(), strict=True):
                    if not end.alive(seat):
                        continue
                    kept = wanted in candidates(end, seat)
                    saved += not kept
                    moves[seat] = wanted if kept else core.reflex_move(end, seat)
                end.step(moves)
            ends += [] if end.game_over() else [end]
        assert lines.leaves == len(ends)
        if ends:
            assert np.array_equal(lines.encode(), core.encode_all(ends, slots=4))
    assert saved > 100


def test_completed_plans_keep_what_is_legal():
    rng = np.random.default_rng(15)
    for state in fights(16, 10, 3):
        living = state.living()
        plans = rng.integers(-1, 4, (20, 5)).astype(np.int8)
        expected = rng.integers(-1, 4, (len(living), 5)).astype(np.int8)
        slot = int(rng.integers(len(living)))
        found = core.complete_plans(state, slot, plans, expected=expected, seed=7)
        assert np.array_equal(
            found, core.complete_plans(state, slot, plans, expected=expected, seed=7)
        )
        own = living[slot]
        for before, plan in zip(plans.tolist(), found.tolist(), strict=True):
            board = endless(state)
            for turn, move in enumerate(plan):
                if not board.alive(own):
                    assert plan[turn:] == [-1] * (5 - turn)
                    break
                moves = [-1] * state.num_snakes
                for other, wanted in zip(living, expected[:, turn].tolist(), strict=True):
                    if board.alive(other):
                        kept = wanted in candidates(board, other)
                        moves[other] = wanted if kept else core.reflex_move(board, other)
                legal = candidates(board, own)
                assert move in legal
                assert move == before[turn] or before[turn] not in legal
                moves[own] = move
                board.step(moves)


def endless(state: State) -> State:
    """The board under rules by which a game lasts until nobody is left."""
    settings = Settings(ruleset=state.settings.ruleset, solo=True, minimum_food=3)
    return State(
        state.width, state.height, state.snakes(), state.food(), turn=state.turn, settings=settings
    )


def test_walks_draw_from_the_policy_and_play_it():
    for state in fights(17, 6, 3):
        living = state.living()
        walk = core.PlanWalk(state, count=7, turns=4, slots=4)
        logits = np.random.default_rng(1).normal(size=(7, 4, 4)).astype(np.float32)
        boards = [state.copy() for _ in range(7)]
        for turn in range(4):
            going = [i for i, board in enumerate(boards) if not board.game_over()]
            assert walk.open == len(going)
            assert np.array_equal(
                walk.encode(), core.encode_all([boards[i] for i in going], slots=4)
            )
            walk.step(logits[: len(going)], seed=turn)
            for i in going:
                moves = [-1] * state.num_snakes
                for seat in boards[i].living():
                    moves[seat] = int(walk.plans[living.index(seat), i, turn])
                    assert moves[seat] in candidates(boards[i], seat)
                boards[i].step(moves)
        assert walk.open == 0
        with pytest.raises(ValueError, match=r"logits: expected float32 \[0, 4, 4\]"):
            walk.step(logits, seed=0)


def test_moves_of_a_walk_have_the_policys_frequencies():
    state = State(
        11, 11, [snake("a", [(5, 5), (5, 4), (5, 3)]), snake("b", [(1, 1), (1, 2), (1, 3)])]
    )
    walk = core.PlanWalk(state, count=4000, turns=1, slots=2)
    logits = np.log(np.tile([[0.6, 0.3, 0.1, 1e-9]], (4000, 2, 1))).astype(np.float32)
    walk.step(logits, seed=3)
    drawn = np.bincount(walk.plans[0, :, 0], minlength=4) / 4000
    # Down is the own neck.
    np.testing.assert_allclose(drawn, [0.6 / 0.7, 0, 0.1 / 0.7, 0], atol=0.02)
