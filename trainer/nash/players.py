"""An all-seat net as a player of `contest` games: by equilibrium, or by its bare policy."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from snakekit import core
from snakekit.trainer.contest import Chooser
from snakekit.trainer.generate import best_allowed
from snakekit.trainer.model import Net
from snakekit.trainer.nash.learner import evaluator, infer_policy


def _boards(
    games: core.VectorEnv, rows: NDArray[np.int32]
) -> tuple[list[core.State], NDArray[np.intp], NDArray[np.intp]]:
    """Return the distinct boards of `rows`, and for each row its board and slot."""
    numbers, board = np.unique(rows[:, 0], return_inverse=True)
    states = [games.state(int(game)) for game in numbers]
    living = [state.living() for state in states]
    pairs = zip(board.tolist(), rows[:, 1].tolist(), strict=True)
    return states, board, np.array([living[b].index(seat) for b, seat in pairs], np.intp)


def sharpen(policy: NDArray[Any], temperature: float) -> NDArray[Any]:
    """Return `policy` `[..., actions]` with exponent 1 / temperature; 0 is arg max."""
    if temperature == 0:
        return np.asarray(np.eye(policy.shape[-1])[policy.argmax(-1)])
    raised = (policy / np.maximum(policy.max(-1, keepdims=True), 1e-9)) ** (1 / temperature)
    return np.asarray(raised / raised.sum(-1, keepdims=True))


def equilibrium(
    model: Net, slots: int, *, iterations: int = 256, temperature: float = 0.0
) -> Chooser:
    """Return the player that plays the equilibrium of one turn on the net's outcomes.

    Args:
        model: an all-seat net.
        slots: its slots.
        iterations: of regret matching.
        temperature: 1 plays the equilibrium's own mixture, 0 its likeliest move.
    """
    evaluate = evaluator(model)

    def play(games: core.VectorEnv, rows: NDArray[np.int32], seed: int) -> NDArray[Any]:
        states, board, slot = _boards(games, rows)
        stage = core.StageGames(states, slots=slots)
        policy = stage.solve(evaluate(stage.encode()), iterations=iterations)[0][board, slot]
        edges = sharpen(policy, temperature).cumsum(1)
        points = np.random.default_rng(seed).random(len(rows)) * edges[:, -1]
        return np.asarray(np.minimum((edges <= points[:, None]).sum(1), 3))

    return play


def bare_policy(model: Net, slots: int) -> Chooser:
    """Return the player that makes the policy's likeliest safe move."""

    def play(games: core.VectorEnv, rows: NDArray[np.int32], seed: int) -> NDArray[Any]:
        del seed
        states, board, slot = _boards(games, rows)
        logits = infer_policy(model, core.encode_all(states, slots=slots))[board, slot]
        return best_allowed(logits, games.masks[rows[:, 0], rows[:, 1]])

    return play
