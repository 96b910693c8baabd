"""Generalized advantage estimation (Schulman et al., arXiv 1506.02438) over many seats at once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Course:
    """What happened in some turns of many seats; arrays are `[turns, seats]`.

    A seat plays games one after the other. It is live where the learner decided its move: not
    while it is dead and its game goes on, and not where an opponent has it.
    """

    live: Flags
    rewards: Floats
    """For the move of this turn."""
    values: Floats
    """Of the position that the move was chosen in."""
    terminated: Flags
    """The move decided the seat's result: nothing follows."""
    truncated: Flags
    """The game was cut off after the move: more would have followed."""
    final_values: Floats
    """Where truncated, the value of the position that was cut off."""
    last_values: Floats
    """`[seats]`, the value of the position after the last turn; only read where a game goes on."""


def estimate(course: Course, gamma: float, lam: float) -> Floats:
    """Return the advantage of every live decision, 0 elsewhere, `[turns, seats]`.

    delta = r + gamma * next - v, where next is the following value, 0 after a termination and
    `final_values` after a truncation; advantage = delta + gamma * lam * following advantage,
    which neither kind of end lets through.
    """
    turns, seats = course.rewards.shape
    advantage = np.zeros((turns, seats), np.float32)
    following = np.zeros(seats, np.float32)
    after = course.last_values
    for turn in range(turns - 1, -1, -1):
        ended = course.terminated[turn] | course.truncated[turn]
        value = np.where(ended, 0.0, after)
        value = np.where(course.truncated[turn], course.final_values[turn], value)
        delta = course.rewards[turn] + gamma * value - course.values[turn]
        following = delta + gamma * lam * np.where(ended, 0.0, following)
        following = np.where(course.live[turn], following, 0.0).astype(np.float32)
        advantage[turn] = following
        after = course.values[turn]
    return advantage
