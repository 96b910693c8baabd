"""Nets that turn every board so that the own snake faces up."""

import numpy as np
import pytest
import torch

from snakekit import core
from snakekit.trainer import symmetry
from snakekit.trainer.canonical import TURNS, face_up, headings, transformed, turn_back
from snakekit.trainer.model import Net, build

ROTATIONS = (0, *TURNS[1:])


def net(kind: str) -> Net:
    torch.manual_seed(0)
    options = {"channels": 8, "blocks": 1, "hidden": 16} if kind == "compact" else {}
    found = build(kind, {**options, "canonical": 1}).eval()
    for parameter in found.parameters():
        if parameter.dim() == 4:
            torch.nn.init.normal_(parameter, std=0.2)
    return found


def played(encoder: int, width: int = 9, height: int = 9) -> tuple[np.ndarray, np.ndarray]:
    """Return observations of a few turns of games, and the moves that led to them."""
    env = core.VectorEnv([core.Scenario(width, height, 2)], count=8, seed=1, encoder=encoder)
    random = np.random.default_rng(0)
    for _ in range(6):
        moves = np.where(env.masks, random.random(env.masks.shape), -1).argmax(2).astype(np.int8)
        env.step(moves)
    kept = env.alive & (env.turns >= 1)[:, None]
    return env.obs[kept], moves[kept]


@pytest.mark.parametrize(("kind", "encoder"), [("article", 1), ("compact", 2)])
def test_headings_are_the_last_moves(kind: str, encoder: int) -> None:
    obs, moves = played(encoder)
    found = headings(*net(kind).own_snake(torch.from_numpy(obs).float()))
    assert found.sum(1).tolist() == [1] * len(obs)
    assert found.argmax(1).tolist() == moves.tolist()
    assert len(set(moves.tolist())) == 4


def test_at_the_start_the_board_stays() -> None:
    env = core.VectorEnv([core.Scenario(9, 9, 2)], count=4, seed=1, encoder=2)
    obs = torch.from_numpy(env.obs.reshape(-1, 22, 9, 9))
    found = headings(*net("compact").own_snake(obs.float()))
    assert found.argmax(1).tolist() == [0] * 8
    assert torch.equal(face_up(obs, found), obs)


def test_turned_boards_face_up_and_policies_turn_back() -> None:
    obs, moves = played(2)
    shown = torch.from_numpy(obs)
    found = net("compact")
    heading = headings(*found.own_snake(shown.float()))
    up = face_up(shown, heading)
    assert headings(*found.own_snake(up.float())).argmax(1).tolist() == [0] * len(obs)
    for row, move in enumerate(moves.tolist()):
        np.testing.assert_array_equal(up[row], symmetry.transform_obs(obs[row], TURNS[move]))
    logits = torch.eye(4)[:1].repeat(len(obs), 1)
    assert turn_back(logits, heading).argmax(1).tolist() == moves.tolist()


@pytest.mark.parametrize(("kind", "encoder"), [("article", 1), ("compact", 2)])
def test_a_rotation_of_the_board_rotates_the_answer(kind: str, encoder: int) -> None:
    obs, _ = played(encoder)
    found = net(kind)
    with torch.no_grad():
        policy, value = found(torch.from_numpy(obs))
        for s in ROTATIONS:
            turned = symmetry.transform_obs(obs, s).copy()
            other, same = found(torch.from_numpy(turned))
            expected = symmetry.transform_policy(policy.numpy(), s)
            np.testing.assert_allclose(other.numpy(), expected, atol=1e-5)
            np.testing.assert_allclose(same.numpy(), value.numpy(), atol=1e-5)
    assert policy.std(1).min() > 1e-4


def test_boards_that_are_not_square_are_filled_up() -> None:
    obs, _ = played(2, 9, 7)
    with torch.no_grad():
        found = net("compact")(torch.from_numpy(obs))
        padded = np.zeros((len(obs), 22, 12, 12), np.uint8)
        padded[:, :, :7, :9] = obs
        other = net("compact")(torch.from_numpy(padded))
    for a, b in zip(found, other, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=0)


def test_tensors_are_transformed_as_arrays_are() -> None:
    obs = np.random.default_rng(0).integers(0, 9, (2, 3, 5, 7), dtype=np.uint8)
    for s in range(symmetry.COUNT):
        found = transformed(torch.from_numpy(obs), s)
        np.testing.assert_array_equal(found.numpy(), symmetry.transform_obs(obs, s))


def test_the_switch_is_checked() -> None:
    with pytest.raises(ValueError, match="canonical must be 0 or 1"):
        build("compact", {"canonical": 2})
