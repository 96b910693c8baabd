"""Opening a model on a device, and proof that it is that device which runs it."""

import re
from pathlib import Path

from snakekit.runtime import backends as runtime_backends
from snakekit.runtime.backends import Backend, BackendError, BackendOptions
from snakekit.runtime.contract import ModelCard

BACKENDS = ("cpu", "cuda", "ort-tensorrt", "tensorrt", "tensorrt-rtx", "triton")
"""In the order of the report."""
DEFAULT = ("cpu", "cuda", "ort-tensorrt", "tensorrt")
"""What is tried, and named as absent, when nothing else is asked for."""

_ACTUAL = {
    "cpu": {"CPUExecutionProvider"},
    "cuda": {"CUDAExecutionProvider"},
    "ort-tensorrt": {"TensorrtExecutionProvider"},
    "tensorrt": {"tensorrt"},
    "tensorrt-rtx": {"tensorrt-rtx"},
    "triton": {"triton:onnxruntime", "triton:tensorrt"},
}


class Refusal(RuntimeError):
    """A row that there is not; `model_at_fault` where no device would take the model."""

    def __init__(self, text: str, *, model_at_fault: bool = False) -> None:
        super().__init__(text)
        self.model_at_fault = model_at_fault


def open_backend(kind: str, path: Path, options: BackendOptions) -> tuple[Backend, ModelCard]:
    """Open `path` on `kind` and nothing else.

    Raises:
        Refusal: not available here, or something else would run.
    """
    try:
        runner, card = runtime_backends.load_backend(kind, path, options=options)
    except BackendError as error:
        # The processor runs every sound model, so there the model is to blame.
        fault = kind == "cpu" and str(error).startswith(f"{path.name}:")
        text = str(error).removeprefix(f"backend {kind}: ")
        raise Refusal(text if fault else f"not available: {text}", model_at_fault=fault) from None
    try:
        check_label(kind, runner)
    except Refusal:
        runner.close()
        raise
    return runner, card


def check_label(kind: str, runner: Backend) -> None:
    """Refuse a backend that does not run what it is about to be called.

    Raises:
        Refusal: with what runs instead.
    """
    actual = runner.describe().actual
    if actual not in _ACTUAL[kind]:
        raise Refusal(f"refused: asked for {kind}, but {actual} runs")


def name_of(text: str) -> str:
    """Return `text` as one part of a dotted name."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-") or "model"
