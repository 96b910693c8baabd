"""How strong a bare policy is: games against built-in players, by arg max over safe moves."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snakekit import core
from snakekit.trainer.generate import best_allowed
from snakekit.trainer.scenario import Scenario

Policy = Callable[[NDArray[np.uint8]], NDArray[np.float32]]
"""Maps observations `[N, planes, rows, cols]` to logits `[N, 4]`."""

Opponent = Callable[[core.VectorEnv, NDArray[np.int32], int], NDArray[Any]]
"""Maps (games, rows `[n, 2]` of game and seat, seed) to a move for each row."""


def _by_state(move: Callable[[core.State, int, int], int]) -> Opponent:
    def choose(games: core.VectorEnv, rows: NDArray[np.int32], seed: int) -> NDArray[Any]:
        seeds = np.random.default_rng(seed).integers(2**31, size=len(rows)).tolist()
        pairs = zip(rows.tolist(), seeds, strict=True)
        return np.array([move(games.state(game), seat, s) for (game, seat), s in pairs], np.int64)

    return choose


def _by_search(depth: int) -> Opponent:
    def choose(games: core.VectorEnv, rows: NDArray[np.int32], seed: int) -> NDArray[Any]:
        del seed
        return np.asarray(games.search(rows, max_depth=depth).argmax(1))

    return choose


OPPONENTS: Mapping[str, Opponent] = MappingProxyType(
    {
        "random": _by_state(lambda state, seat, seed: core.random_move(state, seat, seed)),
        "greedy": _by_state(lambda state, seat, seed: core.greedy_move(state, seat, seed)),
        **{f"search{depth}": _by_search(depth) for depth in range(1, 9)},
    }
)
"""Built-in players: `random`, `greedy`, and `searchN`, alpha-beta over N full turns."""


@dataclass(frozen=True)
class Score:
    """Results of one player, one game each."""

    wins: int
    losses: int
    draws: int
    unfinished: int
    """Games cut off at the turn limit; they count as draws."""
    turns: float
    """Mean length of the finished games in turns."""

    @property
    def games(self) -> int:
        """Number of games."""
        return self.wins + self.losses + self.draws + self.unfinished

    @property
    def points(self) -> float:
        """Share of wins plus half the draws, 0..1."""
        return (self.wins + 0.5 * (self.draws + self.unfinished)) / max(self.games, 1)

    def interval(self) -> tuple[float, float]:
        """Return the 95 % Wilson interval of the share of wins."""
        n, z = max(self.games, 1), 1.96
        p = self.wins / n
        centre = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        return max(0.0, centre - half), min(1.0, centre + half)


def measure(
    policy: Policy,
    encoder: int,
    scenario: Scenario,
    opponent: str,
    *,
    games: int,
    seed: int,
    max_turns: int = 2000,
) -> Score:
    """Play `games` games of `policy` in one seat against `opponent` in all others.

    Seats are balanced: game `g` has the policy in seat `g % snakes`. Each game ends for the
    count when the policy's own result is known.

    Raises:
        ValueError: an unknown opponent.
    """
    if opponent not in OPPONENTS:
        raise ValueError(f"unknown opponent {opponent!r}; known: {', '.join(OPPONENTS)}")
    table = scenario.games(games, seed)
    own_seat = np.arange(games) % scenario.snakes
    result = np.zeros(games, np.int8)
    length = np.zeros(games, np.int64)
    for turn in range(max_turns):
        running = result == 0
        if not running.any():
            break
        moves = _moves(policy, encoder, table, OPPONENTS[opponent], own_seat, running, seed + turn)
        table.step(moves)
        outcome = table.results[np.arange(games), own_seat]
        fresh = running & (outcome != 0)
        result[fresh] = outcome[fresh]
        length[fresh] = turn + 1
    return Score(
        wins=int((result == 1).sum()),
        losses=int((result == -1).sum()),
        draws=int((result == 2).sum()),
        unfinished=int((result == 0).sum()),
        turns=float(length[result != 0].mean()) if (result != 0).any() else 0.0,
    )


def _moves(
    policy: Policy,
    encoder: int,
    table: core.VectorEnv,
    opponent: Opponent,
    own_seat: NDArray[Any],
    running: NDArray[np.bool_],
    seed: int,
) -> NDArray[np.int8]:
    alive = table.alive & running[:, None]
    allowed = table.masks
    rows = np.argwhere(alive).astype(np.int32)
    mine = rows[:, 1] == own_seat[rows[:, 0]]
    moves = np.zeros(alive.shape, np.int8)
    ours, theirs = rows[mine], rows[~mine]
    if len(ours):
        at = ours[:, 0], ours[:, 1]
        moves[at] = best_allowed(policy(table.encode(encoder, ours)), allowed[at])
    if len(theirs):
        moves[theirs[:, 0], theirs[:, 1]] = opponent(table, theirs, seed)
    return moves
