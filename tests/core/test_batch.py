"""Batches of games against single boards stepped side by side."""

import numpy as np
import pytest

from snakekit.core import Scenario, Searcher, Settings, StateError, VectorEnv

CASES = [(7, 7, 2, "standard"), (11, 11, 4, "standard"), (19, 19, 6, "wrapped"), (9, 7, 1, "solo")]


def batch(
    width: int, height: int, snakes: int, ruleset: str, seed: int = 4, threads: int = 1
) -> VectorEnv:
    kind = Scenario(width, height, snakes, Settings(ruleset=ruleset))
    return VectorEnv([kind], count=5, seed=seed, encoder=0, threads=threads)


def living(games: VectorEnv) -> np.ndarray:
    return np.argwhere(games.alive).astype(np.int32)


def random_moves(games: VectorEnv, rng: np.random.Generator) -> np.ndarray:
    """Safe moves, and now and then any move, so that games end."""
    masks = games.masks
    scores = rng.random(masks.shape) + masks * (rng.random(masks.shape[:2]) < 0.95)[..., None]
    return scores.argmax(-1).astype(np.int8)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_batch_plays_as_single_boards_do(case):
    games = batch(*case)
    rng = np.random.default_rng(1)
    seen = {0: 0, 1: 0, -1: 0, 2: 0}
    for _ in range(150):
        before = [games.state(i) for i in range(games.count)]
        for i, state in enumerate(before):
            assert games.alive[i].tolist() == [state.alive(s) for s in range(games.seats)]
            for seat in state.living():
                safe = state.safe_mask(seat)
                shown = [bool(safe >> move & 1) or safe == 0 for move in range(4)]
                assert games.masks[i, seat].tolist() == shown
        moves = random_moves(games, rng)
        games.step(moves)
        results = games.results
        for i, state in enumerate(before):
            alive = state.living()
            state.step(moves[i].tolist())
            died = set(alive) - set(state.living())
            for seat in range(games.seats):
                want = 0
                if seat in died:
                    # A tie only if the last ones die together.
                    want = 2 if not state.living() and len(died) > 1 else -1
                elif state.alive(seat) and state.game_over():
                    want = 1
                assert results[i, seat] == want
                seen[want] += 1
            after = games.state(i)
            if state.game_over():
                assert (after.turn, len(after.living())) == (0, games.seats)
                continue
            assert after.turn == state.turn
            assert [(s.id, s.health, s.body) for s in after.snakes()] == [
                (s.id, s.health, s.body) for s in state.snakes()
            ]
            assert after.food()[: len(state.food())] == state.food()
    assert seen[-1] > 0
    assert games.seats == 1 or seen[1] > 0


def test_a_seed_repeats_every_game_and_games_differ():
    first, second, other = (batch(11, 11, 2, "standard", seed) for seed in (1, 1, 2))
    assert len({tuple(first.state(i).food()) for i in range(5)}) > 1
    assert any(first.state(i) != other.state(i) for i in range(5))
    rng = np.random.default_rng(3)
    for _ in range(60):
        moves = random_moves(first, rng)
        first.step(moves)
        second.step(moves)
        assert (first.results == second.results).all()
        assert all(first.state(i) == second.state(i) for i in range(5))


@pytest.mark.parametrize("version", [1, 2])
def test_observations_are_those_of_the_boards(version):
    for case in CASES:
        games = batch(*case)
        rng = np.random.default_rng(2)
        for _ in range(12):
            games.step(random_moves(games, rng))
        rows = living(games)[::-1]
        planes = games.encode(version, rows)
        assert planes.shape[0] == len(rows)
        for (game, seat), shown in zip(rows, planes, strict=True):
            assert np.array_equal(shown, games.state(game).encode(version, [seat])[0])


def test_searches_are_those_of_the_boards():
    for case in CASES[:3]:
        games = batch(*case)
        rng = np.random.default_rng(2)
        for _ in range(6):
            games.step(random_moves(games, rng))
        rows = living(games)
        depth = 2 if case[2] <= 4 else 1
        one = games.search(rows, max_depth=depth)
        # Tables are kept between calls, so compare batches that have searched as much.
        two = batch(*case, threads=2)
        rng = np.random.default_rng(2)
        for _ in range(6):
            two.step(random_moves(two, rng))
        assert np.array_equal(one, two.search(rows, max_depth=depth))
        for (game, seat), scores in zip(rows, one, strict=True):
            found = Searcher(1).search(games.state(game), seat, max_depth=depth, exact_scores=True)
            want = [-np.inf if s is None else s for s in found.scores]
            assert scores.tolist() == want


def test_wrong_calls_are_refused():
    games = batch(7, 7, 2, "standard")
    for (width, height, snakes), message in (
        ((3, 3, 8), "snakes: 8 do not fit"),
        ((2, 7, 2), "2x7"),
    ):
        with pytest.raises(StateError, match=message):
            batch(width, height, snakes, "standard")
    with pytest.raises(ValueError, match=r"^moves: expected int8 \[5, 2\]"):
        games.step(np.zeros((5, 3), np.int8))
    with pytest.raises(ValueError, match=r"^rows: expected int32"):
        games.encode(2, np.zeros((2, 3), np.int32))
    for row in ([5, 0], [-1, 0], [0, 2], [0, -1]):
        with pytest.raises(IndexError, match=r"^rows\[0\]"):
            games.encode(2, np.array([row], np.int32))
    with pytest.raises(ValueError, match="version: expected 1 or 2"):
        games.encode(3, np.array([[0, 0]], np.int32))
    with pytest.raises(IndexError, match="no game 5"):
        games.state(5)
    four = batch(7, 7, 4, "standard")
    while four.alive.all():
        four.step(np.zeros((5, 4), np.int8))
    dead = np.argwhere(~four.alive).astype(np.int32)
    with pytest.raises(ValueError, match=r"^rows\[0\]: the seat is dead"):
        four.search(dead, max_depth=1)
