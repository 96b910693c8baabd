"""What tests of the search share."""

from collections.abc import Iterator

from core_boards import snake

from snakekit.core import Searcher, State


def fixed(state: State, seat: int, depth: int, **rest: object):
    return Searcher(1).search(state, seat, budget_us=0, max_depth=depth, **rest)


BY_SCORE = {"mixing": "off", "max_n": False}
"""The best move follows from labels and scores alone."""


PLAIN = {"far_pruning": False, "selective": False, **BY_SCORE}
"""Also nothing is left out: what is decided within the depth is found."""


def seats(states: Iterator[State]) -> Iterator[tuple[State, int]]:
    """One seat of each board, in turn, so that all places in the list are seen."""
    for i, state in enumerate(states):
        living = state.living()
        yield state, living[i % len(living)]


# What brute force can walk through in reasonable time.
DEPTH = {2: 4, 3: 3, 4: 2}


def contested() -> State:
    """Either exit can be met by the longer snake, though not both at once."""
    longer = [(1, 1), (2, 1), (3, 1), (4, 1), (5, 1)]
    return State(7, 7, [snake("a", [(0, 0)] * 3), snake("b", longer)])


def open_board(snakes: int = 2) -> State:
    return State.new_game(11, 11, list("abcdefgh"[:snakes]), 5)
