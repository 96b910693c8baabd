"""Games among players, many side by side, on the vector environment: the engine of every count.

Evaluation, the gate of the league and its opponents in training all choose moves the same way: a
`Chooser` gets the games and the (game, seat) rows that it has to move in, and answers all of them
at once.
"""

from collections.abc import Callable, Mapping, Sequence
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

Chooser = Callable[[core.VectorEnv, NDArray[np.int32], int], NDArray[Any]]
"""Maps (games, rows `[n, 2]` of game and living seat, seed) to a move 0..3 for each row."""


def _by_state(move: Callable[[core.State, int, int], int]) -> Chooser:
    def choose(games: core.VectorEnv, rows: NDArray[np.int32], seed: int) -> NDArray[Any]:
        seeds = np.random.default_rng(seed).integers(2**31, size=len(rows)).tolist()
        pairs = zip(rows.tolist(), seeds, strict=True)
        return np.array([move(games.state(game), seat, s) for (game, seat), s in pairs], np.int64)

    return choose


def _by_search(depth: int) -> Chooser:
    def choose(games: core.VectorEnv, rows: NDArray[np.int32], seed: int) -> NDArray[Any]:
        del seed
        return np.asarray(games.search(rows, max_depth=depth).argmax(1))

    return choose


BUILTIN: Mapping[str, Chooser] = MappingProxyType(
    {
        "random": _by_state(lambda state, seat, seed: core.random_move(state, seat, seed)),
        "greedy": _by_state(lambda state, seat, seed: core.greedy_move(state, seat, seed)),
        **{f"search{depth}": _by_search(depth) for depth in range(1, 9)},
    }
)
"""Built-in players: `random`, `greedy`, and `searchN`, alpha-beta over N full turns."""


def best_move(policy: Policy, encoder: int) -> Chooser:
    """Return the player that makes the policy's likeliest safe move."""

    def choose(games: core.VectorEnv, rows: NDArray[np.int32], seed: int) -> NDArray[Any]:
        del seed
        return best_allowed(
            policy(games.encode(encoder, rows)), games.masks[rows[:, 0], rows[:, 1]]
        )

    return choose


@dataclass(frozen=True)
class Results:
    """How each game ended for its first player; arrays by game."""

    results: NDArray[np.int8]
    """1 won, -1 lost, 2 drawn, 0 cut off at the limit of turns."""
    turns: NDArray[np.int64]
    """Turn in which that was decided, 0 where it was not."""


def contest(
    players: Sequence[Chooser],
    lineup: NDArray[np.intp],
    scenario: Scenario,
    *,
    seed: int,
    max_turns: int,
) -> Results:
    """Play one game a row of `lineup` and return the results of player 0.

    A game counts as over as soon as player 0's own result is known; what the others do with each
    other afterwards is not played. The same seed gives the same starts, whatever the line-up.

    Args:
        players: who can take part.
        lineup: `[games, snakes]`, the player in each seat; player 0 has exactly one.
        scenario: board, snakes and ruleset.
        seed: of the starts, the food and the players' random choices.
        max_turns: games are cut off there.

    Raises:
        ValueError: player 0 has no seat or several in a game.
    """
    if not ((lineup == 0).sum(1) == 1).all():
        raise ValueError("lineup: player 0 must have exactly one seat in every game")
    games = scenario.games(len(lineup), seed)
    own = lineup.argmin(1)
    at = np.arange(len(lineup))
    result = np.zeros(len(lineup), np.int8)
    turns = np.zeros(len(lineup), np.int64)
    for turn in range(max_turns):
        running = result == 0
        if not running.any():
            break
        alive = games.alive & running[:, None]
        moves = np.zeros(alive.shape, np.int8)
        for index, player in enumerate(players):
            rows = np.argwhere(alive & (lineup == index)).astype(np.int32)
            if len(rows):
                moves[rows[:, 0], rows[:, 1]] = player(games, rows, seed + turn)
        games.step(moves)
        fresh = running & (games.results[at, own] != 0)
        result[fresh] = games.results[at, own][fresh]
        turns[fresh] = turn + 1
    return Results(result, turns)
