"""An all-seat net as a player: by equilibrium, by its bare policy, or against known policies.

A `Policies` says with which probabilities seats move; `drawn` makes a player of `contest` of it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snakekit import core
from snakekit.trainer.contest import Chooser
from snakekit.trainer.generate import best_allowed
from snakekit.trainer.model import Net
from snakekit.trainer.nash.game import Evaluate, Floats
from snakekit.trainer.nash.learner import evaluator, infer_policy

Index = NDArray[np.intp]
Policies = Callable[[Sequence[core.State], Index, Index], Floats]
"""Maps (boards, for each row its board and its living seat, `[n]`) to probabilities `[n, 4]`."""

MOVES = 4


def board_rows(
    games: core.VectorEnv, rows: NDArray[np.int32]
) -> tuple[list[core.State], Index, Index]:
    """Return the distinct boards of `rows` (game, seat), and for each row its board and seat."""
    numbers, board = np.unique(rows[:, 0], return_inverse=True)
    states = [games.state(int(game)) for game in numbers]
    return states, np.asarray(board, np.intp), rows[:, 1].astype(np.intp)


def slots_of(states: Sequence[core.State], board: Index, seats: Index) -> Index:
    """Return the slot of each row: the place of its seat among the living ones."""
    living = [state.living() for state in states]
    pairs = zip(board.tolist(), seats.tolist(), strict=True)
    return np.array([living[b].index(seat) for b, seat in pairs], np.intp)


def allowed_moves(states: Sequence[core.State], board: Index, seats: Index) -> NDArray[np.bool_]:
    """Return the moves `[n, 4]` that are not certain death; legal ones, or all, where none is."""
    pairs = zip(board.tolist(), seats.tolist(), strict=True)
    bits = [
        states[b].safe_mask(seat) or states[b].legal_mask(seat) or 2**MOVES - 1 for b, seat in pairs
    ]
    return (np.array(bits, np.intp)[:, None] >> np.arange(MOVES) & 1).astype(np.bool_)


def sharpen(policy: NDArray[Any], temperature: float) -> Floats:
    """Return `policy` `[..., actions]` with exponent 1 / temperature; 0 is arg max."""
    if temperature == 0:
        return np.asarray(np.eye(policy.shape[-1])[policy.argmax(-1)], np.float32)
    raised = (policy / np.maximum(policy.max(-1, keepdims=True), 1e-9)) ** (1 / temperature)
    return np.asarray(raised / raised.sum(-1, keepdims=True), np.float32)


def softened(logits: Floats, allowed: NDArray[np.bool_], temperature: float) -> Floats:
    """Return the policy of `logits` `[n, 4]` over allowed moves; temperature 0 is arg max."""
    if temperature == 0:
        return np.eye(logits.shape[1], dtype=np.float32)[best_allowed(logits, allowed)]
    shown = np.where(allowed, logits / temperature, -np.inf)
    weights = np.exp(shown - shown.max(1, keepdims=True))
    return np.asarray(weights / weights.sum(1, keepdims=True), np.float32)


def drawn(policies: Policies) -> Chooser:
    """Return the player that draws its moves from `policies`."""

    def play(games: core.VectorEnv, rows: NDArray[np.int32], seed: int) -> NDArray[Any]:
        edges = policies(*board_rows(games, rows)).astype(np.float64).cumsum(1)
        points = np.random.default_rng(seed).random(len(rows)) * edges[:, -1]
        return np.asarray(np.minimum((edges <= points[:, None]).sum(1), MOVES - 1))

    return play


def equilibrium_policies(
    evaluate: Evaluate,
    slots: int,
    *,
    iterations: int = 256,
    temperature: float = 1.0,
    draw_worth: float = 1.0,
) -> Policies:
    """Return the equilibria of one turn on a net's outcomes.

    Args:
        evaluate: the net's outcome logits.
        slots: of the net.
        iterations: of regret matching.
        temperature: 1 for the equilibrium's own mixture, 0 for its likeliest move.
        draw_worth: worth of an equal part of a draw; 1 makes duels zero-sum.
    """

    def policies(states: Sequence[core.State], board: Index, seats: Index) -> Floats:
        stage = core.StageGames(states, slots=slots)
        outcomes = evaluate(stage.encode())
        policy = stage.solve(outcomes, iterations=iterations, draw_worth=draw_worth)[0]
        return sharpen(policy[board, slots_of(states, board, seats)], temperature)

    return policies


def bare_policies(
    infer: Callable[[NDArray[np.uint8]], Floats], slots: int, *, temperature: float = 1.0
) -> Policies:
    """Return a net's own policy over safe moves; temperature 0 is arg max."""

    def policies(states: Sequence[core.State], board: Index, seats: Index) -> Floats:
        logits = infer(core.encode_all(states, slots=slots))
        own = logits[board, slots_of(states, board, seats)]
        return softened(own, allowed_moves(states, board, seats), temperature)

    return policies


def kept_policies(
    states: Sequence[core.State], slots: int, learner: Index, agent: Policies
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return what `StageGames.solve` keeps fixed, and which slots that are, `[boards, slots]`.

    Args:
        states: the boards.
        slots: of the stage game.
        learner: `[boards]`, the seat that is free on each board.
        agent: plays all other seats.
    """
    fixed = np.full((len(states), slots, MOVES), np.nan, np.float32)
    rows = [
        (board, slot, seat)
        for board, state in enumerate(states)
        for slot, seat in enumerate(state.living())
        if seat != learner[board]
    ]
    if rows:
        board, slot, seat = np.array(rows, np.intp).T
        fixed[board, slot] = agent(states, board, seat)
    return fixed, ~np.isnan(fixed[..., 0])


def best_response(
    evaluate: Evaluate,
    slots: int,
    agent: Policies,
    *,
    iterations: int = 64,
    draw_worth: float = 1.0,
) -> Policies:
    """Return the likeliest best response of one turn to seats that play by `agent`.

    What follows is worth what `evaluate` says. Every row is answered as if all others were
    the agent's.
    """

    def policies(states: Sequence[core.State], board: Index, seats: Index) -> Floats:
        each = [states[b] for b in board.tolist()]
        stage = core.StageGames(each, slots=slots)
        fixed, _ = kept_policies(each, slots, seats, agent)
        policy = stage.solve(
            evaluate(stage.encode()), iterations=iterations, draw_worth=draw_worth, fixed=fixed
        )[0]
        rows = np.arange(len(each))
        return sharpen(policy[rows, slots_of(each, rows, seats)], 0.0)

    return policies


def equilibrium(
    model: Net,
    slots: int,
    *,
    iterations: int = 256,
    temperature: float = 0.0,
    draw_worth: float = 1.0,
) -> Chooser:
    """Return the player that plays the equilibrium of one turn; see `equilibrium_policies`."""
    policies = equilibrium_policies(
        evaluator(model),
        slots,
        iterations=iterations,
        temperature=temperature,
        draw_worth=draw_worth,
    )
    return drawn(policies)


def bare_policy(model: Net, slots: int) -> Chooser:
    """Return the player that makes the policy's likeliest safe move."""
    return drawn(bare_policies(lambda obs: infer_policy(model, obs), slots, temperature=0.0))
