import numpy as np
import pytest

from snakekit.trainer.targets import search_values, soft_targets, with_bonus

INF = float("inf")


def targets(*scores: float, temperature: float = 50.0) -> list[float]:
    row = soft_targets(np.array([scores], np.float32), temperature)[0]
    assert row.sum() == pytest.approx(1)
    return [round(float(p), 4) for p in row]


def test_evaluations_give_a_softmax() -> None:
    assert targets(100, 100, -INF, 50) == pytest.approx([0.4223, 0.4223, 0, 0.1554], abs=1e-3)


def test_losing_moves_are_left_out_while_another_remains() -> None:
    assert targets(-1500, -29_998, -INF, -29_999, temperature=1e6) == [1, 0, 0, 0]


def test_when_all_lose_the_later_loss_is_better() -> None:
    probabilities = targets(-29_999, -29_990, -INF, -29_995)
    assert probabilities[1] > 0.99
    assert probabilities[3] > probabilities[0] > 0


def test_wins_come_before_everything_and_sooner_ones_first() -> None:
    probabilities = targets(1900, 29_997, 29_995, -29_999, temperature=1e6)
    assert probabilities[0] == probabilities[3] == 0
    assert probabilities[1] == pytest.approx(0.8808, abs=1e-3)


def test_nothing_searched_gives_no_opinion_on_the_move() -> None:
    assert targets(-INF, -INF, -INF, -INF) == [0.25] * 4


def test_a_bonus_never_touches_decided_games() -> None:
    scores = np.array([[10, -29_990, -INF, 29_990]], np.float32)
    found = with_bonus(scores, np.ones((1, 4), bool), 300)
    assert found.tolist() == [[310, -29_990, -INF, 29_990]]


def test_values() -> None:
    scores = np.array(
        [[100, 700, -INF, 0], [29_990, 0, 0, 0], [-29_990, -INF, -29_999, -29_999], [-INF] * 4],
        np.float32,
    )
    assert search_values(scores, 700) == pytest.approx([np.tanh(1), 1, -1, -1])
