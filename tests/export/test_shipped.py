"""The models in the repository: they fit this build, and play."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from snakekit import core
from snakekit.export.onnxfile import checkpoint_of, describe
from snakekit.export.parity import gate_of
from snakekit.export.samples import Truth, in_batches, unpack
from snakekit.export.session import Session
from snakekit.runtime.contract import load_card
from snakekit.trainer.contest import Chooser
from snakekit.trainer.evaluate import Score, measure, measure_player
from snakekit.trainer.generate import best_allowed
from snakekit.trainer.scenario import parse

MODELS = Path(__file__).parents[2] / "models"
COMPACT = MODELS / "compact.onnx"
SLOTS = {"standard": 8, "duel": 2}
"""Models for all seats."""
NAMES = ("compact", *SLOTS)


def play(scenario: str, opponent: str, games: int) -> Score:
    session = Session(COMPACT.read_bytes())

    def policy(obs: object) -> object:
        return in_batches(session, obs, 256)[0]

    return measure(policy, 2, parse(scenario), opponent, games=games, seed=11)


def test_its_card_fits_this_build() -> None:
    found = describe(COMPACT)
    card = found.card
    assert load_card((MODELS / "compact.json").read_bytes(), origin="compact.json") == card
    assert card.planes == core.PLANES[card.encoder]
    assert found.bytes <= 4_000_000
    assert max(card.parity[k] for k in ("policy_max_abs", "value_max_abs")) < 1e-4


def test_every_precision_is_of_the_same_weights() -> None:
    card = describe(COMPACT).card
    for path in MODELS.glob("compact*.onnx"):
        other = describe(path).card
        fix = f"snakekit export models/compact.onnx --precision {other.precision} --out models"
        assert other.weights_sha256 == card.weights_sha256, f"{path.name} is stale; run: {fix}"
    unpack(MODELS / "compact.parity.npz", card.weights_sha256)
    # Full 8-bit weights would saturate on a CPU without VNNI.
    assert "7-bit weights" in (describe(MODELS / "compact.int8.onnx").card.calibration or "")


def test_they_pass_their_gates_on_this_machine() -> None:
    for name in NAMES:
        truth = unpack(
            MODELS / f"{name}.parity.npz", describe(MODELS / f"{name}.onnx").card.weights_sha256
        )
        few = Truth(
            tuple(
                dataclasses.replace(s, obs=s.obs[:96], allowed=s.allowed[:96])
                for s in truth.samples
            ),
            tuple((policy[:96], value[:96]) for policy, value in truth.answers),
        )
        for path in MODELS.glob(f"{name}*.onnx"):
            found = gate_of(describe(path).card.precision, few, Session(path.read_bytes()), most=96)
            assert found.passed, f"{path.name}: {found.text()}"


@pytest.mark.parametrize("name", NAMES)
def test_it_can_be_exported_again(name: str) -> None:
    path = MODELS / f"{name}.onnx"
    assert checkpoint_of(path).card.weights_sha256 == describe(path).card.weights_sha256


def all_seats(name: str) -> Chooser:
    """The bare policy of a model for all seats."""
    session, count = Session((MODELS / f"{name}.onnx").read_bytes()), SLOTS[name]

    def policy(games: core.VectorEnv, rows: np.ndarray, seed: int) -> np.ndarray:
        del seed
        states = [games.state(int(game)) for game in rows[:, 0]]
        slots = [s.living().index(seat) for s, seat in zip(states, rows[:, 1], strict=True)]
        logits = session(core.encode_all(states, slots=count))[0]
        allowed = games.masks[rows[:, 0], rows[:, 1]]
        return best_allowed(logits[np.arange(len(rows)), slots], allowed)

    return policy


@pytest.mark.parametrize("name", SLOTS)
def test_models_for_all_seats_fit_this_build(name: str) -> None:
    found = describe(MODELS / f"{name}.onnx")
    text = (MODELS / f"{name}.json").read_bytes()
    assert load_card(text, origin=f"{name}.json") == found.card
    assert found.card.name == name
    assert found.card.planes == core.all_seat_planes(SLOTS[name])
    assert found.bytes <= 300_000
    unpack(MODELS / f"{name}.parity.npz", found.card.weights_sha256)


@pytest.mark.parametrize(
    ("name", "scenario", "games", "level"),
    [
        ("standard", "11x11x2", 40, 0.8),
        ("standard", "11x11x4", 32, 0.5),
        ("duel", "11x11x2", 40, 0.8),
    ],
)
def test_bare_policies_for_all_seats_beat_food_seekers(
    name: str, scenario: str, games: int, level: float
) -> None:
    score = measure_player(all_seats(name), parse(scenario), "greedy", games=games, seed=11)
    assert score.points >= level


def test_it_beats_random_moves() -> None:
    assert play("11x11x2", "random", 40).wins >= 32


@pytest.mark.slow
def test_it_beats_the_food_seeker() -> None:
    assert play("11x11x2", "random", 200).wins >= 180
    assert play("11x11x2", "greedy", 200).points > 0.55
    assert play("11x11x4", "greedy", 200).points > 0.4
