"""The PettingZoo environment: the library's own tests, then what this game adds."""

from typing import Any

import numpy as np
import pytest
from pettingzoo.test import parallel_api_test, parallel_seed_test

from snakekit import core
from snakekit.core import Scenario, Settings
from snakekit.trainer.parallel_env import BattlesnakeParallelEnv

UP, DOWN, LEFT, RIGHT = range(4)
DUEL = Scenario(7, 7, 2)
SCENARIOS = {
    "default": None,
    "duel": DUEL,
    "alone": Scenario(7, 7, 1, Settings(solo=True)),
    "eight, not square": Scenario(19, 11, 8),
    "royale": Scenario(11, 11, 4, Settings(ruleset="royale", shrink_every=3)),
    "wrapped": Scenario(7, 7, 2, Settings(ruleset="wrapped")),
    "constrictor": Scenario(7, 7, 3, Settings(ruleset="constrictor")),
}


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("encoder", sorted(core.PLANES))
def test_official_api(name: str, encoder: int) -> None:
    env = BattlesnakeParallelEnv(SCENARIOS[name], encoder=encoder, max_turns=60)
    parallel_api_test(env, num_cycles=120)


@pytest.mark.parametrize("name", SCENARIOS)
def test_official_seeds(name: str) -> None:
    parallel_seed_test(lambda: BattlesnakeParallelEnv(SCENARIOS[name]), num_cycles=40)


def safest(observations: dict[str, Any]) -> dict[str, int]:
    return {agent: int(np.argmax(seen["action_mask"])) for agent, seen in observations.items()}


def history(env: BattlesnakeParallelEnv, seed: int | None, turns: int = 30) -> bytes:
    observations, _ = env.reset(seed=seed)
    seen = b""
    for _ in range(turns):
        seen += b"".join(o["observation"].tobytes() for o in observations.values())
        if not env.agents:
            break
        observations = env.step(safest(observations))[0]
        observations = {a: o for a, o in observations.items() if a in env.agents}
    return seen


def test_seeds_decide_games_and_those_that_follow() -> None:
    one, two = (BattlesnakeParallelEnv() for _ in range(2))
    first = history(one, 3)
    assert first == history(two, 3)
    second = history(one, None)
    assert second == history(two, None)
    assert len({first, second, history(one, 4)}) == 3
    assert history(one, 3) == first


def test_observations_lie_in_their_space_and_masks_mean_safe_moves() -> None:
    env = BattlesnakeParallelEnv(Scenario(7, 7, 4))
    observations, infos = env.reset(seed=1)
    assert set(infos) == set(observations) == set(env.agents) == set(env.possible_agents)
    while env.agents:
        before = env._state.copy()
        for agent in env.agents:
            assert env.observation_space(agent).contains(observations[agent])
            seat = env.possible_agents.index(agent)
            safe = before.safe_mask(seat)
            expected = [safe >> move & 1 for move in range(4)] if safe else [1] * 4
            assert observations[agent]["action_mask"].tolist() == expected
            encoded = before.encode(2, [seat])[0]
            assert np.array_equal(observations[agent]["observation"], encoded)
        observations = env.step(safest(observations))[0]


def test_a_wall_costs_one_and_wins_the_other_one() -> None:
    env = BattlesnakeParallelEnv(DUEL)
    observations, _ = env.reset(seed=5)
    while env.agents:
        actions = safest(observations) | {"snake_0": UP}
        observations, rewards, terminated, truncated, infos = env.step(actions)
        assert set(rewards) == set(infos) == {"snake_0", "snake_1"}
        assert not any(truncated.values())
        if env.agents:
            assert rewards == {"snake_0": 0.0, "snake_1": 0.0}
            assert not any(terminated.values())
    assert rewards == {"snake_0": -1.0, "snake_1": 1.0}
    assert all(terminated.values())
    # Learners bootstrap from the last observation, so the dead have one too.
    assert set(observations) == {"snake_0", "snake_1"}


def test_a_tie_costs_both() -> None:
    env = BattlesnakeParallelEnv(DUEL)
    for seed in range(50):
        env.reset(seed=seed)
        while env.agents:
            rewards, terminated = env.step(dict.fromkeys(env.agents, UP))[1:3]
        assert all(terminated.values())
        if rewards["snake_0"] == rewards["snake_1"]:
            assert rewards == {"snake_0": -1.0, "snake_1": -1.0}
            return
    pytest.fail("no start in 50 puts both snakes on one row")


def test_the_dead_leave_and_are_not_asked_again() -> None:
    env = BattlesnakeParallelEnv(Scenario(11, 11, 4), max_turns=200)
    observations, _ = env.reset(seed=2)
    gone: set[str] = set()
    total = dict.fromkeys(env.possible_agents, 0.0)
    while env.agents:
        acting = set(env.agents)
        actions = {a: safest(observations)[a] for a in acting}
        if "snake_3" in acting:
            actions["snake_3"] = RIGHT
        observations, rewards, terminated, truncated, infos = env.step(actions)
        for found in (observations, rewards, terminated, truncated, infos):
            assert set(found) == acting
        gone |= {a for a in acting if terminated[a] or truncated[a]}
        assert set(env.agents) == set(env.possible_agents) - gone
        assert not any(terminated[a] and truncated[a] for a in acting)
        for agent, reward in rewards.items():
            total[agent] += reward
            assert reward == 0.0 or terminated[agent]
    assert total["snake_3"] == -1.0
    assert sorted(total.values()).count(1.0) <= 1
    assert env.step({}) == ({}, {}, {}, {}, {})


def test_truncation_ends_the_game_without_a_reward() -> None:
    env = BattlesnakeParallelEnv(DUEL, max_turns=3)
    observations, _ = env.reset(seed=1)
    for turn in range(1, 4):
        observations, rewards, terminated, truncated, _ = env.step(safest(observations))
        assert not any(terminated.values())
        assert set(truncated.values()) == {turn == 3}
        assert set(rewards.values()) == {0.0}
    assert env.agents == []


def test_agents_without_an_action_go_straight_on() -> None:
    env = BattlesnakeParallelEnv(DUEL)
    env.reset(seed=1)
    env.step({"snake_0": LEFT, "snake_1": RIGHT})
    heads = [env._state.head(seat) for seat in (0, 1)]
    env.step({})
    assert [env._state.head(seat) for seat in (0, 1)] == [
        (heads[0][0] - 1, heads[0][1]),
        (heads[1][0] + 1, heads[1][1]),
    ]


def test_alone_the_only_end_is_a_loss() -> None:
    env = BattlesnakeParallelEnv(SCENARIOS["alone"])
    env.reset(seed=0)
    while env.agents:
        rewards = env.step({"snake_0": DOWN})[1]
    assert rewards == {"snake_0": -1.0}
