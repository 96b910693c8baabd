"""The eight symmetries of a board, applied to observations and policies.

Symmetry `s` in 0..7 swaps x and y if bit 2 is set, then mirrors x if bit 0 and y if bit 1 is
set. Observations have rows = y and columns = x; moves are 0 up (y + 1), 1 down, 2 left, 3 right.
"""

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", bound=np.generic)

COUNT = 8
MIRROR_X, MIRROR_Y, TRANSPOSE = 1, 2, 4


def _move_table() -> NDArray[np.intp]:
    table = np.empty((COUNT, 4), np.intp)
    steps = ((0, 1), (0, -1), (-1, 0), (1, 0))
    for symmetry in range(COUNT):
        for move, (dx, dy) in enumerate(steps):
            if symmetry & TRANSPOSE:
                dx, dy = dy, dx
            if symmetry & MIRROR_X:
                dx = -dx
            if symmetry & MIRROR_Y:
                dy = -dy
            table[symmetry, move] = steps.index((dx, dy))
    return table


MOVE_TABLE = _move_table()
"""`MOVE_TABLE[s, m]` is what move `m` becomes under symmetry `s`."""


def transform_point(
    point: tuple[int, int], size: tuple[int, int], symmetry: int
) -> tuple[int, int]:
    """Return where the cell `point` of a board of `size` (width, height) goes."""
    (x, y), (width, height) = point, size
    if symmetry & TRANSPOSE:
        x, y, width, height = y, x, height, width
    if symmetry & MIRROR_X:
        x = width - 1 - x
    if symmetry & MIRROR_Y:
        y = height - 1 - y
    return x, y


def transform_obs(obs: NDArray[Number], symmetry: int) -> NDArray[Number]:
    """Return a view of `obs` `[..., rows, cols]` under `symmetry`; rows and columns may swap.

    Only for observations that fill their tensor (no padding beside the board), or whose board is
    centred as in encoder version 1.
    """
    out = obs
    if symmetry & TRANSPOSE:
        out = out.swapaxes(-1, -2)
    if symmetry & MIRROR_X:
        out = out[..., ::-1]
    if symmetry & MIRROR_Y:
        out = out[..., ::-1, :]
    return out


def transform_policy(policy: NDArray[Any], symmetry: int) -> NDArray[Any]:
    """Return `policy` `[..., 4]` with each move's entry at the move's new place."""
    out = np.empty_like(policy)
    out[..., MOVE_TABLE[symmetry]] = policy
    return out


def shape_keeping(rows: int, cols: int) -> range:
    """Return the symmetries that keep a `rows` x `cols` observation's shape."""
    return range(COUNT if rows == cols else TRANSPOSE)


def augment(
    obs: NDArray[np.uint8], policy: NDArray[np.float32], first: int
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Return a batch with its examples spread over all symmetries that keep its shape.

    Example `i` gets symmetry `(first + i) % 8` (or `% 4` where rows and columns differ), so a
    shuffled batch needs one random number, `first`.

    Args:
        obs: `[N, planes, rows, cols]`.
        policy: `[N, 4]`.
        first: symmetry of the first example.
    """
    kept = shape_keeping(obs.shape[-2], obs.shape[-1])
    out_obs, out_policy = np.empty_like(obs), np.empty_like(policy)
    for offset in range(len(kept)):
        rows = slice(offset, None, len(kept))
        symmetry = (first + offset) % len(kept)
        out_obs[rows] = transform_obs(obs[rows], symmetry)
        out_policy[rows] = transform_policy(policy[rows], symmetry)
    return out_obs, out_policy
