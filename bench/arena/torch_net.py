"""Checkpoints of the trainer as players, through torch; imported only when one takes part."""

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from snakekit.bench.arena.entrants import Entrant
from snakekit.bench.arena.models import ModelSource
from snakekit.bench.players import PlayerError
from snakekit.runtime.backends.base import BackendInfo, Outputs
from snakekit.runtime.contract import CardError
from snakekit.runtime.models import check_card
from snakekit.trainer import checkpoint
from snakekit.trainer.model import Net


class TorchNet:
    """A checkpoint's net. Without gradients it is safe to share between threads."""

    pads = False

    def __init__(self, net: Net) -> None:
        self._net = net

    def infer(self, batch: NDArray[np.uint8]) -> Outputs:
        """See `Backend`."""
        with torch.inference_mode():
            policy, value = self._net(torch.from_numpy(batch))
        return policy.numpy(), (value[:, 0] if value.shape[1] == 1 else value).numpy()

    def describe(self) -> BackendInfo:
        """Return what runs."""
        return BackendInfo(requested="torch", actual="torch", precision="fp32")

    def close(self) -> None:
        """Nothing to free."""


def open_checkpoint(entrant: Entrant) -> ModelSource:
    """Read the checkpoint folder that `entrant` names, or the latest one in a run's folder.

    Raises:
        PlayerError: not a checkpoint of this version.
    """
    try:
        folder = checkpoint.latest(Path(entrant.model))
        found = checkpoint.load(folder)
        check_card(found.card, origin=str(folder))
        net = checkpoint.restore_model(found, origin=str(folder))
    except (checkpoint.CheckpointError, CardError) as error:
        raise PlayerError(f"player {entrant.spec}: {error}") from None
    # The arena has a thread for each core already, each with a batch of its own.
    torch.set_num_threads(1)
    opened = TorchNet(net.eval())
    return ModelSource(found.card.weights_sha256, found.card, lambda: opened)
