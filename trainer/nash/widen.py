"""A net for more snakes begun with the weights of one for fewer.

All slots share the readout, so only what reads the planes differs: the weights of a new slot's
planes are those of an old slot. Empty slots have empty planes and add nothing, so on boards of the
old size the new net answers what the old one does.
"""

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from snakekit import core
from snakekit.trainer.checkpoint import CheckpointError


def plane_sources(old: int, new: int) -> NDArray[np.intp]:
    """Return for each plane of observation v3 with `new` slots one with `old` that is alike."""
    common, block = core.ALL_SEAT_COMMON, core.ALL_SEAT_BLOCK
    slots = np.arange(new) % old
    blocks = common + slots[:, None] * block + np.arange(block)
    return np.concatenate([np.arange(common), blocks.ravel()]).astype(np.intp)


def widened(
    weights: Mapping[str, NDArray[np.float32]],
    wanted: Mapping[str, Tensor],
    old: int,
    new: int,
    *,
    origin: str = "start",
) -> dict[str, Tensor]:
    """Return weights for `new` slots made of those for `old` slots.

    Args:
        weights: of the old net.
        wanted: the new net's state, for the shapes.
        old: slots of the old net.
        new: slots of the new net, more.
        origin: names the old net in errors.

    Raises:
        CheckpointError: the nets differ in more than the slots.
    """
    sources = plane_sources(old, new)
    out: dict[str, Tensor] = {}
    for name, value in wanted.items():
        if name not in weights:
            raise CheckpointError(f"{origin}: tensor {name!r} is missing from the weights")
        found = torch.from_numpy(np.array(weights[name]))
        if found.shape != value.shape and found.dim() > 1:
            planes = core.all_seat_planes(old)
            found = found[:, sources] if found.shape[1] == planes else found
        if found.shape != value.shape:
            shapes = f"{tuple(found.shape)}, expected {tuple(value.shape)}"
            raise CheckpointError(f"{origin}: tensor {name!r} has shape {shapes}")
        out[name] = found
    if not torch.equal(out["scale"], wanted["scale"]):
        raise CheckpointError(f"{origin}: trained with another plane scale than the encoder's")
    return out
