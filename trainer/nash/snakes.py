"""Battlesnake as a table of simultaneous games, with everything that loops in C++."""

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snakekit import core
from snakekit.runtime.plans import KEPT, PlanGame
from snakekit.trainer.nash.game import Ends, Floats, Solved
from snakekit.trainer.scenario import Scenario

MOVES = 4
_NAMES = "abcdefgh"


class SnakeTable:
    """Games of one scenario; a game is its seed and the moves so far, so it can be saved."""

    actions = MOVES

    def __init__(
        self,
        scenario: Scenario,
        games: int,
        slots: int,
        *,
        seed: int,
        max_turns: int,
        draw_worth: float = 1.0,
    ) -> None:
        """Start `games` games; they are cut off after `max_turns` turns."""
        self.draw_worth = draw_worth
        self.scenario, self.games, self.slots = scenario, games, slots
        self.seats = scenario.snakes
        self.shape = (core.all_seat_planes(slots), *scenario.shape)
        self.max_turns = max_turns
        self._settings = scenario.settings()
        self._seed = seed
        self._episode = np.zeros(games, np.int64)
        self._moves: list[list[list[int]]] = [[] for _ in range(games)]
        self._states = [self._fresh(game) for game in range(games)]
        self._stage: core.StageGames | None = None

    def _game_seed(self, game: int) -> int:
        parts = [self._seed, game, int(self._episode[game])]
        return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> 1)

    def _fresh(self, game: int) -> core.State:
        s = self.scenario
        names = list(_NAMES[: s.snakes])
        seed = self._game_seed(game)
        return core.State.new_game(s.width, s.height, names, seed, self._settings)

    @property
    def states(self) -> list[core.State]:
        """The games' present boards."""
        return self._states

    def features(self) -> NDArray[np.uint8]:
        """See `Table`."""
        return core.encode_all(self._states, slots=self.slots)

    def turns(self) -> NDArray[np.int64]:
        """See `Table`."""
        return np.array([len(moves) for moves in self._moves], np.int64)

    def expand(self, priors: Floats | None = None) -> NDArray[np.uint8]:
        """See `Table`."""
        self._stage = core.StageGames(self._states, slots=self.slots, kept=KEPT, priors=priors)
        return self._stage.encode()

    def cut(self) -> NDArray[np.bool_]:
        """See `Table`."""
        if self._stage is None:
            raise RuntimeError("cut comes after expand")
        return self._stage.cut

    def solve(self, outcomes: Floats, iterations: int) -> Solved:
        """See `Table`."""
        if self._stage is None:
            raise RuntimeError("solve comes after expand")
        policy, outcome, _, gap = self._stage.solve(
            outcomes, iterations=iterations, draw_worth=self.draw_worth
        )
        return Solved(policy, self._stage.candidates, outcome, gap, self._stage.seats)

    def plans(self, number: int, turns: int) -> PlanGame:
        """See `Table`."""
        return PlanGame(self._states[number], self.slots, turns, draw_worth=self.draw_worth)

    def walk(self, number: int, turns: int, count: int) -> core.PlanWalk:
        """See `Table`."""
        return core.PlanWalk(self._states[number], count=count, turns=turns, slots=self.slots)

    def play(self, actions: NDArray[np.intp]) -> Ends:
        """See `Table`."""
        over, cut = np.zeros(self.games, np.bool_), np.zeros(self.games, np.bool_)
        outcome = np.zeros((self.games, self.seats + 1), np.float32)
        deaths: Counter[str] = Counter()
        for game, state in enumerate(self._states):
            moves, before = [-1] * self.seats, state.living()
            for seat, move in zip(before, actions[game].tolist(), strict=False):
                moves[seat] = move
            state.advance(moves, self._game_seed(game))
            if len(state.living()) < len(before):
                snakes = state.snakes()
                deaths.update(snakes[s].eliminated_cause for s in before if not state.alive(s))
            self._moves[game].append(moves)
            over[game] = state.game_over()
            cut[game] = not over[game] and len(self._moves[game]) >= self.max_turns
            if over[game]:
                left = state.living()
                outcome[game, left[0] if left else -1] = 1
            if over[game] or cut[game]:
                self._episode[game] += 1
                self._moves[game] = []
                self._states[game] = self._fresh(game)
        self._stage = None
        return Ends(over, cut, outcome, deaths)

    def pack(self) -> dict[str, NDArray[Any]]:
        """See `Table`."""
        moves = [np.array(m, np.int8).reshape(-1, self.seats) for m in self._moves]
        return {
            "episode": self._episode.copy(),
            "turns": self.turns(),
            "moves": np.concatenate(moves),
        }

    def unpack(self, arrays: dict[str, NDArray[Any]]) -> None:
        """See `Table`."""
        turns, moves = arrays["turns"], arrays["moves"]
        if turns.shape != (self.games,) or moves.shape != (int(turns.sum()), self.seats):
            raise ValueError("the saved games are of another kind")
        self._episode = arrays["episode"].copy()
        first = 0
        for game in range(self.games):
            part = moves[first : first + int(turns[game])].tolist()
            first += len(part)
            state, seed = self._fresh(game), self._game_seed(game)
            for row in part:
                state.advance(row, seed)
            self._states[game], self._moves[game] = state, part
