"""The model in the repository: fits this build, and plays."""

from pathlib import Path

import pytest

from snakekit import core
from snakekit.export.onnxfile import describe
from snakekit.export.session import Session
from snakekit.runtime.contract import load_card
from snakekit.trainer.evaluate import Score, measure
from snakekit.trainer.scenario import parse

MODELS = Path(__file__).parents[2] / "models"
STANDARD = MODELS / "standard.onnx"


def play(scenario: str, opponent: str, games: int) -> Score:
    session = Session(STANDARD.read_bytes())

    def policy(obs: object) -> object:
        return session.batched(obs, 256)[0]

    return measure(policy, 2, parse(scenario), opponent, games=games, seed=11)


def test_its_card_fits_this_build() -> None:
    found = describe(STANDARD)
    card = load_card(found.card, origin=STANDARD.name)
    assert load_card((MODELS / "standard.json").read_bytes(), origin="standard.json") == card
    assert card.planes == core.PLANES[card.encoder]
    assert found.bytes <= 4_000_000
    assert max(card.parity[k] for k in ("policy_max_abs", "value_max_abs")) < 1e-4


def test_it_beats_random_moves() -> None:
    assert play("11x11x2", "random", 40).wins >= 32


@pytest.mark.slow
def test_it_beats_the_food_seeker() -> None:
    assert play("11x11x2", "random", 200).wins >= 180
    assert play("11x11x2", "greedy", 200).points > 0.55
    assert play("11x11x4", "greedy", 200).points > 0.4
