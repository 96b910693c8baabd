import numpy as np
import pytest

from snakekit import core
from snakekit.trainer.symmetry import (
    COUNT,
    MOVE_TABLE,
    augment,
    shape_keeping,
    transform_obs,
    transform_point,
    transform_policy,
)

STEPS = ((0, 1), (0, -1), (-1, 0), (1, 0))


@pytest.mark.parametrize("symmetry", range(COUNT))
def test_points_and_observations_agree(symmetry: int) -> None:
    width, height = 5, 3
    for x in range(width):
        for y in range(height):
            obs = np.zeros((1, height, width), np.uint8)
            obs[0, y, x] = 1
            new_x, new_y = transform_point((x, y), (width, height), symmetry)
            assert transform_obs(obs, symmetry)[0, new_y, new_x] == 1


@pytest.mark.parametrize("symmetry", range(COUNT))
def test_moves_and_points_agree(symmetry: int) -> None:
    size, start = (9, 9), (4, 4)
    moved = transform_point(start, size, symmetry)
    for move, (dx, dy) in enumerate(STEPS):
        ahead = transform_point((start[0] + dx, start[1] + dy), size, symmetry)
        assert (ahead[0] - moved[0], ahead[1] - moved[1]) == STEPS[MOVE_TABLE[symmetry, move]]


def test_the_eight_are_different() -> None:
    assert len({tuple(row) for row in MOVE_TABLE.tolist()}) == COUNT


def transformed(state: core.State, symmetry: int) -> core.State:
    """Return the same position on a mirrored or turned board, built from its parts."""
    size = (state.width, state.height)

    def move(points: list[tuple[int, int]]) -> list[tuple[int, int]]:
        return [transform_point(p, size, symmetry) for p in points]

    swap = symmetry & 4
    return core.State(
        size[1] if swap else size[0],
        size[0] if swap else size[1],
        [
            core.Snake(
                s.id,
                s.health,
                move(s.body),
                s.eliminated_cause,
                s.eliminated_by,
                s.eliminated_on_turn,
            )
            for s in state.snakes()
        ],
        move(state.food()),
        move(state.hazards()),
        turn=state.turn,
        settings=state.settings,
    )


def played(width: int, height: int, turns: int, seed: int) -> core.State:
    if width == height:
        state = core.State.new_game(width, height, ["a", "b", "c"], seed)
    else:
        bodies = ([(1, 1)] * 3, [(width - 2, height - 2)] * 3, [(width // 2, 1)] * 3)
        snakes = [core.Snake(name, 100, body) for name, body in zip("abc", bodies, strict=True)]
        state = core.State(width, height, snakes, [(2, 3)], [(0, 2), (0, 2)])
    for turn in range(turns):
        moves = [
            core.random_move(state, seat, seed + turn * 8 + seat) if state.alive(seat) else 0
            for seat in range(state.num_snakes)
        ]
        after = state.copy()
        after.step(moves)
        if len(after.living()) < 2:
            break
        after.spawn_food(seed)
        state = after
    return state


@pytest.mark.parametrize("encoder", [1, 2])
@pytest.mark.parametrize("size", [(11, 11), (7, 7), (9, 6)])
def test_the_encoder_agrees_with_a_transformed_board(encoder: int, size: tuple[int, int]) -> None:
    for seed in range(6):
        state = played(*size, 10 + 3 * seed, seed)
        seats = state.living()
        obs = state.encode(encoder, seats)
        for symmetry in range(COUNT):
            expected = transformed(state, symmetry)
            np.testing.assert_array_equal(
                expected.encode(encoder, seats),
                transform_obs(obs, symmetry),
            )
            for seat in seats:
                bits = np.array([state.safe_mask(seat) >> m & 1 for m in range(4)])
                moved = np.array([expected.safe_mask(seat) >> m & 1 for m in range(4)])
                np.testing.assert_array_equal(transform_policy(bits, symmetry), moved)


@pytest.mark.parametrize("shape", [(5, 5), (5, 8)])
def test_augmented_batches_keep_each_pair_together(shape: tuple[int, int]) -> None:
    generator = np.random.default_rng(0)
    obs = generator.integers(0, 256, (19, 2, *shape), dtype=np.uint8)
    policy = generator.random((19, 4), np.float32)
    kept = shape_keeping(*shape)
    for first in kept:
        new_obs, new_policy = augment(obs, policy, first)
        for i in range(19):
            symmetry = (first + i) % len(kept)
            np.testing.assert_array_equal(new_obs[i], transform_obs(obs[i], symmetry))
            np.testing.assert_array_equal(new_policy[i], transform_policy(policy[i], symmetry))
