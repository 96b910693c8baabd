"""The networks of an arena: each model opened once a thread, asked in batches of one size."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from snakekit.bench.arena.entrants import Entrant
from snakekit.bench.players import PlayerError
from snakekit.core import State

CHUNK = 8
"""Observations in one inference, always. Kernels are chosen by the size of a batch and differ in
the last bits, so only a fixed size makes a move independent of which games run side by side."""

Logits = NDArray[np.float32]


class Net(Protocol):
    """A model opened for one thread."""

    encoder: int

    def logits(self, batch: NDArray[np.uint8]) -> Logits:
        """Return policy logits `[N, 4]` of observations `[N, planes, rows, cols]`."""


class ModelSource:
    """One distinct model: `fingerprint` tells whether it is still the same, `open` gives a net."""

    def __init__(self, fingerprint: str, encoder: int, open_net: Callable[[], Net]) -> None:
        self.fingerprint = fingerprint
        self.encoder = encoder
        self.open = open_net


class _OnnxNet:
    def __init__(self, path: Path, backend: str) -> None:
        from snakekit.runtime.policy import Policy

        self._policy = Policy.load(path, backend=backend)
        self.encoder = self._policy.card.encoder
        self.card = self._policy.card

    def logits(self, batch: NDArray[np.uint8]) -> Logits:
        return self._policy.backend.infer(batch)[0]


def _onnx_source(entrant: Entrant, backend: str) -> ModelSource:
    from snakekit.runtime.backends import BackendError
    from snakekit.runtime.models import find_model

    try:
        path = find_model(entrant.model or None)
    except BackendError:
        raise PlayerError(
            f"player {entrant.spec}: there is no such model file or checkpoint folder"
        ) from None
    try:
        card = _OnnxNet(path, backend).card
    except BackendError as error:
        raise PlayerError(f"player {entrant.spec}: {error}") from None
    fingerprint = f"{card.weights_sha256} {card.precision}"
    return ModelSource(fingerprint, card.encoder, lambda: _OnnxNet(path, backend))


def _checkpoint_source(entrant: Entrant) -> ModelSource:
    try:
        from snakekit.bench.arena.torch_net import open_checkpoint
    except ImportError as error:
        raise PlayerError(
            f"player {entrant.spec}: a checkpoint needs the package {error.name}; "
            "run: pip install 'snakekit[train]'"
        ) from None
    return open_checkpoint(entrant)


def open_source(entrant: Entrant, backend: str = "cpu") -> ModelSource:
    """Open the model of `entrant` once, to see that it can be played.

    Raises:
        PlayerError: no such file, or not a model of this version; one sentence.
    """
    if entrant.model and Path(entrant.model).is_dir():
        return _checkpoint_source(entrant)
    return _onnx_source(entrant, backend)


class Batcher:
    """Asks one net for any number of observations; belongs to one thread."""

    def __init__(self, source: ModelSource) -> None:
        self._net = source.open()
        self.encoder = source.encoder
        self._batch: NDArray[np.uint8] | None = None

    def logits(self, asks: Sequence[tuple[State, int]]) -> Logits:
        """Return logits `[len(asks), 4]` for pairs of board and living seat."""
        shape = asks[0][0].observation_shape(self.encoder)
        if self._batch is None or self._batch.shape[1:] != shape:
            self._batch = np.zeros((CHUNK, *shape), np.uint8)
        out = np.empty((len(asks), 4), np.float32)
        for start in range(0, len(asks), CHUNK):
            part = asks[start : start + CHUNK]
            for row, (state, seat) in enumerate(part):
                state.encode_into(self.encoder, seat, self._batch[row])
            out[start : start + len(part)] = self._net.logits(self._batch)[: len(part)]
        return out
