"""The interface that every inference backend offers."""

from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

Outputs = tuple[NDArray[np.float32], NDArray[np.float32]]


class BackendError(RuntimeError):
    """A backend or model that cannot be used; the message is one sentence with the fix."""


class BackendInfo(msgspec.Struct, frozen=True):
    """What was asked for and what runs."""

    requested: str
    actual: str
    precision: str
    device: str = "CPU"
    """What it runs on, such as the name of the GPU or the address of a server."""


class Backend(Protocol):
    """Runs one model. `infer` is called from one thread at a time."""

    pads: bool
    """Whether a batch should be padded to a warmed-up size (shapes are compiled or tuned)."""

    def infer(self, batch: NDArray[np.uint8]) -> Outputs:
        """Return policy logits `[N, 4]` and values `[N]` (-1..1) for `[N, planes, rows, cols]`.

        A model for all seats gives `[N, slots, 4]` and logits of outcomes `[N, slots + 1]`.
        """
        ...

    def describe(self) -> BackendInfo:
        """Return what runs."""
        ...

    def close(self) -> None:
        """Free the model; `infer` must not be called afterwards."""
        ...
