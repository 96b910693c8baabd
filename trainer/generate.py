"""Games played for training: a search labels every position, and several players choose moves.

The search's own moves, the learner's moves and random safe moves take turns, so that the labels
also cover positions that only a weaker player reaches (as DAgger does; Ross, Gordon and Bagnell,
arXiv 1011.0686). A call is a pure function of its arguments.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from snakekit import core
from snakekit.trainer.model import Net
from snakekit.trainer.scenario import Scenario
from snakekit.trainer.targets import losing, search_values, soft_targets, with_bonus

STEPS = ((0, 1), (0, -1), (-1, 0), (1, 0))


class Cancelled(Exception):
    """The games were no longer wanted."""


@dataclass(frozen=True)
class Examples:
    """Positions with what the net should answer; all arrays share their first axis."""

    obs: NDArray[np.uint8]
    """`[N, planes, rows, cols]`."""
    policy: NDArray[np.float32]
    """Target probabilities `[N, 4]`."""
    value: NDArray[np.float32]
    """Target value `[N]` in -1..1."""

    def __len__(self) -> int:
        """Return the number of positions."""
        return len(self.value)


def room(count: int, shape: tuple[int, int, int]) -> Examples:
    """Return arrays for `count` positions whose observations have `shape`."""
    return Examples(
        np.zeros((count, *shape), np.uint8),
        np.zeros((count, 4), np.float32),
        np.zeros(count, np.float32),
    )


@dataclass(frozen=True)
class Recipe:
    """How to play and label."""

    encoder: int
    games: int
    """Games side by side."""
    turns: int
    """Turns played in each; finished games start again."""
    explore: float
    """Mean probability of a random safe move; each seat draws its own rate from 0 to twice it."""
    student_share: float
    """Probability that a seat is played by the learner."""
    eat_bonus: float
    """Added to the score of a move onto food. The search's evaluation rewards being near food the
    more the hungrier the snake is, so that a pure search hovers beside it and stays short."""
    seek_bonus: float
    """Added to the score of the move that `core.greedy_move` would make towards food."""
    quiet_share: float
    """Share kept of the positions in which no move loses within the search's sight."""
    temperature: float
    """Of the policy target, in the search's score unit."""
    value_scale: float
    """Score at which the search's opinion of a state is tanh(1)."""
    outcome_weight: float
    """Share of the game's outcome in the value target; the search's opinion has the rest."""


def random_allowed(allowed: NDArray[np.bool_], generator: np.random.Generator) -> NDArray[np.intp]:
    """Return one uniformly random allowed move a row; any move where none is allowed."""
    keys = generator.random(allowed.shape)
    return np.asarray(np.where(allowed, keys + 1.0, keys).argmax(-1), np.intp)


def best_allowed(logits: NDArray[np.float32], allowed: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the arg max over allowed moves a row; over all moves where none is allowed."""
    free = allowed | ~allowed.any(-1, keepdims=True)
    return np.asarray(np.where(free, logits, -np.inf).argmax(-1), np.intp)


def food_moves(
    games: core.VectorEnv, rows: NDArray[np.int32], seed: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return two arrays `[n, 4]` for `rows` `[n, 2]` of (game, seat).

    The first says which moves lead onto food, the second which one `core.greedy_move` makes.
    """
    eats = np.zeros((len(rows), 4), np.bool_)
    seeks = np.zeros((len(rows), 4), np.bool_)
    states: dict[int, tuple[core.State, set[tuple[int, int]]]] = {}
    for index, (game, seat) in enumerate(rows.tolist()):
        if game not in states:
            state = games.state(game)
            states[game] = state, set(state.food())
        state, food = states[game]
        x, y = state.head(seat)
        eats[index] = [(x + dx, y + dy) in food for dx, dy in STEPS]
        seeks[index, core.greedy_move(state, seat, seed)] = bool(food)
    return eats, seeks


def infer(
    model: Net, obs: NDArray[np.uint8], batch: int = 256
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the model's (policy logits `[N, 4]`, value `[N]`) for `obs`, without gradients."""
    policy = np.empty((len(obs), 4), np.float32)
    value = np.empty(len(obs), np.float32)
    with torch.inference_mode():
        for start in range(0, len(obs), batch):
            rows = slice(start, start + batch)
            p, v = model(torch.from_numpy(obs[rows]))
            policy[rows], value[rows] = p.numpy(), v[:, 0].numpy()
    return policy, value


def play(
    scenario: Scenario,
    recipe: Recipe,
    seed: int,
    student: Net | None,
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[Examples, dict[str, float]]:
    """Play games and return their labelled positions with a few figures about the games.

    Positions of games that are still open at the end have only the search's opinion as value.

    Args:
        scenario: board, snakes and ruleset.
        recipe: how to play and label.
        seed: of the games and of every random choice.
        student: the learner, or None to leave its seats to the search.
        cancelled: asked every turn.

    Raises:
        Cancelled: `cancelled()` was true.
    """
    generator = np.random.default_rng([seed, 1])
    games = scenario.games(recipe.games, seed)
    shape = (recipe.games, scenario.snakes)
    taught = generator.random(shape) < (recipe.student_share if student is not None else 0.0)
    rate = generator.random(shape) * 2 * recipe.explore
    record = _Record(shape)
    for _ in range(recipe.turns):
        if cancelled():
            raise Cancelled
        rows = np.argwhere(games.alive).astype(np.int32)
        at = rows[:, 0], rows[:, 1]
        obs = games.encode(recipe.encoder, rows)
        scores = games.search(rows, max_depth=scenario.depth)
        allowed = games.masks[at]
        eats, seeks = food_moves(games, rows, seed)
        judged = with_bonus(scores, eats, recipe.eat_bonus)
        judged = with_bonus(judged, seeks, recipe.seek_bonus)
        chosen = judged.argmax(1)
        own = taught[at]
        if student is not None and own.any():
            chosen[own] = best_allowed(infer(student, obs[own])[0], allowed[own])
        noisy = generator.random(len(rows)) < rate[at]
        chosen = np.where(noisy, random_allowed(allowed, generator), chosen)
        kept = losing(scores).any(1) | (generator.random(len(rows)) < recipe.quiet_share)
        target = soft_targets(judged[kept], recipe.temperature)
        record.add(rows[kept], obs[kept], target, scores[kept], recipe)
        moves = np.zeros(shape, np.int8)
        moves[at] = chosen
        games.step(moves)
        record.close(games.results)
    return record.examples(recipe), record.figures(recipe.turns)


class _Record:
    """Positions so far, and which of them still wait for their game's outcome."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.obs: list[NDArray[np.uint8]] = []
        self.policy: list[NDArray[np.float32]] = []
        self.opinion: list[NDArray[np.float32]] = []
        self.outcomes: dict[int, int] = {}
        self.open: dict[tuple[int, int], list[int]] = {}
        self.shape = shape
        self.total = 0
        self.results = {1: 0, -1: 0, 2: 0}

    def add(
        self,
        rows: NDArray[np.int32],
        obs: NDArray[np.uint8],
        policy: NDArray[np.float32],
        scores: NDArray[np.float32],
        recipe: Recipe,
    ) -> None:
        self.obs.append(obs)
        self.policy.append(policy)
        self.opinion.append(search_values(scores, recipe.value_scale))
        for index, (game, seat) in enumerate(rows.tolist(), self.total):
            self.open.setdefault((game, seat), []).append(index)
        self.total += len(rows)

    def close(self, outcome: NDArray[np.int8]) -> None:
        for game, seat in np.argwhere(outcome).tolist():
            result = int(outcome[game, seat])
            self.results[result] += 1
            for index in self.open.pop((game, seat), ()):
                self.outcomes[index] = 0 if result == 2 else result

    def examples(self, recipe: Recipe) -> Examples:
        value = np.concatenate(self.opinion)
        known = np.fromiter(self.outcomes, np.intp, len(self.outcomes))
        results = np.fromiter(self.outcomes.values(), np.float32, len(self.outcomes))
        share = np.float32(recipe.outcome_weight)
        value[known] = share * results + (1 - share) * value[known]
        return Examples(np.concatenate(self.obs), np.concatenate(self.policy), value)

    def figures(self, turns: int) -> dict[str, float]:
        seats = sum(self.results.values())
        finished = max(seats / self.shape[1], 1)
        return {
            "games_finished": seats / self.shape[1],
            "turns_per_game": self.shape[0] * turns / finished,
            "draw_share": self.results[2] / max(seats, 1),
            "positions": float(self.total),
        }
