"""The networks of an arena: each model opened once a thread, asked in batches of one size."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from snakekit.bench.arena.entrants import ALL_SEAT_KINDS, Entrant
from snakekit.bench.players import PlayerError
from snakekit.core import State
from snakekit.runtime.backends.base import Backend
from snakekit.runtime.contract import ModelCard
from snakekit.runtime.equilibrium import Equilibrium, Lookahead, own_logits

CHUNK = 8
"""Observations in one inference, always. Kernels are chosen by the size of a batch and differ in
the last bits, so only a fixed size makes a move independent of which games run side by side."""

Logits = NDArray[np.float32]


class ModelSource:
    """One distinct model: `fingerprint` tells whether it is still the same, `open` gives it."""

    def __init__(self, fingerprint: str, card: ModelCard, open_net: Callable[[], Backend]) -> None:
        self.fingerprint = fingerprint
        self.card = card
        self.open = open_net


def _onnx_source(entrant: Entrant, backend: str) -> ModelSource:
    from snakekit.runtime.backends import BackendError, load_backend
    from snakekit.runtime.models import find_model

    try:
        path = find_model(entrant.model or None)
    except BackendError:
        raise PlayerError(
            f"player {entrant.spec}: there is no such model file or checkpoint folder"
        ) from None
    try:
        card = load_backend(backend, path)[1]
    except BackendError as error:
        raise PlayerError(f"player {entrant.spec}: {error}") from None
    fingerprint = f"{card.weights_sha256} {card.precision}"
    return ModelSource(fingerprint, card, lambda: load_backend(backend, path)[0])


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
        source = _checkpoint_source(entrant)
    else:
        source = _onnx_source(entrant, backend)
    if entrant.kind in ALL_SEAT_KINDS and not source.card.slots:
        raise PlayerError(f"player {entrant.spec}: the model answers for one seat, not for all")
    return source


class Batcher:
    """Asks one net for any number of observations; belongs to one thread."""

    def __init__(self, source: ModelSource) -> None:
        self._net = source.open()
        self.encoder = source.card.encoder
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
            out[start : start + len(part)] = self._net.infer(self._batch)[0][: len(part)]
        return out


class AllSeats:
    """Asks a net that answers for all seats, board by board; belongs to one thread."""

    def __init__(self, source: ModelSource) -> None:
        self._net, self._card = source.open(), source.card
        self._solvers: dict[Lookahead, Equilibrium] = {}
        self._noise = random.Random(0)

    def logits(self, state: State, seat: int, look: Lookahead | None) -> list[float]:
        """Return the logarithms of a living seat's four probabilities.

        Args:
            state: the board.
            seat: the seat.
            look: what the equilibrium looks at; without it the net's own policy is asked.
        """
        key = look if look is not None else Lookahead()
        if key not in self._solvers:
            self._solvers[key] = Equilibrium(self._net, self._card, key)
        solver = self._solvers[key]
        solution = solver.bare(state) if look is None else solver.solve(state)
        return own_logits(solution, state, seat, 0, self._noise).logits


def asker(source: ModelSource) -> Batcher | AllSeats:
    """Open a model in the way that it is asked."""
    return AllSeats(source) if source.card.slots else Batcher(source)
