"""Imitation of the alpha-beta search as the start of a run: the search plays, the net looks on.

Positions come from the search's own games, the policy's targets from its moves (its exact mixture
where it solved a turn, otherwise its best move), the value's from the outcomes.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from snakekit import core
from snakekit.runtime.plans import PlanGame
from snakekit.trainer.nash.game import Ends, Floats, Solved
from snakekit.trainer.nash.players import allowed_moves
from snakekit.trainer.nash.snakes import MOVES, SnakeTable

_TABLE_MB = 1


def search_policy(state: core.State, seat: int, nodes: int) -> Floats:
    """Return how often the search plays each move of a living seat, `[4]`.

    A fresh table each time: what an earlier position left in it would change the answer.
    """
    found = core.Searcher(_TABLE_MB).search(state, seat, max_nodes=nodes)
    if found.mixture is not None:
        return np.array(found.mixture, np.float32)
    return np.asarray(np.eye(MOVES)[found.best], np.float32)


class Lesson:
    """The games of a `SnakeTable`, played by the search with `nodes` positions a move.

    What a game is worth at a turn that has no outcome yet is the net's own opinion of it.
    """

    def __init__(self, table: SnakeTable, nodes: int) -> None:
        """Play on with `table`."""
        self.table, self.nodes = table, nodes
        self.games, self.seats, self.slots = table.games, table.seats, table.slots
        self.actions, self.shape = table.actions, table.shape

    def features(self) -> NDArray[np.uint8]:
        """See `Table`."""
        return self.table.features()

    def turns(self) -> NDArray[np.int64]:
        """See `Table`."""
        return self.table.turns()

    def expand(self, priors: Floats | None = None) -> NDArray[np.uint8]:
        """Return the boards themselves: nothing is looked ahead."""
        del priors
        return self.features()

    def cut(self) -> NDArray[np.bool_]:
        """See `Table`."""
        return np.zeros(self.games, np.bool_)

    def solve(self, outcomes: Floats, iterations: int) -> Solved:
        """Ask the search for every living seat; `outcomes` are logits of the boards."""
        del iterations
        states = self.table.states
        rows = [
            (game, slot, seat)
            for game, state in enumerate(states)
            for slot, seat in enumerate(state.living())
        ]
        game, slot, seat = np.array(rows, np.intp).T
        shape = (self.games, self.slots, MOVES)
        policy, allowed = np.zeros(shape, np.float32), np.zeros(shape, np.bool_)
        policy[game, slot] = [search_policy(states[g], s, self.nodes) for g, _, s in rows]
        allowed[game, slot] = allowed_moves(states, game, seat)
        seats = np.full(shape[:2], -1, np.int8)
        seats[game, slot] = seat
        weights = np.exp(outcomes - outcomes.max(1, keepdims=True))
        worth = (weights / weights.sum(1, keepdims=True)).astype(np.float32)
        return Solved(policy, allowed, worth, np.zeros(self.games, np.float32), seats)

    def play(self, actions: NDArray[np.intp]) -> Ends:
        """See `Table`."""
        return self.table.play(actions)

    def plans(self, number: int, turns: int) -> PlanGame:
        """See `Table`."""
        return self.table.plans(number, turns)

    def walk(self, number: int, turns: int, count: int) -> core.PlanWalk:
        """See `Table`."""
        return self.table.walk(number, turns, count)

    def pack(self) -> dict[str, NDArray[Any]]:
        """See `Table`."""
        return self.table.pack()

    def unpack(self, arrays: dict[str, NDArray[Any]]) -> None:
        """See `Table`."""
        self.table.unpack(arrays)
