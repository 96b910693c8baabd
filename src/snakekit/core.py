"""Rules, observations, search and batches of games: the C++ extension under its public name."""

from snakekit._core import *  # noqa: F403
