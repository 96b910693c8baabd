"""Advantages, loss and updates of PPO, against slow references on hand-made courses."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from ppo_cases import made_batch, tiny
from torch import Tensor

from snakekit.trainer.generate import Cancelled
from snakekit.trainer.model import build
from snakekit.trainer.ppo.advantage import Course, estimate
from snakekit.trainer.ppo.config import PpoConfig
from snakekit.trainer.ppo.learner import Alone, Learner, scheduled
from snakekit.trainer.ppo.loss import Weights, entropy_of, loss_sums, masked_log_probs

GAMMA, LAM = 0.9, 0.8
WEIGHTS = Weights(clip=0.2, value_clip=0.0, value=0.5, entropy=0.01)


def slow_advantages(
    rewards: list[float], values: list[float], end: str, after: float
) -> list[float]:
    """Return the advantages of one game's decisions by the definition: a sum over what follows.

    `end` is `terminated` (nothing follows), `truncated` or `open`, with `after` the value of the
    position that the last move led to.
    """
    following = [*values[1:], 0.0 if end == "terminated" else after]
    deltas = [r + GAMMA * n - v for r, n, v in zip(rewards, following, values, strict=True)]
    return [
        sum((GAMMA * LAM) ** k * delta for k, delta in enumerate(deltas[start:]))
        for start in range(len(deltas))
    ]


def test_advantages_are_those_of_the_definition() -> None:
    """One seat: a game that ends, dead turns, a cut-off game, an opponent's game, an open one."""
    games = [
        ([0.0, 0.2, -1.0], [0.3, 0.1, -0.4], "terminated", 99.0),
        (None, 2),
        ([0.0, 0.0], [0.5, 0.6], "truncated", 0.7),
        ([1.0], [0.9], "terminated", 99.0),
        (None, 3),
        ([0.1, 0.0, 0.0], [0.2, 0.3, 0.1], "open", -0.8),
    ]
    columns: dict[str, list[float]] = {name: [] for name in ("r", "v", "live", "t", "c", "f")}
    expected: list[float] = []
    for game in games:
        if game[0] is None:
            for name in columns:
                # Garbage where nobody of ours decides must not leak.
                columns[name] += [0.0 if name in ("live", "t", "c") else 50.0] * game[1]
            expected += [0.0] * game[1]
            continue
        rewards, values, end, after = game
        last = [0.0] * (len(rewards) - 1) + [1.0]
        columns["r"] += rewards
        columns["v"] += values
        columns["live"] += [1.0] * len(rewards)
        columns["t"] += [x * (end == "terminated") for x in last]
        columns["c"] += [x * (end == "truncated") for x in last]
        columns["f"] += [x * after if end == "truncated" else 77.0 for x in last]
        expected += slow_advantages(rewards, values, end, after)

    def array(name: str, kind: type) -> np.ndarray:
        column = np.array(columns[name], kind)
        return np.stack([column, column], 1)

    course = Course(
        live=array("live", bool),
        rewards=array("r", np.float32),
        values=array("v", np.float32),
        terminated=array("t", bool),
        truncated=array("c", bool),
        final_values=array("f", np.float32),
        last_values=np.float32([-0.8, -0.8]),
    )
    found = estimate(course, GAMMA, LAM)
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-6)
    np.testing.assert_array_equal(found[:, 0], found[:, 1])


def test_a_cut_off_game_is_no_loss() -> None:
    """The same course, once ended by the rules and once by the limit of turns."""
    shape = (1, 1)
    base = Course(
        live=np.ones(shape, bool),
        rewards=np.zeros(shape, np.float32),
        values=np.full(shape, 0.5, np.float32),
        terminated=np.ones(shape, bool),
        truncated=np.zeros(shape, bool),
        final_values=np.full(shape, 0.5, np.float32),
        last_values=np.float32([0.9]),
    )
    ended = estimate(base, 1.0, LAM)
    cut = estimate(replace(base, terminated=~base.live, truncated=base.live), 1.0, LAM)
    open_ = estimate(replace(base, terminated=~base.live), 1.0, LAM)
    assert ended[0, 0] == pytest.approx(-0.5)
    assert cut[0, 0] == pytest.approx(0.0)
    assert open_[0, 0] == pytest.approx(0.4)


def slow_loss(logits: list[float], value: float, row: dict[str, float | list[bool]]) -> float:
    allowed = [m for m in range(4) if row["mask"][m]]
    total = sum(math.exp(logits[m]) for m in allowed)
    probs = {m: math.exp(logits[m]) / total for m in allowed}
    ratio = probs[row["move"]] / math.exp(row["log_prob"])
    near = min(max(ratio, 0.8), 1.2)
    policy = -min(ratio * row["advantage"], near * row["advantage"])
    entropy = -sum(p * math.log(p) for p in probs.values())
    return policy + 0.5 * 0.5 * (value - row["return"]) ** 2 - 0.01 * entropy


def test_the_loss_is_that_of_the_definition() -> None:
    batch = made_batch(40)
    torch.manual_seed(5)
    logits, value = torch.randn(40, 4), torch.randn(40, 1)
    found = loss_sums(logits, value, batch, WEIGHTS)["loss"]
    expected = sum(
        slow_loss(
            logits[i].tolist(),
            value[i].item(),
            {
                "mask": batch.mask[i].tolist(),
                "move": batch.moves[i].item(),
                "log_prob": batch.log_probs[i].item(),
                "advantage": batch.advantages[i].item(),
                "return": batch.returns[i].item(),
            },
        )
        for i in range(40)
    )
    assert found.item() == pytest.approx(expected, rel=1e-5)


def test_parts_of_a_batch_add_up_to_the_whole() -> None:
    batch = made_batch(30)
    logits, value = torch.randn(30, 4), torch.randn(30, 1)
    whole = loss_sums(logits, value, batch, WEIGHTS)
    parts = [
        loss_sums(logits[rows], value[rows], batch.rows(rows), WEIGHTS)
        for rows in torch.arange(30).split(7)
    ]
    for key, total in whole.items():
        torch.testing.assert_close(sum(part[key] for part in parts), total)


def test_masked_moves_have_no_share_and_no_gradient() -> None:
    logits = torch.tensor([[1.0, 50.0, -2.0, 0.0], [0.0, 9.0, 9.0, 9.0], [1.0, 2.0, 3.0, 4.0]])
    mask = torch.tensor([[1, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]], dtype=torch.bool)
    logits.requires_grad_()
    log_probs = masked_log_probs(logits, mask)
    entropy = entropy_of(log_probs)
    assert log_probs.exp()[0].tolist() == pytest.approx([0.952574, 0, 0.047426, 0], abs=1e-6)
    assert entropy[1].item() == 0
    # A row without any allowed move is one with all of them.
    torch.testing.assert_close(log_probs[2].exp(), torch.softmax(logits[2], 0))
    (entropy.sum() + log_probs[0, 0]).backward()
    assert torch.isfinite(logits.grad).all()
    assert logits.grad[0, 1] == logits.grad[0, 3] == 0
    assert (logits.grad[1] == 0).all()


def test_the_ratio_is_one_with_the_acting_weights() -> None:
    batch = made_batch(64, seed=3)
    torch.manual_seed(3)
    net = build("compact", tiny().net_options())
    with torch.no_grad():
        found = loss_sums(*net(batch.obs), batch, WEIGHTS)
    assert found["kl"].item() == pytest.approx(0, abs=1e-5)
    assert found["clip_fraction"].item() == 0
    assert found["policy_loss"].item() == pytest.approx(-batch.advantages.sum().item(), abs=1e-4)


def test_the_values_change_can_be_clipped() -> None:
    batch = made_batch(1)
    batch = replace(batch, values=torch.tensor([0.0]), returns=torch.tensor([1.0]))
    logits, value = torch.zeros(1, 4), torch.tensor([[0.9]])
    free = loss_sums(logits, value, batch, WEIGHTS)["value_loss"]
    held = loss_sums(logits, value, batch, replace(WEIGHTS, value_clip=0.2))["value_loss"]
    assert free.item() == pytest.approx(0.5 * 0.1**2, rel=1e-4)
    assert held.item() == pytest.approx(0.5 * 0.8**2, rel=1e-4)


def learner(config: PpoConfig, seed: int = 0) -> Learner:
    torch.manual_seed(seed)
    return Learner(config, build(config.net, config.net_options()), torch.device("cpu"))


def weights(found: Learner) -> Tensor:
    return torch.cat([p.detach().flatten() for p in found.model.parameters()])


@pytest.mark.parametrize("normalize", ["batch", "minibatch", "none"])
def test_the_size_in_memory_changes_nothing(normalize: str) -> None:
    batch = made_batch(50)
    found = []
    for micro in (1000, 7):
        one = learner(tiny(normalize=normalize, micro_batch=micro))
        found.append((one.update(batch, 0), weights(one)))
    (figures, whole), (others, parts) = found
    torch.testing.assert_close(whole, parts, atol=2e-5, rtol=1e-4)
    assert figures.keys() == others.keys()
    for key, value in figures.items():
        assert others[key] == pytest.approx(value, abs=1e-4, rel=1e-3), key


def test_advantages_are_normalized_over_the_decisions() -> None:
    one = learner(tiny())
    batch = made_batch(80)
    mean, deviation = one._moments(batch.advantages)
    assert mean.item() == pytest.approx(batch.advantages.mean().item(), abs=1e-6)
    assert deviation.item() == pytest.approx(batch.advantages.numpy().std(), rel=1e-5)
    # Only their order of size matters then: a scale and an offset do not.
    other = replace(batch, advantages=batch.advantages * 30 + 4)
    twin = learner(tiny())
    one.update(batch, 0)
    twin.update(other, 0)
    torch.testing.assert_close(weights(one), weights(twin), atol=2e-5, rtol=1e-4)


def test_every_decision_is_learned_once_an_epoch() -> None:
    one = learner(tiny(minibatches=4))
    for epoch in range(2):
        parts = one._order(23, 5, epoch)
        assert len(parts) == 4
        assert sorted(torch.cat(parts).tolist()) == list(range(23))
    assert not torch.equal(torch.cat(one._order(23, 5, 0)), torch.cat(one._order(23, 5, 1)))
    assert len(one._order(2, 0, 0)) == 2


def test_gradients_are_clipped() -> None:
    config = tiny(grad_norm=0.01)
    one = learner(config)
    batch = made_batch(40)
    figures = one.update(batch, 0)
    assert figures["grad_norm"] > 0.02
    norm = torch.sqrt(sum((p.grad**2).sum() for p in one.model.parameters()))
    assert norm.item() <= 0.01 * 1.001


def test_rates_follow_their_schedule() -> None:
    assert [scheduled(1.0, 0.0, s, "linear") for s in (0, 0.25, 1)] == [1.0, 0.75, 0.0]
    assert [scheduled(1.0, 0.0, s, "cosine") for s in (0, 0.5, 1)] == pytest.approx([1, 0.5, 0])
    assert scheduled(1.0, 0.0, 0.9, "constant") == 1.0
    one = learner(tiny(lr=1e-2, lr_final=1e-3, entropy=0.1, entropy_final=0.0, iterations=10))
    figures = one.update(made_batch(20), 5)
    assert figures["lr"] == pytest.approx(5.5e-3)
    assert figures["entropy_weight"] == pytest.approx(0.05)
    assert one.optimizer.param_groups[0]["lr"] == pytest.approx(5.5e-3)
    assert one.optimizer.param_groups[0]["eps"] == 1e-5


def test_the_epochs_end_when_the_policy_has_moved_far() -> None:
    fast = tiny(lr=0.05, epochs=8, target_kl=0.01)
    assert learner(fast).update(made_batch(60), 0)["epochs"] < 8
    assert learner(tiny(epochs=3)).update(made_batch(60), 0)["epochs"] == 3


def test_rewarded_moves_become_likelier() -> None:
    batch = made_batch(200)
    good = torch.where(batch.moves == 2, 1.0, -1.0)
    batch = replace(batch, advantages=good, returns=batch.values)
    one = learner(tiny(lr=0.02, epochs=4, normalize="none"))
    with torch.no_grad():
        before = masked_log_probs(one.model(batch.obs)[0], batch.mask).exp()
    one.update(batch, 0)
    with torch.no_grad():
        after = masked_log_probs(one.model(batch.obs)[0], batch.mask).exp()
    where = batch.mask[:, 2] & (batch.mask.sum(1) > 1)
    assert (after[where, 2] - before[where, 2]).mean() > 0.02


def test_gradients_that_are_not_finite_are_an_error() -> None:
    batch = made_batch(20)
    batch.returns[3] = math.nan
    with pytest.raises(FloatingPointError, match="not finite"):
        learner(tiny()).update(batch, 0)


def test_an_update_can_be_stopped() -> None:
    with pytest.raises(Cancelled):
        learner(tiny()).update(made_batch(20), 0, stop=lambda: True)


class Two(Alone):
    """A group whose second member has the same decisions as the first."""

    size = 2

    def total(self, values: Tensor) -> Tensor:
        return values * 2


def test_members_of_a_group_weigh_their_decisions_alike() -> None:
    """Twice the same decisions in two members are what they are in one."""
    batch = made_batch(40)
    torch.manual_seed(0)
    config = tiny()
    two = Learner(config, build(config.net, config.net_options()), torch.device("cpu"), Two())
    # Each member's gradient is scaled for the average over both, which are alike here.
    one = learner(config)
    first, second = two.update(batch, 0), one.update(batch, 0)
    torch.testing.assert_close(weights(two), weights(one), atol=1e-6, rtol=1e-5)
    assert first["kl"] == pytest.approx(second["kl"], rel=1e-4)
    assert first["explained_variance"] == pytest.approx(second["explained_variance"], abs=1e-6)
