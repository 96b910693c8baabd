"""One game as a PettingZoo parallel environment, so that other people's learners run on it.

Slow next to `core.VectorEnv`, which steps thousands of games from C++; the rules, maps and
observations are the same code.
"""

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from snakekit import core

Observation = dict[str, NDArray[Any]]


class BattlesnakeParallelEnv(ParallelEnv):  # type: ignore[misc]  # PettingZoo has no types
    """A game of `scenario`; agents are `snake_0`, `snake_1`, ...

    Observations are `{"observation": uint8 [planes, rows, cols], "action_mask": int8 [4]}`; the
    mask leaves out moves that are certain death, unless all are. Actions are 0..3 for up, down,
    left, right. The reward is +1 for the last one alive and -1 for a loss or tie, on the turn that
    decides it.
    """

    metadata = {"name": "snakekit_battlesnake_v0", "render_modes": []}  # noqa: RUF012

    def __init__(
        self, scenario: core.Scenario | None = None, *, encoder: int = 2, max_turns: int = 0
    ) -> None:
        """Prepare a game; `max_turns` truncates it, 0 never does."""
        self.scenario = scenario if scenario is not None else core.Scenario()
        self.encoder = encoder
        self.max_turns = max_turns
        self.render_mode = None
        self.possible_agents = [f"snake_{i}" for i in range(self.scenario.snakes)]
        self.agents: list[str] = []
        self._rng = np.random.default_rng()
        self._begin()
        shape = self._state.observation_shape(encoder)
        space = spaces.Dict(
            {
                "observation": spaces.Box(0, 255, shape, np.uint8),
                "action_mask": spaces.Box(0, 1, (4,), np.int8),
            }
        )
        self.observation_spaces = dict.fromkeys(self.possible_agents, space)
        self.action_spaces = {agent: spaces.Discrete(4) for agent in self.possible_agents}

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of `agent`'s observations."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """Return the space of `agent`'s actions."""
        return self.action_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Observation], dict[str, dict[str, Any]]]:
        """Start a new game; `seed` decides this one and those that follow."""
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        self._begin()
        self.agents = list(self.possible_agents)
        return self._observe(self.agents), {agent: {} for agent in self.agents}

    def _begin(self) -> None:
        self._seed = int(self._rng.integers(1 << 62))
        s = self.scenario
        self._state = core.State.new_game(
            s.width, s.height, self.possible_agents, self._seed, s.settings
        )

    def _observe(self, agents: list[str]) -> dict[str, Observation]:
        found: dict[str, Observation] = {}
        for agent in agents:
            seat = self.possible_agents.index(agent)
            safe = self._state.safe_mask(seat) if self._state.alive(seat) else 0
            mask = [(safe >> m & 1) or safe == 0 for m in range(4)]
            found[agent] = {
                "observation": self._state.encode(self.encoder, [seat])[0],
                "action_mask": np.array(mask, np.int8),
            }
        return found

    def step(
        self, actions: dict[str, int]
    ) -> tuple[
        dict[str, Observation],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, Any]],
    ]:
        """Play one turn; agents without an action go straight on."""
        acting = list(self.agents)
        moves = [int(actions.get(agent, -1)) for agent in self.possible_agents]
        self._state.advance(moves, self._seed)
        over = self._state.game_over()
        cut = not over and 0 < self.max_turns <= self._state.turn
        rewards: dict[str, float] = {}
        terminated: dict[str, bool] = {}
        truncated: dict[str, bool] = {}
        for agent in acting:
            alive = self._state.alive(self.possible_agents.index(agent))
            terminated[agent] = over or not alive
            truncated[agent] = cut and alive
            rewards[agent] = 0.0 if not terminated[agent] else (1.0 if alive else -1.0)
        self.agents = [a for a in acting if not terminated[a] and not truncated[a]]
        infos: dict[str, dict[str, Any]] = {agent: {} for agent in acting}
        return self._observe(acting), rewards, terminated, truncated, infos
