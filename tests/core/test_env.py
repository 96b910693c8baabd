"""Vector environments: the same games as single boards, whatever the threads and buffers."""

import threading

import numpy as np
import pytest

from snakekit import core
from snakekit.core import Scenario, Settings, VectorEnv

MIX = [
    Scenario(11, 11, 4, weight=2.0),
    Scenario(7, 9, 2),
    Scenario(19, 19, 6, Settings(ruleset="wrapped")),
]


def random_moves(env: VectorEnv, rng: np.random.Generator) -> np.ndarray:
    return np.where(env.masks, rng.random(env.masks.shape), -1).argmax(2).astype(np.int8)


@pytest.mark.parametrize("encoder", [1, 2])
def test_buffers_show_the_boards(encoder):
    env = VectorEnv(MIX, count=12, seed=3, encoder=encoder, threads=2)
    rng = np.random.default_rng(0)
    for _ in range(120):
        for game in range(env.count):
            state = env.state(game)
            assert env.turns[game] == state.turn
            scenario = MIX[env.scenarios[game]]
            assert (state.width, state.height, state.num_snakes) == (
                scenario.width,
                scenario.height,
                scenario.snakes,
            )
            assert np.flatnonzero(env.alive[game]).tolist() == state.living()
            for seat in state.living():
                rows, cols = state.observation_shape(encoder)[1:]
                shown = env.obs[game, seat]
                np.testing.assert_array_equal(
                    shown[:, :rows, :cols], state.encode(encoder, [seat])[0]
                )
                assert not shown[:, rows:].any()
                assert not shown[:, :, cols:].any()
                safe = state.safe_mask(seat)
                expected = [bool(safe >> m & 1) or safe == 0 for m in range(4)]
                assert env.masks[game, seat].tolist() == expected
                assert env.lengths[game, seat] == state.length(seat)
                assert env.healths[game, seat] == state.health(seat)
        assert not env.obs[~env.alive].any()
        assert not env.masks[~env.alive].any()
        env.step(random_moves(env, rng))
    assert env.episodes.min() >= 0
    assert env.episodes.sum() > 0


def test_threads_do_not_change_the_games():
    one = VectorEnv(MIX, count=9, seed=5, threads=1)
    two = VectorEnv(MIX, count=9, seed=5, threads=2)
    rng = np.random.default_rng(1)
    for _ in range(150):
        moves = random_moves(one, rng)
        one.step(moves)
        two.step(moves)
        for name in ("obs", "masks", "alive", "rewards", "results", "turns", "episodes", "causes"):
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)


def test_seeds_differ_between_games_and_episodes():
    env = VectorEnv([Scenario(11, 11, 2)], count=32, seed=0)
    starts = {tuple(map(tuple, (s.body[0] for s in env.state(g).snakes()))) for g in range(32)}
    assert len(starts) > 4
    other = VectorEnv([Scenario(11, 11, 2)], count=32, seed=1)
    assert any(env.state(g) != other.state(g) for g in range(32))


def test_results_follow_the_rules():
    """Each seat gets its result exactly once a game, and never a reward while it is dead."""
    env = VectorEnv([Scenario(7, 7, 4)], count=64, seed=2)
    rng = np.random.default_rng(2)
    open_seats = np.ones((64, 4), bool)
    counts = {1: 0, -1: 0, 2: 0}
    for _ in range(300):
        before = [env.state(g) for g in range(0, 64, 16)]
        alive, episodes = env.alive.copy(), env.episodes.copy()
        moves = random_moves(env, rng)
        env.step(moves)
        ended = env.results != 0
        assert not (ended & ~alive).any()
        assert (ended <= open_seats).all()
        np.testing.assert_array_equal(env.terminated, ended)
        np.testing.assert_array_equal(
            env.rewards, np.where(env.results == 1, 1, np.where(ended, -1, 0))
        )
        assert ((env.causes != 0) == (ended & (env.results != 1))).all()
        for value in counts:
            counts[value] += int((env.results == value).sum())
        open_seats &= ~ended
        new = env.episodes > episodes
        assert (~open_seats[new]).all()
        open_seats[new] = True
        for k, state in enumerate(before):
            check_turn(env, 16 * k, state, moves[16 * k])
    assert min(counts.values()) > 10


def check_turn(env, game, state, moves):
    living, lengths = state.living(), [state.length(i) for i in range(state.num_snakes)]
    state.step(moves.tolist())
    for seat in living:
        snake = state.snakes()[seat]
        assert core.CAUSES[env.causes[game, seat]] == snake.eliminated_cause
        assert env.ate[game, seat] == (len(snake.body) > lengths[seat])
    killers = [
        s.eliminated_by
        for i, s in enumerate(state.snakes())
        if i in living and s.eliminated_cause == "head-collision"
    ]
    for seat, snake in enumerate(state.snakes()):
        assert env.kills[game, seat] == killers.count(snake.id)


def test_truncation_is_told_apart_from_termination():
    env = VectorEnv([Scenario(11, 11, 2)], count=8, seed=4, max_turns=9)
    rng = np.random.default_rng(3)
    cut = 0
    for _ in range(60):
        previous = [env.state(g) for g in range(8)]
        moves = random_moves(env, rng)
        env.step(moves)
        assert not (env.truncated & env.terminated).any()
        assert (env.turns < 9).all()
        for game, seat in np.argwhere(env.truncated).tolist():
            cut += 1
            assert env.rewards[game, seat] == 0
            assert previous[game].turn == 8
            own = env.final_obs[game, seat]
            head = np.argwhere(own[1])[0]
            x, y = previous[game].head(seat)
            assert abs(head[1] - x) + abs(head[0] - y) == 1
    assert cut > 20


def test_views_are_not_copies():
    env = VectorEnv([Scenario(7, 7, 2)], count=2, seed=1)
    first = env.obs
    before = first.copy()
    env.step(np.zeros((2, 2), np.int8))
    assert np.shares_memory(first, env.obs)
    assert (first != before).any()
    # An array keeps its environment alive.
    del env
    assert first.sum() > 0


def test_mix_is_drawn_by_weight():
    mix = [Scenario(7, 7, 2, weight=3.0), Scenario(5, 5, 2, weight=1.0)]
    env = VectorEnv(mix, count=400, seed=9)
    assert 0.68 < (env.scenarios == 0).mean() < 0.82


def test_search_scores_match_a_single_search():
    env = VectorEnv([Scenario(11, 11, 2)], count=4, seed=1, threads=2)
    rows = np.array([[g, s] for g in range(4) for s in range(2)], np.int32)
    scores = env.search(rows, max_depth=2)
    for row, (game, seat) in enumerate(rows.tolist()):
        searcher = core.Searcher(8)
        found = searcher.search(env.state(game), seat, max_depth=2, exact_scores=True).scores
        expected = [-np.inf if s is None else s for s in found]
        np.testing.assert_array_equal(scores[row], expected)


def test_small_memory():
    env = VectorEnv([Scenario(25, 25, 8), Scenario(11, 11, 4)], count=2, seed=1, encoder=1)
    assert env.bytes_per_game < 64 * 1024


@pytest.mark.parametrize(
    ("mix", "options", "field"),
    [
        ([], {}, "scenarios"),
        ([Scenario(11, 11, 4, weight=0.0)], {}, r"scenarios\[0\].weight"),
        ([Scenario(11, 11, 2), Scenario(11, 11, 9)], {}, r"scenarios\[1\].snakes"),
        ([Scenario(2, 11, 2)], {}, "width"),
        ([Scenario()], {"count": 0}, "count"),
        ([Scenario()], {"threads": 0}, "threads"),
        ([Scenario()], {"encoder": 3}, "encoder"),
        ([Scenario()], {"max_turns": -1}, "max_turns"),
    ],
)
def test_bad_options_name_the_field(mix, options, field):
    with pytest.raises(core.StateError, match=field):
        VectorEnv(mix, **{"count": 2, "seed": 0, **options})


def test_bad_moves_and_rows():
    env = VectorEnv([Scenario(7, 7, 2)], count=3, seed=0)
    with pytest.raises(ValueError, match=r"moves: expected int8 \[3, 2\]"):
        env.step(np.zeros((3, 3), np.int8))
    with pytest.raises(IndexError, match=r"rows\[1\]"):
        env.search(np.array([[0, 0], [3, 0]], np.int32), max_depth=1)
    # Words that are no move mean straight on, as in the engine.
    env.step(np.full((3, 2), 7, np.int8))


def test_two_threads_at_once_are_refused():
    env = VectorEnv([Scenario(11, 11, 4)], count=2000, seed=0)
    moves = np.zeros((2000, 4), np.int8)
    refused, stop = [], threading.Event()

    def other():
        while not stop.is_set():
            try:
                env.step(moves)
            except RuntimeError as error:
                refused.append(str(error))
                stop.set()

    thread = threading.Thread(target=other)
    thread.start()
    for _ in range(2000):
        if stop.is_set():
            break
        try:
            env.step(moves)
        except RuntimeError as error:
            refused.append(str(error))
            stop.set()
    stop.set()
    thread.join()
    assert "busy" in refused[0]


@pytest.mark.parametrize("encoder", [1, 2])
def test_a_replay_leads_to_the_same_place(encoder):
    """What `replay` is for: a new environment goes on where another one was, bit for bit."""
    env = VectorEnv(MIX, count=9, seed=5, encoder=encoder)
    rng = np.random.default_rng(1)
    longest = 400
    played = np.zeros((env.count, longest, env.seats), np.int8)
    for _ in range(90):
        moves = random_moves(env, rng)
        played[np.arange(env.count), env.turns] = moves
        env.step(moves)
    other = VectorEnv(MIX, count=9, seed=5, encoder=encoder, threads=2)
    other.step(np.zeros_like(moves))
    other.replay(env.episodes, env.turns, played)
    for _ in range(40):
        for name in ("obs", "masks", "alive", "turns", "episodes", "scenarios"):
            np.testing.assert_array_equal(getattr(env, name), getattr(other, name), err_msg=name)
        for name in ("lengths", "healths"):
            living = (getattr(e, name)[e.alive] for e in (env, other))
            np.testing.assert_array_equal(*living, err_msg=name)
        moves = random_moves(env, rng)
        env.step(moves)
        other.step(moves)


def test_an_odd_replay_is_refused():
    env = VectorEnv([Scenario(7, 7, 2)], count=2, seed=0)
    good = (np.zeros(2, np.int32), np.zeros(2, np.int32), np.zeros((2, 3, 2), np.int8))
    env.replay(*good)
    for index, odd, field in (
        (0, [-1, 0], "episodes"),
        (0, [0], "episodes"),
        (1, [0, 4], "turns"),
        (2, np.zeros((2, 3, 4), np.int8), "moves"),
    ):
        bad = list(good)
        bad[index] = np.asarray(odd, good[index].dtype)
        with pytest.raises(ValueError, match=field):
            env.replay(*bad)
