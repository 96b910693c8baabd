"""Inference backends behind one small interface; each runtime is imported only when asked for."""

from collections.abc import Callable
from pathlib import Path

from snakekit.runtime.backends.base import Backend, BackendError, BackendInfo
from snakekit.runtime.backends.options import BackendOptions
from snakekit.runtime.contract import CardError, ModelCard

__all__ = [
    "BACKENDS",
    "Backend",
    "BackendError",
    "BackendInfo",
    "BackendOptions",
    "check_installed",
    "load_backend",
]

BACKENDS = (
    "cpu",
    "cuda",
    "ort-tensorrt",
    "tensorrt",
    "tensorrt-rtx",
    "triton",
    "check",
    "random",
)
ORT = ("cpu", "cuda", "ort-tensorrt")
NATIVE = ("tensorrt", "tensorrt-rtx")


def load_backend(
    kind: str,
    model: Path | None = None,
    *,
    options: BackendOptions | None = None,
    on_compared: Callable[[int, int], None] | None = None,
) -> tuple[Backend, ModelCard]:
    """Open a model on one backend and check that the model fits its card and this program.

    Args:
        kind: one of `BACKENDS`. `random` needs no model; `triton` takes the name of a model that
            the server holds; `tensorrt` and `tensorrt-rtx` take an ONNX file, for which an engine
            is built and kept, or an engine.
        model: a file made by `snakekit export`; None takes the shipped model.
        options: threads, GPU, addresses.
        on_compared: with `check`, called after each batch; see `CheckBackend`.

    Raises:
        BackendError: not installed, installed twice, no such provider, no such file, or a model
            that does not fit; one sentence with the fix.
    """
    options = options if options is not None else BackendOptions()
    if kind not in BACKENDS:
        raise BackendError(f"backend: expected one of {', '.join(BACKENDS)}, found {kind!r}")
    if kind == "check":
        return _checked(model, options, on_compared)
    check_installed(kind, options)
    try:
        backend, card, origin = _open(kind, model, options)
    except CardError as error:
        raise BackendError(str(error)) from None
    from snakekit.runtime.models import check_card

    try:
        check_card(card, origin=origin)
    except CardError as error:
        backend.close()
        raise BackendError(str(error)) from None
    return backend, card


def check_installed(kind: str, options: BackendOptions | None = None) -> None:
    """Refuse a backend whose packages are missing or in each other's way, without loading them.

    Raises:
        BackendError: with the command that repairs the installation.
    """
    options = options if options is not None else BackendOptions()
    if kind == "check":
        for part in options.check_backends:
            check_installed(part, options)
    elif kind in ORT:
        from snakekit.runtime.backends.ort import check_distribution

        check_distribution(kind)
    elif kind in NATIVE:
        from snakekit.runtime.backends.trt.package import check_package

        check_package(kind)
    elif kind == "triton":
        from snakekit.runtime.backends.triton import check_client

        check_client()


def _open(kind: str, model: Path | None, options: BackendOptions) -> tuple[Backend, ModelCard, str]:
    """Return backend, card, and what to call the model in errors."""
    if kind == "random":
        from snakekit.runtime.backends.random_play import RandomBackend, random_card

        return RandomBackend(), random_card(), "random"
    if kind == "triton":
        from snakekit.runtime.backends.triton import open_remote

        name = model.name if model is not None else None
        backend, card = open_remote(name, options)
        return backend, card, f"Triton's model {card.name}"
    from snakekit.runtime.models import check_card, find_model

    path = find_model(model)
    if kind in NATIVE:
        from snakekit.runtime.backends.trt.runner import open_engine

        engine, card = open_engine(path, kind, options)
        return engine, card, path.name
    from snakekit.runtime.backends.onnxcard import read_card
    from snakekit.runtime.backends.ort import open_model

    card = read_card(path)
    check_card(card, origin=path.name)
    return open_model(path, kind, card, options), card, path.name


def _checked(
    model: Path | None, options: BackendOptions, on_compared: Callable[[int, int], None] | None
) -> tuple[Backend, ModelCard]:
    from snakekit.runtime.backends.check import CheckBackend

    first_kind, second_kind = options.check_backends
    first, card = load_backend(first_kind, model, options=options)
    try:
        second, other = load_backend(second_kind, model, options=options)
    except BackendError:
        first.close()
        raise
    if "random" in options.check_backends:
        # It has no model of its own and answers to observations of any version.
        card = other if first_kind == "random" else card
    elif other.encoder != card.encoder:
        first.close()
        second.close()
        raise BackendError(
            f"backend check: {first_kind} reads encoder version {card.encoder}, {second_kind} "
            f"version {other.encoder}; expected the same model in both"
        )
    return CheckBackend(
        first, second, tolerance=options.check_tolerance, on_compared=on_compared
    ), card
