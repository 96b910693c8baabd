"""Rollouts of PPO on the real rules: whose decisions are learned from, and what they are worth."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from ppo_cases import tiny

from snakekit.trainer import symmetry
from snakekit.trainer.checkpoint import weights_of
from snakekit.trainer.generate import Cancelled
from snakekit.trainer.league import LEARNER, League
from snakekit.trainer.model import build
from snakekit.trainer.ppo import rollout as rollouts
from snakekit.trainer.ppo.advantage import Course, estimate
from snakekit.trainer.ppo.config import PpoConfig
from snakekit.trainer.ppo.loss import masked_log_probs
from snakekit.trainer.ppo.rollout import _BACK, Rollout, Worker, choose, turned


def new_weights(config: PpoConfig, seed: int = 0) -> dict[str, NDArray[Any]]:
    torch.manual_seed(seed)
    return weights_of(build(config.net, config.net_options()))


def league(config: PpoConfig) -> League:
    found = League(config.league, new_weights(config, 1))
    found.promote(new_weights(config, 2), 1)
    return found


class Watched:
    """A worker whose course and games are looked at."""

    def __init__(self, config: PpoConfig, monkeypatch: pytest.MonkeyPatch) -> None:
        self.worker = Worker(config, 0, config.envs)
        self.league = league(config)
        self.weights = new_weights(config)
        self.courses: list[Course] = []
        self.seats: list[NDArray[Any]] = []
        self.episodes: list[NDArray[Any]] = []
        self.alive: list[NDArray[Any]] = []
        note = rollouts._Record._act

        def noted(record: Any, turn: int, live: Any, moves: Any) -> None:
            self.seats.append(self.worker.seats.copy())
            self.episodes.append(self.worker.env.episodes.copy())
            self.alive.append(self.worker.env.alive.copy())
            note(record, turn, live, moves)

        def kept(course: Course, gamma: float, lam: float) -> Any:
            self.courses.append(course)
            return estimate(course, gamma, lam)

        monkeypatch.setattr(rollouts._Record, "_act", noted)
        monkeypatch.setattr(rollouts, "estimate", kept)

    def collect(self, iteration: int = 0, place: Any = None, stop: Any = lambda: False) -> Rollout:
        fetch = self.league.weights.__getitem__
        return self.worker.collect(self.weights, self.league, fetch, iteration, place, stop)


def test_only_living_seats_of_the_learner_are_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny(steps=60, envs=6, selfplay_share=0.2)
    watched = Watched(config, monkeypatch)
    found = watched.collect()
    live = [a & (s == LEARNER) for a, s in zip(watched.alive, watched.seats, strict=True)]
    np.testing.assert_array_equal(np.stack(live).reshape(60, -1), watched.courses[0].live)
    assert len(found.batch) == found.counts["decisions"] == np.stack(live).sum()
    assert 0 < len(found.batch) < np.stack(watched.alive).sum()
    # An own head on every board that was learned from: dead seats show nothing.
    assert (found.batch.obs[:, 1].flatten(1).sum(1) == 1).all()
    assert set(np.unique(np.stack(watched.seats)).tolist()) >= {LEARNER, 1, 2, -1, -2}


def test_players_keep_their_seats_for_whole_games(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(tiny(steps=80), monkeypatch)
    watched.collect()
    changed = 0
    for turn in range(1, 80):
        same = watched.episodes[turn] == watched.episodes[turn - 1]
        before, after = watched.seats[turn - 1], watched.seats[turn]
        np.testing.assert_array_equal(before[same], after[same])
        changed += int((before[~same] != after[~same]).any())
    assert changed > 2


@pytest.mark.parametrize("orientation", ["none", "random", "canonical"])
def test_log_probabilities_are_those_of_the_acting_weights(
    monkeypatch: pytest.MonkeyPatch, orientation: str
) -> None:
    config = tiny(symmetry=orientation)
    watched = Watched(config, monkeypatch)
    batch = watched.collect().batch
    net = build(config.net, config.net_options())
    net.load_state_dict({k: torch.from_numpy(v) for k, v in watched.weights.items()})
    with torch.no_grad():
        logits, value = net(batch.obs)
    log_probs = masked_log_probs(logits, batch.mask).gather(1, batch.moves[:, None])[:, 0]
    torch.testing.assert_close(log_probs, batch.log_probs, atol=1e-5, rtol=0)
    torch.testing.assert_close(value[:, 0], batch.values, atol=1e-5, rtol=0)
    assert batch.mask.gather(1, batch.moves[:, None]).all()
    torch.testing.assert_close(batch.returns, batch.advantages + batch.values)


def test_what_ends_a_game_decides_what_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a net whose value is everywhere 0.5, each kind of end has a known error."""
    config = tiny(steps=40, max_turns=25, gamma=0.9, gae_lambda=0.0, selfplay_share=1.0)
    watched = Watched(config, monkeypatch)
    watched.weights["value.weight"][:] = 0
    watched.weights["value.bias"][:] = np.arctanh(0.5)
    found = watched.collect()
    course = watched.courses[0]
    error = found.batch.advantages.numpy()
    terminated, truncated = course.terminated[course.live], course.truncated[course.live]
    rewards = course.rewards[course.live]
    assert terminated.sum() == found.counts["ended"] > 3
    assert truncated.sum() == found.counts["cut"] > 0
    np.testing.assert_allclose(error[terminated], rewards[terminated] - 0.5, atol=1e-6)
    np.testing.assert_allclose(error[~terminated], 0.9 * 0.5 - 0.5, atol=1e-6)
    assert set(np.unique(rewards).tolist()) == {-1.0, 0.0, 1.0}
    assert (rewards[truncated] == 0).all()


def test_rewards_can_be_shaped(monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny(
        steps=150, envs=8, kill_bonus=0.25, eat_cost=0.0625, draw_reward=-0.5, selfplay_share=1.0
    )
    watched = Watched(config, monkeypatch)
    counts = watched.collect().counts
    course = watched.courses[0]
    drawn = counts["own_drawn"]
    lost = counts["ended"] - counts["own_won"] - drawn
    expected = counts["own_won"] - lost - 0.5 * drawn
    expected += 0.25 * counts["kills"] - 0.0625 * counts["eaten"]
    assert course.rewards.sum() == pytest.approx(expected)
    assert min(counts["kills"], counts["eaten"], drawn) > 0


def test_without_masks_certain_deaths_are_tried() -> None:
    def deaths(mask: bool) -> float:
        config = tiny(mask_moves=mask, steps=60, selfplay_share=1.0)
        worker, found = Worker(config, 0, config.envs), league(config)
        fetch = found.weights.__getitem__
        batch = worker.collect(new_weights(config), found, fetch, 0, None)
        assert bool(batch.batch.mask.all()) is not mask
        return batch.counts["cause/wall-collision"] / batch.counts["ended"]

    assert deaths(False) > 0.2 > deaths(True)


def test_a_place_can_be_gone_back_to(monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny(steps=30)
    watched = Watched(config, monkeypatch)
    first = watched.collect()
    second = watched.collect(1, first.place)
    other = Watched(config, monkeypatch)
    again = other.collect(1, first.place)
    once_more = other.collect(1, first.place)
    for found in (again, once_more):
        assert found.counts == second.counts
        for name in second.batch.__dataclass_fields__:
            assert torch.equal(getattr(found.batch, name), getattr(second.batch, name)), name
        for name, array in second.place.pack().items():
            np.testing.assert_array_equal(found.place.pack()[name], array)
    assert not torch.equal(first.batch.moves[:50], second.batch.moves[:50])


def test_a_stopped_worker_begins_again_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny(steps=20)
    watched, straight = Watched(config, monkeypatch), Watched(config, monkeypatch)
    asked = iter([False] * 7 + [True])
    with pytest.raises(Cancelled):
        watched.collect(0, None, stop=lambda: next(asked))
    first = watched.collect(0, None)
    assert torch.equal(first.batch.obs, straight.collect(0, None).batch.obs)


def test_workers_play_different_games(monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny()
    found = league(config)
    fetch = found.weights.__getitem__
    batches = [
        Worker(config, index, 4).collect(new_weights(config), found, fetch, 0, None).batch
        for index in (0, 1)
    ]
    assert not torch.equal(batches[0].obs[:20], batches[1].obs[:20])


def test_moves_are_drawn_by_the_policy() -> None:
    logits = np.tile(np.float32([[0.0, 1.0, 9.0, -1.0]]), (20_000, 1))
    mask = np.tile([[True, True, False, True]], (20_000, 1))
    moves, log_probs = choose(logits, mask, np.random.default_rng(0))
    expected = np.exp([0.0, 1.0, -1.0])
    expected /= expected.sum()
    share = np.bincount(moves, minlength=4) / len(moves)
    assert share[2] == 0
    assert share[[0, 1, 3]] == pytest.approx(expected, abs=0.01)
    assert np.exp(log_probs[moves == 1][0]) == pytest.approx(expected[1], abs=1e-5)


def test_a_turned_decision_means_the_same_move() -> None:
    """The move chosen in a turned view leads to the cell that the untouched view shows there."""
    obs = np.zeros((400, 3, 5, 5), np.uint8)
    obs[:, 0, 2, 2] = 1
    for move, (row, col) in enumerate(((3, 2), (1, 2), (2, 1), (2, 3))):
        obs[:, 1, row, col] = 10 + move
    mask = np.tile([[True, False, True, False]], (400, 1))
    seen, seen_mask, drawn = turned(torch.from_numpy(obs), mask, np.random.default_rng(0))
    assert set(drawn.tolist()) == set(range(symmetry.COUNT))
    cells = ((3, 2), (1, 2), (2, 1), (2, 3))
    for index in range(400):
        for chosen in range(4):
            move = _BACK[drawn[index], chosen]
            assert seen[index, 1][cells[chosen]] == 10 + move
            assert seen_mask[index, chosen] == mask[index, move]
    flat = torch.zeros(50, 2, 5, 7, dtype=torch.uint8)
    oblong, _, kept = turned(flat, mask[:50], np.random.default_rng(0))
    assert oblong.shape == (50, 2, 5, 7)
    assert set(kept.tolist()) == {0, 1, 2, 3}
