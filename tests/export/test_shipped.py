"""The models in the repository: they fit this build, and play."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from snakekit import core
from snakekit.export.onnxfile import describe
from snakekit.export.parity import gate_of
from snakekit.export.samples import Truth, in_batches, unpack
from snakekit.export.session import Session
from snakekit.runtime.contract import load_card
from snakekit.trainer.evaluate import Score, measure, measure_player
from snakekit.trainer.generate import best_allowed
from snakekit.trainer.scenario import parse

MODELS = Path(__file__).parents[2] / "models"
STANDARD = MODELS / "standard.onnx"
DUEL = MODELS / "duel.onnx"


def play(scenario: str, opponent: str, games: int) -> Score:
    session = Session(STANDARD.read_bytes())

    def policy(obs: object) -> object:
        return in_batches(session, obs, 256)[0]

    return measure(policy, 2, parse(scenario), opponent, games=games, seed=11)


def test_its_card_fits_this_build() -> None:
    found = describe(STANDARD)
    card = found.card
    assert load_card((MODELS / "standard.json").read_bytes(), origin="standard.json") == card
    assert card.planes == core.PLANES[card.encoder]
    assert found.bytes <= 4_000_000
    assert max(card.parity[k] for k in ("policy_max_abs", "value_max_abs")) < 1e-4


def test_every_precision_is_of_the_same_weights() -> None:
    card = describe(STANDARD).card
    for path in MODELS.glob("standard*.onnx"):
        other = describe(path).card
        fix = f"snakekit export models/standard.onnx --precision {other.precision} --out models"
        assert other.weights_sha256 == card.weights_sha256, f"{path.name} is stale; run: {fix}"
    unpack(MODELS / "standard.parity.npz", card.weights_sha256)
    # Full 8-bit weights would saturate on a CPU without VNNI.
    assert "7-bit weights" in (describe(MODELS / "standard.int8.onnx").card.calibration or "")


def test_they_pass_their_gates_on_this_machine() -> None:
    truth = unpack(MODELS / "standard.parity.npz", describe(STANDARD).card.weights_sha256)
    few = Truth(
        tuple(
            dataclasses.replace(s, obs=s.obs[:96], allowed=s.allowed[:96]) for s in truth.samples
        ),
        tuple((policy[:96], value[:96]) for policy, value in truth.answers),
    )
    for path in MODELS.glob("standard*.onnx"):
        found = gate_of(describe(path).card.precision, few, Session(path.read_bytes()), most=96)
        assert found.passed, f"{path.name}: {found.text()}"


def test_the_duellist_fits_this_build() -> None:
    found = describe(DUEL)
    assert load_card((MODELS / "duel.json").read_bytes(), origin="duel.json") == found.card
    assert found.card.planes == core.all_seat_planes(2)
    assert found.bytes <= 200_000


def test_the_duellist_beats_the_food_seeker_also_by_its_bare_policy() -> None:
    session = Session(DUEL.read_bytes())

    def play_policy(games: core.VectorEnv, rows: np.ndarray, seed: int) -> np.ndarray:
        del seed
        states = [games.state(int(game)) for game in rows[:, 0]]
        slots = [s.living().index(seat) for s, seat in zip(states, rows[:, 1], strict=True)]
        logits = session(core.encode_all(states, slots=2))[0]
        allowed = games.masks[rows[:, 0], rows[:, 1]]
        return best_allowed(logits[np.arange(len(rows)), slots], allowed)

    score = measure_player(play_policy, parse("11x11x2"), "greedy", games=40, seed=11)
    assert score.points >= 0.8


def test_it_beats_random_moves() -> None:
    assert play("11x11x2", "random", 40).wins >= 32


@pytest.mark.slow
def test_it_beats_the_food_seeker() -> None:
    assert play("11x11x2", "random", 200).wins >= 180
    assert play("11x11x2", "greedy", 200).points > 0.55
    assert play("11x11x4", "greedy", 200).points > 0.4
