"""Games against a frozen agent, for a learner that looks for its weaknesses.

The learner has one seat, the agent all others, and its policy at each board is known. The stage
game is solved with it kept (regret matching by one side only), so values become those of best
responses: what one who knows the agent's probabilities, not its draws, can make of a position.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from snakekit.trainer.agents import Agent
from snakekit.trainer.nash.game import Floats, Solved
from snakekit.trainer.nash.players import kept_policies
from snakekit.trainer.nash.snakes import SnakeTable
from snakekit.trainer.scenario import Scenario


class AgainstTable(SnakeTable):
    """See `SnakeTable`; the learner's seat changes from game to game."""

    def __init__(
        self, scenario: Scenario, games: int, slots: int, *, agent: Agent, **options: Any
    ) -> None:
        """Start `games` games in which `agent` has all seats but one."""
        super().__init__(scenario, games, slots, **options)
        self.agent = agent

    def learners(self) -> NDArray[np.intp]:
        """Return the learner's seat in each game."""
        return (np.arange(self.games) + self._episode) % self.seats

    def solve(self, outcomes: Floats, iterations: int) -> Solved:
        """See `Table`; the agent's seats keep their policies and never explore."""
        if self._stage is None:
            raise RuntimeError("solve comes after expand")
        fixed, kept = kept_policies(self.states, self.slots, self.learners(), self.agent.policies)
        policy, outcome, _, gap = self._stage.solve(
            outcomes, iterations=iterations, draw_worth=self.draw_worth, fixed=fixed
        )
        seats = self._stage.seats
        return Solved(policy, self._stage.candidates, outcome, gap, seats, kept)
