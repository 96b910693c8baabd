"""Boards turned inside a net so that the own snake faces up: one orientation instead of four.

Part of the graph, so that a net which wants it is trained, exported and served like any other.
Where the neck does not lie beside the head (all segments stacked at the start of a game, or a
wrapped board's edge in between) the board stays as it is.
"""

import torch
from torch import Tensor
from torch.nn import functional

from snakekit.trainer.symmetry import MIRROR_X, MIRROR_Y, MOVE_TABLE, TRANSPOSE

TURNS = (0, MIRROR_X | MIRROR_Y, TRANSPOSE | MIRROR_Y, TRANSPOSE | MIRROR_X)
"""The rotation, as a symmetry, that makes each of the moves up, down, left, right point up."""


def transformed(x: Tensor, symmetry: int) -> Tensor:
    """Return `x` `[..., rows, cols]` under `symmetry`: `symmetry.transform_obs` for tensors."""
    if symmetry & TRANSPOSE:
        x = x.transpose(-1, -2)
    mirrored = [axis for bit, axis in ((MIRROR_X, -1), (MIRROR_Y, -2)) if symmetry & bit]
    return x.flip(mirrored) if mirrored else x


def headings(body: Tensor, head: Tensor) -> Tensor:
    """Return the heading as one-hot float32 `[N, 4]` in the order up, down, left, right.

    Args:
        body: float32 `[N, rows, cols]`, number of each own segment counted from the tail.
        head: float32, 1 on the own head.
    """
    length = (body * head).sum((1, 2), keepdim=True)
    neck = ((body == length - 1) & (body > 0)).to(body.dtype)
    moved = torch.stack(
        [
            (neck[:, :-1] * head[:, 1:]).sum((1, 2)),
            (neck[:, 1:] * head[:, :-1]).sum((1, 2)),
            (neck[:, :, 1:] * head[:, :, :-1]).sum((1, 2)),
            (neck[:, :, :-1] * head[:, :, 1:]).sum((1, 2)),
        ],
        1,
    )
    still = 1 - moved.sum(1, keepdim=True)
    return torch.cat([moved[:, :1] + still, moved[:, 1:]], 1)


def face_up(obs: Tensor, heading: Tensor) -> Tensor:
    """Return `obs` `[N, planes, rows, cols]`, padded to a square and turned by its heading."""
    rows, cols = obs.shape[-2], obs.shape[-1]
    side = torch.sym_max(rows, cols)  # type: ignore[no-untyped-call]
    square = functional.pad(obs, (0, side - cols, 0, side - rows))
    out = square
    for move in (1, 2, 3):
        here = heading[:, move].view(-1, 1, 1, 1) > 0
        out = torch.where(here, transformed(square, TURNS[move]), out)
    return out


def turn_back(logits: Tensor, heading: Tensor) -> Tensor:
    """Return logits `[N, 4]` of the board as it was from those of the turned one."""
    parts = [
        heading[:, move : move + 1] * torch.stack([logits[:, m] for m in MOVE_TABLE[turn]], 1)
        for move, turn in enumerate(TURNS)
    ]
    return parts[0] + parts[1] + parts[2] + parts[3]
