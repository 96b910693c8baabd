"""A model as a player: masked by safe moves, and never stopped by odd numbers."""

from typing import Any

import numpy as np
import pytest

from snakekit import core
from snakekit.runtime.backends.random_play import RandomBackend, random_card
from snakekit.runtime.policy import Policy


class Fixed(RandomBackend):
    def __init__(self, *logits: float) -> None:
        self.logits = logits

    def infer(self, batch: Any) -> Any:
        count = len(batch)
        return np.tile(np.float32(self.logits), (count, 1)), np.zeros(count, np.float32)


def coiled() -> core.State:
    """A board where up is legal and certain death (the own body), left and right are safe."""
    body = [(5, 5), (5, 4), (4, 4), (4, 3), (3, 3), (3, 6), (4, 6), (5, 6), (6, 6)]
    return core.State(11, 11, [core.Snake("a", 90, body), core.Snake("b", 90, [(9, 9)])])


def best(*logits: float) -> int:
    return Policy(Fixed(*logits), random_card()).best(coiled(), 0)


def test_the_best_safe_move_is_played() -> None:
    state = coiled()
    assert state.legal_mask(0) & 1
    assert not state.safe_mask(0) & 1
    assert best(9, 8, 1, 2) == 3
    assert best(9, 8, 2, 1) == 2


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
def test_odd_numbers_give_the_reflex_move(odd: float) -> None:
    reflex = core.reflex_move(coiled(), 0)
    other = 5 - reflex
    logits = [0.0] * 4
    logits[other], logits[0] = 5.0, odd
    assert best(*logits) == reflex
    assert best(0, 0, *[5.0 if m == other else 0.0 for m in (2, 3)]) == other


def test_evaluate_gives_one_row_per_seat() -> None:
    logits, values = Policy.load(backend="random").evaluate(coiled(), [1, 0, 1])
    assert (logits.shape, values.shape) == ((3, 4), (3,))
    assert logits[0].tolist() == logits[2].tolist() != logits[1].tolist()
