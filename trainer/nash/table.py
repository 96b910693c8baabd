"""A `Table` for any `SimultaneousGame`: plain Python, for small games and as a reference."""

import itertools
import json
import math
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from snakekit import core
from snakekit.trainer.checkpoint import pack_generator, unpack_generator
from snakekit.trainer.nash.game import (
    Action,
    Ends,
    Floats,
    SimultaneousGame,
    Solved,
    State,
    utilities,
)
from snakekit.trainer.nash.planning import GamePlans, GameWalk


class GameTable(Generic[State, Action]):
    """Games of any kind side by side; all seats live until the end, so slots are seats."""

    def __init__(
        self,
        game: SimultaneousGame[State, Action],
        games: int,
        *,
        seed: int,
        max_turns: int,
        limit: int = core.FULL_INFORMATION,
    ) -> None:
        """Start games.

        Args:
            game: their rules.
            games: how many.
            seed: of starts and chance.
            max_turns: after which a game is cut off.
            limit: most joint actions tried in a state; see `Table.expand`.
        """
        self.game, self.games = game, games
        self.seats = self.slots = game.seats
        self.actions = game.actions
        self.max_turns, self._limit = max_turns, limit
        self._cut = np.zeros(games, np.bool_)
        self._generator = np.random.default_rng([seed, 5])
        self._states = [game.start(self._generator) for _ in range(games)]
        self._turns = np.zeros(games, np.int64)
        self._candidates: list[list[list[Action]]] = []
        self._lines: list[list[tuple[int, Floats | None]]] = []
        planes, rows, cols = self.features().shape[1:]
        self.shape = (planes, rows, cols)

    def features(self) -> NDArray[np.uint8]:
        """See `Table`."""
        return self.game.features(self._states)

    def turns(self) -> NDArray[np.int64]:
        """See `Table`."""
        return self._turns.copy()

    def cut(self) -> NDArray[np.bool_]:
        """See `Table`."""
        return self._cut.copy()

    def _tried(self, number: int, priors: Floats | None) -> list[list[Action]]:
        """Return one game's candidates by slot, cut to the limit."""
        state = self._states[number]
        own = [list(self.game.candidates(state, s)) for s in self.game.living(state)]
        self._cut[number] = math.prod(map(len, own)) > self._limit
        if priors is not None:
            for slot, actions in enumerate(own):
                actions.sort(key=lambda a, slot=slot: -priors[number, slot, self.game.place(a)])  # type: ignore[misc]
        while math.prod(map(len, own)) > self._limit:
            max(own, key=len).pop()
        return own

    def expand(self, priors: Floats | None = None) -> NDArray[np.uint8]:
        """See `Table`."""
        leaves: list[State] = []
        self._candidates, self._lines = [], []
        for number, state in enumerate(self._states):
            own = self._tried(number, priors)
            lines: list[tuple[int, Floats | None]] = []
            for joint in itertools.product(*own):
                after = self.game.step(state, joint)
                end = self.game.outcome(after)
                lines.append((-1 if end is not None else len(leaves), end))
                leaves += [after] if end is None else []
            self._candidates.append(own)
            self._lines.append(lines)
        if not leaves:
            return np.zeros((0, *self.shape), np.uint8)
        return self.game.features(leaves)

    def solve(self, outcomes: Floats, iterations: int) -> Solved:
        """See `Table`."""
        shape = (self.games, self.slots, self.actions)
        policy, allowed = np.zeros(shape, np.float32), np.zeros(shape, np.bool_)
        expected = np.zeros((self.games, self.slots + 1), np.float32)
        gap = np.zeros(self.games, np.float32)
        weights = np.exp(outcomes - outcomes.max(1, keepdims=True, initial=-np.inf))
        chances = weights / weights.sum(1, keepdims=True)
        for g, (own, lines) in enumerate(zip(self._candidates, self._lines, strict=True)):
            ends = np.stack([chances[leaf] if end is None else end for leaf, end in lines])
            sizes = [len(actions) for actions in own]
            worth = utilities(ends, len(own)).reshape(*sizes, -1)
            found, _, gap[g] = core.solve_stage(worth, iterations=iterations)
            joint = np.ones(1, np.float32)
            for slot, (actions, chosen) in enumerate(zip(own, found, strict=True)):
                places = [self.game.place(a) for a in actions]
                policy[g, slot, places], allowed[g, slot, places] = chosen, True
                joint = np.multiply.outer(joint, chosen).ravel()
            expected[g] = joint @ ends
        seats = np.tile(np.arange(self.slots, dtype=np.int8), (self.games, 1))
        return Solved(policy, allowed, expected, gap, seats)

    def plans(self, number: int, turns: int) -> GamePlans[State, Action]:
        """See `Table`."""
        return GamePlans(self.game, self._states[number], turns)

    def walk(self, number: int, turns: int, count: int) -> GameWalk[State, Action]:
        """See `Table`."""
        return GameWalk(self.game, self._states[number], count, turns)

    def play(self, actions: NDArray[np.intp]) -> Ends:
        """See `Table`."""
        over, cut = np.zeros(self.games, np.bool_), np.zeros(self.games, np.bool_)
        outcome = np.zeros((self.games, self.seats + 1), np.float32)
        for g, state in enumerate(self._states):
            # Of all candidates: an oracle may have found some that were not tried at first.
            joint = [
                next(a for a in self.game.candidates(state, seat) if self.game.place(a) == place)
                for seat, place in zip(self.game.living(state), actions[g].tolist(), strict=True)
            ]
            after = self.game.chance(self.game.step(state, joint), self._generator)
            self._turns[g] += 1
            end = self.game.outcome(after)
            over[g] = end is not None
            cut[g] = end is None and self._turns[g] >= self.max_turns
            if end is not None:
                outcome[g] = end
            if over[g] or cut[g]:
                after, self._turns[g] = self.game.start(self._generator), 0
            self._states[g] = after
        return Ends(over, cut, outcome)

    def pack(self) -> dict[str, NDArray[Any]]:
        """See `Table`."""
        return {
            "states": self.game.pack(self._states),
            "turns": self.turns(),
            "generator": np.frombuffer(
                json.dumps(pack_generator(self._generator)).encode(), np.uint8
            ),
        }

    def unpack(self, arrays: dict[str, NDArray[Any]]) -> None:
        """See `Table`."""
        states = self.game.unpack(arrays["states"])
        if len(states) != self.games:
            raise ValueError("the saved games are of another kind")
        self._states, self._turns = states, arrays["turns"].copy()
        self._generator = unpack_generator(json.loads(arrays["generator"].tobytes()))
