"""All-seat nets: what they promise about seats, boards and symmetries."""

import numpy as np
import pytest
import torch

from snakekit import core
from snakekit.trainer.model import ALL_SEAT, build
from snakekit.trainer.nash.examples import Examples, augment, exchange_slots, room
from snakekit.trainer.nash.learner import Learner, losses
from snakekit.trainer.nash.players import sharpen
from snakekit.trainer.replay import Replay

SMALL = {"slots": 4, "channels": 8, "blocks": 1, "hidden": 8}
KINDS = [{}, {"attention": 2}, {"separate": 1}, {"attention": 2, "separate": 1}]


def boards(count: int, snakes: int, side: int = 7) -> list[core.State]:
    made = []
    for seed in range(count):
        state = core.State.new_game(side, side, [str(i) for i in range(snakes)], seed)
        for turn in range(4):
            moves = [
                core.random_move(state, s, seed + turn) if state.alive(s) else -1
                for s in range(snakes)
            ]
            state.advance(moves, seed)
        if len(state.living()) >= 2:
            made.append(state)
    return made


def examples(count: int = 12, slots: int = 4) -> Examples:
    rng = np.random.default_rng(0)
    obs = core.encode_all(boards(count, 3), slots=slots)
    heads = [core.ALL_SEAT_COMMON + k * core.ALL_SEAT_BLOCK for k in range(slots)]
    living = obs[:, heads].max((2, 3)) > 0
    policy = rng.dirichlet(np.ones(4), (len(obs), slots)) * living[..., None]
    outcome = rng.random((len(obs), slots + 1)) * np.c_[living, np.ones(len(obs))]
    outcome /= outcome.sum(1, keepdims=True)
    return Examples(obs, policy.astype(np.float32), outcome.astype(np.float32))


@pytest.mark.parametrize("extra", KINDS, ids=str)
def test_shapes_and_the_chances_of_absent_snakes(extra):
    torch.manual_seed(0)
    net = build(ALL_SEAT, SMALL | extra).eval()
    batch = examples()
    policy, outcome = net(torch.from_numpy(batch.obs))
    assert policy.shape == (len(batch), 4, 4)
    assert outcome.shape == (len(batch), 5)
    chances = outcome.softmax(1).detach().numpy()
    absent = np.c_[batch.policy.sum(2) == 0, np.zeros(len(batch), bool)]
    assert absent.any()
    assert (chances[absent] == 0).all()
    assert (chances[~absent] > 0).all()


@pytest.mark.parametrize("extra", KINDS, ids=str)
def test_a_board_inside_a_larger_tensor_gets_the_same_answer(extra):
    torch.manual_seed(1)
    net = build(ALL_SEAT, SMALL | extra).eval()
    obs = examples().obs
    padded = np.zeros((*obs.shape[:2], 10, 9), np.uint8)
    padded[:, :, :7, :7] = obs
    for a, b in zip(net(torch.from_numpy(obs)), net(torch.from_numpy(padded)), strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-4)


def test_symmetries_are_those_of_boards_that_are_turned_and_seats_that_are_exchanged():
    batch = examples()
    order = np.array([2, 0, 3, 1])
    swapped = exchange_slots(batch, order)
    back = exchange_slots(swapped, np.argsort(order))
    for a, b in zip(vars(batch).values(), vars(back).values(), strict=True):
        np.testing.assert_array_equal(a, b)
    block, common = core.ALL_SEAT_BLOCK, core.ALL_SEAT_COMMON
    np.testing.assert_array_equal(
        swapped.obs[:, common : common + block],
        batch.obs[:, common + 2 * block : common + 3 * block],
    )
    np.testing.assert_array_equal(swapped.outcome[:, 0], batch.outcome[:, 2])
    turned = augment(batch, np.random.default_rng(3))
    assert turned.obs.sum() == batch.obs.sum()
    np.testing.assert_allclose(turned.outcome.sum(1), 1, atol=1e-5)
    np.testing.assert_allclose(np.sort(turned.policy, 2).sum(), batch.policy.sum(), rtol=1e-5)


def test_moves_turn_with_the_board():
    """A move onto the cell that the arrival plane calls one turn away stays one after turning."""
    steps = ((0, 1), (0, -1), (-1, 0), (1, 0))
    obs = core.encode_all(boards(16, 2), slots=2)
    policy = np.zeros((len(obs), 2, 4), np.float32)
    for i, planes in enumerate(obs):
        for slot in range(2):
            base = core.ALL_SEAT_COMMON + slot * core.ALL_SEAT_BLOCK
            y, x = np.argwhere(planes[base])[0]
            for move, (dx, dy) in enumerate(steps):
                inside = 0 <= x + dx < 7 and 0 <= y + dy < 7
                policy[i, slot, move] = inside and planes[base + 5, y + dy, x + dx] == 64
    plain = Examples(obs, policy, np.full((len(obs), 3), 1 / 3, np.float32))
    turned = augment(plain, np.random.default_rng(4))
    assert not np.array_equal(turned.obs, obs)
    for i, planes in enumerate(turned.obs):
        for slot in range(2):
            base = core.ALL_SEAT_COMMON + slot * core.ALL_SEAT_BLOCK
            y, x = np.argwhere(planes[base])[0]
            for move, (dx, dy) in enumerate(steps):
                inside = 0 <= x + dx < 7 and 0 <= y + dy < 7
                wanted = inside and planes[base + 5, y + dy, x + dx] == 64
                assert turned.policy[i, slot, move] == wanted


@pytest.mark.parametrize("extra", KINDS, ids=str)
def test_a_net_learns_a_batch_by_heart(extra):
    torch.manual_seed(2)
    torch.set_num_threads(1)
    net = build(ALL_SEAT, SMALL | {"channels": 16} | extra)
    learner = Learner(net, lr=1e-2, steps=150, warmup=5)
    batch = examples(6)
    first = learner.update(batch)
    for _ in range(39):
        last = learner.update(batch)
    assert last["outcome_kl"] < first["outcome_kl"] / 2
    assert last["policy_kl"] < first["policy_kl"] / 2
    assert losses(net, batch)["outcome"].item() >= -1e-5


def test_the_mean_of_the_weights_follows_them():
    net = build(ALL_SEAT, SMALL)
    learner = Learner(net, lr=1e-3, steps=50, warmup=0, average=0.9)
    start = [p.clone() for p in learner.average.parameters()]
    for _ in range(30):
        learner.update(examples(6))
    moved = 0
    for first, mean, last in zip(
        start, learner.average.parameters(), net.parameters(), strict=True
    ):
        behind, way = (mean - last).norm().item(), (last - first).norm().item()
        assert behind <= 0.6 * way
        moved += behind > 0
    assert moved > 10
    plain = Learner(net, lr=1e-3, steps=50)
    plain.update(examples(6))
    for mean, last in zip(plain.average.parameters(), net.parameters(), strict=True):
        torch.testing.assert_close(mean, last)


def test_replay_keeps_the_newest_and_survives_saving():
    batch = examples(10)
    shape = batch.obs.shape[1:]
    replay = Replay(room(4, 4), {shape: 15})
    for _ in range(4):
        replay.add(batch)
    assert len(replay) == 15
    again = Replay(room(4, 4), {shape: 15})
    again.unpack(replay.pack())
    a, b = (r.sample(20, np.random.default_rng(1)) for r in (replay, again))
    for one, other in zip(vars(a).values(), vars(b).values(), strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="saved replay"):
        Replay(room(4, 4), {shape: 5}).unpack(replay.pack())


def judged(states: list[core.State], slots: int) -> tuple[np.ndarray, np.ndarray]:
    """An untrained net's policies and chances."""
    net = build(ALL_SEAT, SMALL | {"slots": slots}).eval()
    with torch.inference_mode():
        policy, outcome = net(torch.from_numpy(core.encode_all(states, slots=slots)))
    return policy.numpy(), outcome.softmax(1).numpy()


def test_an_untrained_net_judges_by_area_and_length():
    long = core.Snake("a", 90, [(3, 3), (3, 2), (3, 1), (2, 1), (1, 1)])
    short = core.Snake("b", 90, [(0, 6), (0, 5), (0, 4)])
    chances = judged([core.State(7, 7, [long, short])], 4)[1][0]
    assert chances[0] > 0.6 > 0.2 > chances[1]
    assert chances[2] == chances[3] == 0


@pytest.mark.parametrize("ruleset", ["standard", "wrapped"])
def test_an_untrained_net_moves_by_the_standing_also_across_edges(ruleset):
    """Down leads into a pocket or back over the edge, left is the own body, right is safe."""
    body = [(3, 0), (2, 0), (2, 1), (3, 1), (4, 1), (5, 1)]
    far = core.Snake("b", 90, [(5, 4), (5, 3), (6, 3)])
    settings = core.Settings(ruleset=ruleset)
    state = core.State(7, 7, [core.Snake("a", 90, body), far], settings=settings)
    policy = judged([state], 2)[0][0, 0]
    legal = [m for m in range(4) if state.legal_mask(0) >> m & 1]
    safe = [m for m in range(4) if state.safe_mask(0) >> m & 1]
    assert safe == ([1, 3] if ruleset == "wrapped" else [3])
    lost = [policy[m] for m in range(4) if m not in safe]
    assert max(lost) < min(policy[safe]) - 5
    assert set(safe) < set(legal)


def test_sharpening():
    policy = np.array([[0.5, 0.3, 0.2, 0.0]])
    np.testing.assert_allclose(sharpen(policy, 1), policy)
    np.testing.assert_array_equal(sharpen(policy, 0), [[1, 0, 0, 0]])
    half = sharpen(policy, 0.5)[0]
    np.testing.assert_allclose(half, np.array([25, 9, 4, 0]) / 38)


@pytest.mark.parametrize(
    "options", [{"channels": 0}, {"attention": 3}, {"separate": 2}, {"canonical": 1}]
)
def test_odd_options_are_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        build(ALL_SEAT, SMALL | options)
