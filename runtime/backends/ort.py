"""ONNX Runtime backends: the execution provider is an argument, and never silently another one."""

import re
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snakekit.runtime.backends.base import BackendError, BackendInfo, Outputs
from snakekit.runtime.contract import (
    CARD_KEY,
    INPUT_NAME,
    OUTPUT_NAMES,
    CardError,
    ModelCard,
    load_card,
)

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
_PACKAGE = {"cpu": "onnxruntime", "cuda": "onnxruntime-gpu"}


class OrtBackend:
    """One ONNX Runtime session on exactly one execution provider."""

    def __init__(self, session: Any, info: BackendInfo) -> None:
        self._session = session
        self._info = info
        self.pads = info.requested != "cpu"

    def infer(self, batch: NDArray[np.uint8]) -> Outputs:
        """Return policy logits `[N, 4]` and values `[N]` for uint8 `[N, planes, rows, cols]`."""
        policy, value = self._session.run(list(OUTPUT_NAMES), {INPUT_NAME: batch})
        return policy, value.reshape(len(batch))

    def describe(self) -> BackendInfo:
        """Return what runs."""
        return self._info

    def close(self) -> None:
        """Drop the session."""
        self._session = None


def installed_distributions() -> list[str]:
    """Return which of the conflicting ONNX Runtime distributions are installed."""
    found = []
    for name in ("onnxruntime", "onnxruntime-gpu"):
        try:
            metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        found.append(name)
    return found


def check_distribution(kind: str) -> None:
    """Refuse to go on with none or both of the ONNX Runtime distributions.

    Args:
        kind: `cpu` or `cuda`; decides which package the fix names.

    Raises:
        BackendError: with the commands that repair the installation.
    """
    found = installed_distributions()
    package = _PACKAGE[kind]
    if not found:
        raise BackendError(
            f"backend {kind}: ONNX Runtime is not installed; run: pip install {package}"
        )
    if len(found) > 1:
        raise BackendError(
            f"backend {kind}: onnxruntime and onnxruntime-gpu are both installed and overwrite "
            "each other; run: pip uninstall -y onnxruntime onnxruntime-gpu && "
            f"pip install {package}"
        )


def open_model(path: Path, kind: str, threads: int) -> tuple[OrtBackend, ModelCard]:
    """Open an ONNX file with the provider of `kind` alone.

    Raises:
        BackendError: provider missing, another provider chosen, or a file that is no such model.
        CardError: no readable card in the file.
    """
    import onnxruntime

    provider = PROVIDERS[kind]
    if provider not in onnxruntime.get_available_providers():
        raise BackendError(
            f"backend {kind}: this ONNX Runtime has no {provider}; run: pip uninstall -y "
            f"onnxruntime onnxruntime-gpu && pip install {_PACKAGE[kind]}"
        )
    session = _session(onnxruntime, path, kind, threads)
    # ONNX Runtime appends the CPU provider by itself, so only the first entry tells.
    if session.get_providers()[:1] != [provider]:
        raise BackendError(
            f"backend {kind}: asked for {provider} and got {', '.join(session.get_providers())}; "
            "expected a working GPU and driver, or choose --backend cpu"
        )
    card = load_card(session.get_modelmeta().custom_metadata_map.get(CARD_KEY), origin=path.name)
    _check_signature(session, card, path.name)
    info = BackendInfo(requested=kind, actual=provider, precision=card.precision)
    return OrtBackend(session, info), card


def _session(onnxruntime: Any, path: Path, kind: str, threads: int) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Spinning workers would burn the cores that the search needs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            str(path), options, providers=[PROVIDERS[kind]], enable_fallback=0
        )
    except Exception as error:
        reason = re.sub(r"\s+", " ", str(error)).replace(str(path), path.name)[:200]
        raise BackendError(f"{path.name}: ONNX Runtime cannot load it: {reason}") from None
    session.disable_fallback()
    return session


def _check_signature(session: Any, card: ModelCard, origin: str) -> None:
    inputs = {i.name: i for i in session.get_inputs()}
    outputs = {o.name: o for o in session.get_outputs()}
    if list(inputs) != [INPUT_NAME]:
        raise CardError(f"{origin}: expected one input {INPUT_NAME}, found {', '.join(inputs)}")
    missing = [name for name in OUTPUT_NAMES if name not in outputs]
    if missing:
        raise CardError(f"{origin}: expected the output {missing[0]}, found {', '.join(outputs)}")
    given = inputs[INPUT_NAME]
    rows, cols = card.view if card.view is not None else (None, None)
    _check_tensor(origin, given, "tensor(uint8)", [None, card.planes, rows, cols])
    _check_tensor(origin, outputs["policy"], "tensor(float)", [None, 4])
    _check_tensor(origin, outputs["value"], "tensor(float)", [None, 1])


def _check_tensor(origin: str, tensor: Any, kind: str, expected: list[int | None]) -> None:
    shape = list(tensor.shape)
    words = "[" + ", ".join("any" if size is None else str(size) for size in expected) + "]"
    fits = len(shape) == len(expected) and all(
        not isinstance(have, int) if want is None else (not isinstance(have, int) or have == want)
        for have, want in zip(shape, expected, strict=False)
    )
    if tensor.type != kind or not fits:
        raise CardError(
            f"{origin}: {tensor.name} is {tensor.type} {shape}, "
            f"but its card asks for {kind} {words}"
        )
