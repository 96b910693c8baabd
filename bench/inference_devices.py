"""Opening a model on a device, and proof that it is that device which runs it."""

import importlib.util
import re
from pathlib import Path

from snakekit.runtime import backends as runtime_backends
from snakekit.runtime.backends import Backend, BackendError
from snakekit.runtime.contract import ModelCard

BACKENDS = ("cpu", "cuda", "tensorrt", "openvino")
"""In the order of the report. A device stands here whether this program can use it or not."""

_ACTUAL = {
    "cpu": {"CPUExecutionProvider"},
    "cuda": {"CUDAExecutionProvider"},
    "tensorrt": {"TensorrtExecutionProvider", "NvTensorRTRTXExecutionProvider", "tensorrt"},
    "openvino": {"OpenVINOExecutionProvider", "openvino"},
}


class Refusal(RuntimeError):
    """A row that there is not; `model_at_fault` where no device would take the model."""

    def __init__(self, text: str, *, model_at_fault: bool = False) -> None:
        super().__init__(text)
        self.model_at_fault = model_at_fault


def open_backend(kind: str, path: Path, threads: int) -> tuple[Backend, ModelCard]:
    """Open `path` on `kind` and nothing else.

    Raises:
        Refusal: not available here, or something else would run.
    """
    if kind not in runtime_backends.BACKENDS:
        raise Refusal(f"not available: {_absence(kind)}")
    try:
        runner, card = runtime_backends.load_backend(kind, path, threads=threads)
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


def _absence(kind: str) -> str:
    if importlib.util.find_spec(kind) is None:
        return f"the package {kind} is not installed, and this version has no {kind} backend"
    return f"this version has no {kind} backend"


def name_of(text: str) -> str:
    """Return `text` as one part of a dotted name."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-") or "model"
