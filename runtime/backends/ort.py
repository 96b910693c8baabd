"""ONNX Runtime backends: the execution provider is an argument, and never silently another one."""

import contextlib
import io
import re
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snakekit.runtime.backends.base import BackendError, BackendInfo, Outputs
from snakekit.runtime.backends.options import BackendOptions
from snakekit.runtime.contract import INPUT_NAME, OUTPUT_NAMES, CardError, ModelCard

PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "ort-tensorrt": "TensorrtExecutionProvider",
}
_PACKAGE = {
    "cpu": "onnxruntime",
    "cuda": "'onnxruntime-gpu[cuda,cudnn]'",
    "ort-tensorrt": "'snakekit[ort-tensorrt]'",
}


class OrtBackend:
    """One ONNX Runtime session on exactly one execution provider."""

    def __init__(self, session: Any, info: BackendInfo) -> None:
        self._session = session
        self._info = info
        self.pads = info.requested != "cpu"

    def infer(self, batch: NDArray[np.uint8]) -> Outputs:
        """See `Backend`.

        Raises:
            BackendError: the runtime cannot run this size of batch or board.
        """
        try:
            policy, value = self._session.run(list(OUTPUT_NAMES), {INPUT_NAME: batch})
        except Exception as error:  # the library has no base class for its own
            reason = re.sub(r"\s+", " ", str(error))[:200]
            size = "x".join(map(str, batch.shape))
            raise BackendError(
                f"backend {self._info.requested}: the model does not run on {size}: {reason}"
            ) from None
        return policy, value[:, 0] if value.shape[1] == 1 else value

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
        kind: one of `PROVIDERS`; decides which package the fix names.

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


def open_model(path: Path, kind: str, card: ModelCard, options: BackendOptions) -> OrtBackend:
    """Open an ONNX file with the provider of `kind` alone.

    Args:
        path: the file.
        kind: one of `PROVIDERS`.
        card: the file's card.
        options: threads, spinning, number of the GPU, folder of engines.

    Raises:
        BackendError: provider missing, another provider chosen, or a file that cannot be loaded.
        CardError: a file that does not fit its card.
    """
    import onnxruntime

    provider = PROVIDERS[kind]
    if provider not in onnxruntime.get_available_providers():
        raise BackendError(
            f"backend {kind}: this ONNX Runtime has no {provider}; run: pip uninstall -y "
            f"onnxruntime onnxruntime-gpu && pip install {_PACKAGE[kind]}"
        )
    if kind == "ort-tensorrt":
        check_tensorrt_major(Path(onnxruntime.__file__).parent)
    session = _session(onnxruntime, path, kind, card, options)
    # ONNX Runtime appends the CPU provider by itself, so only the first entry tells.
    if session.get_providers()[:1] != [provider]:
        raise BackendError(
            f"backend {kind}: asked for {provider} and got {', '.join(session.get_providers())}; "
            "expected a working GPU and driver, or choose --backend cpu"
        )
    _check_signature(session, card, path.name)
    device = "CPU" if kind == "cpu" else f"GPU {options.device}"
    return OrtBackend(session, BackendInfo(kind, provider, card.precision, device))


def check_tensorrt_major(package: Path) -> None:
    """Compare the TensorRT that is installed with the one that ONNX Runtime was linked to.

    Args:
        package: folder of the onnxruntime package.

    Raises:
        BackendError: TensorRT is missing or of another major version.
    """
    wanted = linked_tensorrt(package)
    found = _version("tensorrt")
    if found is not None and found.split(".")[0] == wanted:
        # Importing it loads the libraries that the provider then finds by their names.
        with contextlib.suppress(ImportError, OSError):
            __import__("tensorrt")
        return
    raise BackendError(
        f"backend ort-tensorrt: this ONNX Runtime is linked to TensorRT {wanted}, found "
        f"{found or 'none'}; run: pip install 'tensorrt=={wanted}.*', or use --backend tensorrt"
    )


def linked_tensorrt(package: Path) -> str:
    """Return the major version of TensorRT that the provider in `package` needs, such as `10`.

    Raises:
        BackendError: there is no such provider.
    """
    library = package / "capi" / "libonnxruntime_providers_tensorrt.so"
    try:
        found = re.search(rb"libnvinfer\.so\.(\d+)\0", library.read_bytes())
    except OSError:
        found = None
    if found is None:
        raise BackendError(
            "backend ort-tensorrt: this ONNX Runtime has no TensorRT provider; "
            f"run: pip install {_PACKAGE['ort-tensorrt']}"
        )
    return found.group(1).decode()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _session(
    onnxruntime: Any, path: Path, kind: str, card: ModelCard, given: BackendOptions
) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = given.threads
    options.inter_op_num_threads = 1
    # Spinning workers would burn the cores that the search needs.
    spin = "1" if given.spin else "0"
    options.add_session_config_entry("session.intra_op.allow_spinning", spin)
    options.add_session_config_entry("session.inter_op.allow_spinning", spin)
    options.log_severity_level = 4
    missing = ""
    if kind != "cpu":
        # Without this a node that the GPU cannot run goes to the CPU, and each call crosses twice.
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        missing = _load_cuda(onnxruntime)
    try:
        session = onnxruntime.InferenceSession(
            str(path), options, providers=[_provider(kind, path, card, given)], enable_fallback=0
        )
    except Exception as error:
        reason = missing or re.sub(r"\s+", " ", str(error)).replace(str(path), path.name)[:200]
        if kind != "cpu" and card.precision == "int8" and not missing:
            reason += "; an int8 file for CPUs runs on no GPU, take fp16"
        if kind == "cpu":
            raise BackendError(f"{path.name}: ONNX Runtime cannot load it: {reason}") from None
        raise BackendError(
            f"backend {kind}: {PROVIDERS[kind]} cannot run {path.name} here: {reason}; expected a "
            f"GPU, its driver and pip install {_PACKAGE[kind]}, or choose --backend cpu"
        ) from None
    session.disable_fallback()
    return session


def _load_cuda(onnxruntime: Any) -> str:
    """Load the CUDA libraries of the nvidia packages; return the first one missing, or nothing.

    The system's own libraries are found later on, so that a missing one need not be an error.
    """
    onnxruntime.set_default_logger_severity(4)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        onnxruntime.preload_dlls()
    return next((ln for ln in said.getvalue().splitlines() if ln.startswith("Failed")), "")


def _provider(
    kind: str, path: Path, card: ModelCard, given: BackendOptions
) -> str | tuple[str, dict[str, str]]:
    """Return the provider, and on GPUs its options, as ONNX Runtime wants them."""
    name = PROVIDERS[kind]
    if kind == "cpu":
        return name
    if kind == "cuda":
        # TensorFloat-32 keeps 10 of 23 bits: a file in fp32 is to be computed in fp32.
        return name, {"device_id": str(given.device), "use_tf32": "0"}
    folder = Path(given.engine_cache) if given.engine_cache else path.parent
    folder.mkdir(parents=True, exist_ok=True)
    # The provider's own key does not hold the weights, so that it would load an engine of others.
    key = f"{card.name}.{card.precision}.{card.weights_sha256[:16]}"
    return name, {
        "device_id": str(given.device),
        "trt_engine_cache_enable": "1",
        "trt_engine_cache_path": str(folder),
        "trt_engine_cache_prefix": key,
        "trt_timing_cache_enable": "1",
        "trt_timing_cache_path": str(folder),
        "trt_fp16_enable": "1" if card.precision == "fp16" else "0",
        "trt_int8_enable": "1" if card.precision == "int8" else "0",
    }


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
    slots: list[int | None] = [card.slots] if card.slots else []
    _check_tensor(origin, outputs["policy"], "tensor(float)", [None, *slots, 4])
    _check_tensor(origin, outputs["value"], "tensor(float)", [None, card.slots + 1])


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
