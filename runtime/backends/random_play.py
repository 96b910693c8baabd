"""A backend without a model: numbers drawn from a hash of the observation."""

import zlib

import numpy as np
from numpy.typing import NDArray

from snakekit import core
from snakekit.runtime.backends.base import BackendInfo, Outputs
from snakekit.runtime.contract import ModelCard


class RandomBackend:
    """Pseudo-random logits and values; the same observation always gives the same numbers."""

    pads = False

    def infer(self, batch: NDArray[np.uint8]) -> Outputs:
        """Return logits `[N, 4]` and values `[N]`, each row a function of its own input only."""
        policy = np.empty((len(batch), 4), np.float32)
        value = np.empty(len(batch), np.float32)
        for index, row in enumerate(batch):
            bits = zlib.crc32(row.tobytes())
            for move in range(4):
                policy[index, move] = ((bits >> (8 * move)) & 255) / 64.0 - 2.0
            value[index] = (bits & 0xFFFF) / 32767.5 - 1.0
        return policy, value

    def describe(self) -> BackendInfo:
        """Return what runs."""
        return BackendInfo(requested="random", actual="random", precision="none")

    def close(self) -> None:
        """Nothing to free."""


def random_card() -> ModelCard:
    """Return the card of the model that is none: newest encoder, no parameters."""
    encoder = max(core.PLANES)
    shape = core.State.new_game(11, 11, ["a"], 0).observation_shape(encoder)
    return ModelCard(
        name="random",
        net="none",
        net_options={},
        encoder=encoder,
        planes=core.PLANES[encoder],
        view=(shape[1], shape[2]) if encoder == 1 else None,
        boards=[(11, 11)],
        rulesets=["standard"],
        snakes=[1, 2, 4],
        method="none",
        step=0,
        parameters=0,
        weights_sha256="",
        source_commit="unknown",
        precision="none",
    )
