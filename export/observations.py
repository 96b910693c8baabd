"""Observations of played games, for parity gates and calibration.

The games are played by a shallow search with some random safe moves, so that they last and reach
what real games reach. Everything is a pure function of the seed.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from snakekit import core
from snakekit.export.samples import Sample
from snakekit.runtime.contract import ModelCard
from snakekit.trainer.generate import random_allowed
from snakekit.trainer.scenario import Scenario

GAMES = 16
RANDOM_SHARE = 0.15
MOST_SETS = 6

Seen = tuple[NDArray[np.uint8], NDArray[np.bool_]]
"""Observations and safe moves."""


def scenarios_of(card: ModelCard) -> list[Scenario]:
    """Return the kinds of games to try a model on: the boards and numbers of snakes it knows.

    Every number of snakes on the first board, then the other boards with the fewest snakes; at
    most `MOST_SETS` in all.
    """
    boards = sorted(card.boards, key=lambda size: (size != (11, 11), size))
    pairs = [(boards[0], snakes) for snakes in card.snakes]
    pairs += [(board, card.snakes[0]) for board in boards[1:]]
    ruleset = card.rulesets[0]
    return [Scenario(*board, snakes, ruleset) for board, snakes in pairs[:MOST_SETS]]


def collect(encoder: int, scenario: Scenario, count: int, seed: int) -> Sample:
    """Play games of `scenario` until `count` observations are there; every third turn is kept."""

    def look(games: core.VectorEnv, rows: NDArray[np.int32]) -> Seen:
        return games.encode(encoder, rows), games.masks[rows[:, 0], rows[:, 1]]

    return _collect(look, scenario, count, seed)


def collect_boards(slots: int, scenario: Scenario, count: int, seed: int) -> Sample:
    """The same for models that answer for all seats: each board once."""

    def look(games: core.VectorEnv, rows: NDArray[np.int32]) -> Seen:
        boards = core.encode_all([games.state(g) for g in range(GAMES)], slots=slots)
        # A slot is the place of a seat among those that live.
        slot = (games.alive.cumsum(1) - 1)[rows[:, 0], rows[:, 1]]
        allowed = np.zeros((GAMES, slots, len(core.MOVES)), np.bool_)
        allowed[rows[:, 0], slot] = games.masks[rows[:, 0], rows[:, 1]]
        return boards, allowed

    return _collect(look, scenario, count, seed)


def _collect(
    look: Callable[[core.VectorEnv, NDArray[np.int32]], Seen],
    scenario: Scenario,
    count: int,
    seed: int,
) -> Sample:
    generator = np.random.default_rng([seed, 4])
    games = scenario.games(GAMES, seed)
    obs: list[NDArray[np.uint8]] = []
    allowed: list[NDArray[np.bool_]] = []
    turn = 0
    while sum(map(len, allowed)) < count:
        rows = np.argwhere(games.alive).astype(np.int32)
        if turn % 3 == 0:
            seen = look(games, rows)
            obs.append(seen[0])
            allowed.append(seen[1])
        free = games.masks[rows[:, 0], rows[:, 1]]
        chosen = games.search(rows, max_depth=1).argmax(1)
        noisy = generator.random(len(rows)) < RANDOM_SHARE
        moves = np.zeros((GAMES, scenario.snakes), np.int8)
        moves[rows[:, 0], rows[:, 1]] = np.where(noisy, random_allowed(free, generator), chosen)
        games.step(moves)
        turn += 1
    order = generator.permutation(sum(map(len, allowed)))[:count]
    return Sample(str(scenario), np.concatenate(obs)[order], np.concatenate(allowed)[order])


def collect_all(card: ModelCard, count: int, seed: int) -> Sequence[Sample]:
    """Return at least `count` observations, spread evenly over the card's kinds of games."""
    scenarios = scenarios_of(card)
    each = -(-count // len(scenarios))
    if card.slots:
        return [collect_boards(card.slots, s, each, seed + i) for i, s in enumerate(scenarios)]
    return [collect(card.encoder, s, each, seed + i) for i, s in enumerate(scenarios)]
