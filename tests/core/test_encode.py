"""Observations against slow references, golden files and the symmetries of the board."""

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
    rebuilt,
    scattered,
    snake,
    state_of,
    turned_state,
)
from slow_planes import slow_v1, slow_v2

from snakekit.core import PLANE_SCALE, PLANES, RULESETS, Scenario, Settings, State, VectorEnv

SLOW = {1: slow_v1, 2: slow_v2}


def random_boards(seed: int, count: int, turns: int = 60) -> list[State]:
    """Boards of all sizes and rulesets in the midst of games."""
    rng = random.Random(seed)
    made = []
    while len(made) < count:
        width, height = rng.randint(3, 25), rng.randint(3, 25)
        rules = Settings(
            ruleset=rng.choice(RULESETS), hazard_damage=rng.choice([14, 60, -7]), minimum_food=3
        )
        start = scattered(
            rng,
            width,
            height,
            min(rng.randint(1, 8), width * height // 2),
            rules,
            hazards=rng.choice([0.0, 0.3]),
            food=3,
        )
        start = rebuilt(start, hazards=start.hazards() + start.hazards()[::2])
        stop = rng.randint(0, turns)
        for _ in play(start, rng, stop):
            pass
        made.append(start)
    return made


def assert_planes(version: int, state: State, seat: int) -> None:
    got = state.encode(version, [seat])[0]
    want = SLOW[version](state, seat)
    assert got.shape == want.shape == state.observation_shape(version)
    for plane in range(want.shape[0]):
        assert np.array_equal(got[plane], want[plane]), (
            f"version {version} plane {plane} seat {seat}\n{got[plane]}\n{want[plane]}"
        )


@pytest.mark.parametrize(("version", "count"), [(1, 150), (2, 40)])
def test_every_plane_of_random_boards(version, count):
    used = set()
    for state in random_boards(version, count):
        for seat in range(state.num_snakes):
            assert_planes(version, state, seat)
        planes = state.encode(version, list(range(state.num_snakes)))
        used |= set(np.nonzero(planes.any(axis=(0, 2, 3)))[0])
    assert set(range(PLANES[version])) - used == set()


def overlapping(state: State) -> bool:
    """Hand-made boards can put two snakes on a cell, which no game does."""
    bodies = [set(s.body) for i, s in enumerate(state.snakes()) if state.alive(i)]
    return sum(map(len, bodies)) > len(set().union(*bodies))


def compare_recorded(version: int, stride: int) -> int:
    count = 0
    for line in itertools.islice(corpus(), 0, None, stride):
        state = state_of(line)
        if version == 2 and overlapping(state):
            continue
        for seat in range(0, state.num_snakes, 2):
            assert_planes(version, state, seat)
            count += 1
    return count


@pytest.mark.parametrize(("version", "stride"), [(1, 12), (2, 60)])
def test_every_plane_of_recorded_boards(version, stride):
    assert compare_recorded(version, stride) > 50


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", [1, 2])
def test_every_plane_of_all_recorded_boards(version, capsys):
    count = compare_recorded(version, 1)
    with capsys.disabled():
        print(f"\nversion {version}: {count} observations agree")
    assert count > 3000


def test_v1_sees_only_its_window():
    """On 25x25 the far rows leave the 23x23 view that the own head is the centre of."""
    near = snake("a", [(0, 0), (1, 0), (2, 0)])
    far = snake("b", [(24, 24), (23, 24), (11, 11), (12, 11), (0, 11), (0, 12)], 77)
    state = State(25, 25, [near, far], [(11, 0), (12, 0), (24, 24)])
    planes = state.encode(1, [0, 1])
    assert planes.shape == (2, 17, 23, 23)
    assert planes[0, 6, 11, 11] == planes[1, 6, 11, 11] == 1
    assert planes[0, 6].sum() == planes[1, 6].sum() == 1
    assert planes[0, 5].sum() == planes[1, 5].sum() == 12 * 12
    assert planes[0, 5, 11:, 11:].all()
    assert planes[1, 5, :12, :12].all()
    assert planes[0, 4].nonzero()[1].tolist() == [22]
    assert planes[0, 0].sum() == 100
    assert planes[1, 0].sum() == 77
    assert planes[0, 8].nonzero()[0].tolist() == [22, 22]
    middle = State(25, 25, [snake("a", [(12, 12), (0, 0)]), far])
    assert middle.encode(1, [0])[0, 5].sum() == 23 * 23
    assert middle.encode(1, [0])[0, 1].sum() == 3


def test_v1_adds_up_stacked_segments():
    coil = [(3, 3)] * 4
    long = [(5, 5), (5, 4), (5, 3), (5, 3)]
    state = State(7, 7, [snake("a", coil), snake("b", long), snake("c", [(0, 0), (0, 1)])])
    own, other, short = state.encode(1, [0, 1, 2])
    assert own[1, 11, 11] == 4
    assert own[2, 11, 11] == 1 + 2 + 3 + 4
    assert own[7, 11, 11] == own[7, 11, 13] == 1
    assert own[8, 11, 13] == 2
    assert own[3, 13, 13] == 1
    assert own[9, 8, 8] == 2
    assert other[3].sum() == 1
    assert short[8, 14, 14] == 4 * 3
    assert own[11].sum() == 49
    assert own[[10, 12, 13, 14, 15, 16]].sum() == 0
    packed = State(7, 7, [snake("a", [(3, 3)] * 40)])
    assert packed.encode(1, [0])[0, 2, 11, 11] == 255
    assert packed.encode(1, [0])[0, 10:].sum() == 0


def test_v2_frees_bodies_as_they_move_on():
    """A corridor whose end opens only when the other's tail has passed."""
    wall = [(1, 4), (1, 3), (1, 2), (1, 1), (1, 0)]
    state = State(5, 5, [snake("a", [(0, 0), (0, 1), (0, 2)]), snake("b", wall)])
    own = state.encode(2, [0])[0]
    assert own[2, :3, 0].tolist() == [3, 2, 1]
    assert own[4, :, 1].tolist() == [1, 2, 3, 4, 5]
    arrival = np.where(own[14] > 0, 65 - own[14].astype(int), 0)
    assert arrival[0, 1] == 1
    assert arrival[1, 1] == 2
    assert arrival[1, 0] == 2
    assert arrival[4, 1] == 5
    assert arrival[0, 0] == 0
    other = np.where(own[15] > 0, 65 - own[15].astype(int), 0)
    assert other[4, 0] == 1
    assert other[0, 0] == 5
    assert own[7].nonzero()[0].tolist() == [4, 4]
    assert own[17, 4, 0] == 1
    assert own[16, 0, 1] == 1


def test_a_dead_seat_sees_the_board_from_its_last_head():
    gone = snake("a", [(-1, 4), (0, 4)], 12, eliminated_cause="wall-collision")
    state = State(7, 7, [gone, snake("b", [(3, 3), (3, 2), (3, 1)])], [(0, 0)])
    v1, v2 = state.encode(1, [0])[0], state.encode(2, [0])[0]
    assert v1[6].sum() == v2[1].sum() == v2[2].sum() == v2[14].sum() == v2[16].sum() == 0
    assert v1[3, 10, 15] == 1
    assert v1[5, 11, 11] == 0
    assert v1[5, 11, 12] == 1
    assert v2[3, 3, 3] == v2[19, 0, 0] == 1
    assert v2[12].max() == 12


@pytest.mark.parametrize("version", [1, 2])
def test_golden_planes(version):
    with np.load(DATA / f"golden_v{version}.npz", allow_pickle=False) as golden:
        texts = [str(text) for text in golden["boards"]]
        wanted = [golden[f"planes_{i}"] for i in range(len(texts))]
    assert len(texts) == 12
    seen = set()
    for i, text in enumerate(texts):
        state = from_json(json.loads(text))
        seen.add(state.num_snakes)
        got = state.encode(version, list(range(state.num_snakes)))
        assert got.dtype == wanted[i].dtype == np.uint8
        assert got.shape == wanted[i].shape
        differs = np.argwhere(got != wanted[i])
        assert len(differs) == 0, f"board {i}, first at [seat, plane, row, col] {differs[:3]}"
    assert {1, 2, 3, 4, 5, 6, 8} <= seen


def turned_planes(symmetry: tuple, planes: np.ndarray) -> np.ndarray:
    swap, mirror_x, mirror_y = symmetry
    if swap:
        planes = planes.swapaxes(-1, -2)
    if mirror_x:
        planes = planes[..., ::-1]
    if mirror_y:
        planes = planes[..., ::-1, :]
    return planes


@pytest.mark.parametrize("symmetry", SYMMETRIES, ids=str)
def test_planes_turn_with_the_board(symmetry):
    for state in random_boards(3, 30):
        other = turned_state(symmetry, state)
        seats = list(range(state.num_snakes))
        for version in (1, 2):
            want = turned_planes(symmetry, state.encode(version, seats))
            assert np.array_equal(other.encode(version, seats), want)


def test_encoding_into_a_larger_buffer():
    for state in random_boards(4, 40):
        for seat in range(state.num_snakes):
            exact = state.encode(2, [seat])[0]
            for more in ((0, 0), (0, 3), (2, 0), (5, 1)):
                out = np.full(
                    (22, state.height + more[0], state.width + more[1]), 99, dtype=np.uint8
                )
                state.encode_into(2, seat, out)
                assert np.array_equal(out[:, : state.height, : state.width], exact)
                out[:, : state.height, : state.width] = 0
                assert not out.any()
            view = np.full((17, 23, 23), 99, dtype=np.uint8)
            state.encode_into(1, seat, view)
            assert np.array_equal(view, state.encode(1, [seat])[0])


def test_many_seats_are_the_single_ones_stacked():
    state = random_boards(6, 1)[0]
    seats = [0, 0, state.num_snakes - 1]
    for version in (1, 2):
        together = state.encode(version, seats)
        single = [state.encode(version, [seat])[0] for seat in seats]
        assert np.array_equal(together, np.stack(single))
        assert state.encode(version, []).shape == (0, *state.observation_shape(version))


def test_wrong_calls_are_refused():
    state = State(7, 5, [snake("a", [(1, 1)])])
    assert state.observation_shape(1) == (17, 23, 23)
    assert state.observation_shape(2) == (22, 5, 7)
    for version in (0, 3):
        with pytest.raises(ValueError, match=f"encoder version {version} is unknown"):
            state.encode(version, [0])
        with pytest.raises(ValueError, match=f"encoder version {version} is unknown"):
            state.observation_shape(version)
    with pytest.raises(IndexError, match="seat 1"):
        state.encode(2, [0, 1])
    for shape in ((22, 5), (21, 5, 7), (22, 4, 7), (22, 5, 6)):
        with pytest.raises(ValueError, match=r"^out: expected a uint8 array \[22, 5\+, 7\+\]"):
            state.encode_into(2, 0, np.zeros(shape, dtype=np.uint8))
    for shape in ((17, 24, 23), (17, 23, 22)):
        with pytest.raises(ValueError, match=r"^out: expected a uint8 array \[17, 23, 23\]"):
            state.encode_into(1, 0, np.zeros(shape, dtype=np.uint8))
    with pytest.raises(IndexError, match="seat 4"):
        state.encode_into(2, 4, np.zeros((22, 5, 7), dtype=np.uint8))


def test_buffers_that_would_be_copied_are_refused():
    """A silent copy would receive the planes in place of the caller's array."""
    state = State(7, 5, [snake("a", [(1, 1)])])
    with pytest.raises(TypeError):
        state.encode_into(2, 0, np.zeros((22, 5, 7), dtype=np.float32))
    with pytest.raises(TypeError):
        state.encode_into(2, 0, np.zeros((22, 5, 14), dtype=np.uint8)[:, :, ::2])
    locked = np.zeros((22, 5, 7), dtype=np.uint8)
    locked.flags.writeable = False
    with pytest.raises(ValueError, match="not writeable"):
        state.encode_into(2, 0, locked)


def test_each_plane_has_a_scale():
    for version, planes in PLANES.items():
        assert (
            len(PLANE_SCALE[version])
            == planes
            == State(5, 5, [snake("a", [(1, 1)])]).observation_shape(version)[0]
        )
        assert min(PLANE_SCALE[version]) >= 1


@pytest.mark.parametrize("version", [1, 2])
def test_float_planes_are_bytes_over_their_scale(version):
    env = VectorEnv([Scenario(11, 7, 3)], count=3, seed=2, encoder=0)
    for _ in range(9):
        env.step(env.masks.argmax(2).astype(np.int8))
    scale = np.array(PLANE_SCALE[version], np.float32)[:, None, None]
    rows = np.argwhere(env.alive).astype(np.int32)
    found = env.encode_float(version, rows)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, env.encode(version, rows) / scale)
    state = env.state(0)
    seats = state.living()
    np.testing.assert_array_equal(
        state.encode_float(version, seats), state.encode(version, seats) / scale
    )
