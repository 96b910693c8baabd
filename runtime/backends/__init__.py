"""Inference backends behind one small interface; ONNX Runtime is imported only when asked for."""

from pathlib import Path

from snakekit.runtime.backends.base import Backend, BackendError, BackendInfo
from snakekit.runtime.contract import CardError, ModelCard

__all__ = ["BACKENDS", "Backend", "BackendError", "BackendInfo", "load_backend"]

BACKENDS = ("cpu", "cuda", "random")


def load_backend(
    kind: str, model: Path | None = None, *, threads: int = 1
) -> tuple[Backend, ModelCard]:
    """Open a model on one backend and check that the model fits its card and this program.

    Args:
        kind: one of `BACKENDS`. `random` needs no model and no ONNX Runtime.
        model: an ONNX file made by `snakekit export`; None takes the shipped model.
        threads: intra-op threads of one inference.

    Raises:
        BackendError: not installed, installed twice, no such provider, no such file, or a model
            that does not fit; one sentence with the fix.
    """
    if kind == "random":
        from snakekit.runtime.backends.random_play import RandomBackend, random_card

        return RandomBackend(), random_card()
    if kind not in BACKENDS:
        raise BackendError(f"backend: expected one of {', '.join(BACKENDS)}, found {kind!r}")
    from snakekit.runtime.backends import ort
    from snakekit.runtime.models import check_card, find_model

    ort.check_distribution(kind)
    path = find_model(model)
    try:
        backend, card = ort.open_model(path, kind, threads)
        check_card(card, origin=path.name)
    except CardError as error:
        raise BackendError(str(error)) from None
    return backend, card
