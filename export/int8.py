"""Static quantization to int8: QDQ nodes with ranges from observations of played games."""

import contextlib
import logging
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto

from snakekit.export.graph import beside_the_trunk, small_linear
from snakekit.export.onnxfile import ModelFileError
from snakekit.export.samples import Sample
from snakekit.runtime.contract import INPUT_NAME

CALIBRATION_BATCH = 32
QUANTIZED = ("Conv", "Gemm", "Add", "Mul", "Relu", "LeakyRelu", "Reshape")
"""Operators with an int8 version on the CPU; pooling and readout stay in float."""
MULTIPLYING = ("Conv", "Gemm")
"""Operators whose inputs are quantized for GPUs, which fuse what stands between them."""


def has_vnni() -> bool:
    """Return whether this CPU multiplies int8 without saturating (VNNI).

    Where it cannot be found out the answer is no, which costs one bit of the weights.
    """
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="ignore")
    except OSError:
        return False
    flags = next((line for line in text.splitlines() if line.startswith("flags")), "")
    return bool({"avx512_vnni", "avx_vnni"} & set(flags.split()))


def kept_in_float(proto: ModelProto) -> list[str]:
    """Return the names of the nodes that quantization leaves alone.

    The first convolution, because one range for all planes of the observation is too coarse for
    those of small values; what stands before it, and from the pooling on; and small linear layers,
    which decide the answer and take no time.
    """
    convs = [n.name for n in proto.graph.node if n.op_type == "Conv"]
    return convs[:1] + beside_the_trunk(proto) + small_linear(proto)


def quantize(
    proto: ModelProto,
    samples: Sequence[Sample],
    *,
    reduce_range: bool = False,
    symmetric: bool = False,
) -> ModelProto:
    """Return an int8 version of a float model.

    Weights are signed, one scale a channel; activations are unsigned, with ranges from `samples`.

    Args:
        proto: the float model.
        samples: observations that set the ranges of the activations.
        reduce_range: keep weights to 7 bits, needed on CPUs without VNNI, where the sum of two
            products of full range saturates at 16 bits.
        symmetric: signed activations with zero in the middle and biases in float, as TensorRT
            asks; the CPU runs that at half the speed.

    Raises:
        ModelFileError: nothing in it would be quantized.
    """
    kept = kept_in_float(proto)
    if all(n.name in kept for n in proto.graph.node if n.op_type in MULTIPLYING):
        raise ModelFileError(
            "int8: the net has neither a second convolution nor a large linear layer to quantize; "
            "expected --precision fp32 or fp16"
        )
    # Imported here because it takes a second and only this precision needs it.
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static

    extra = {
        "ActivationSymmetric": True,
        "WeightSymmetric": True,
        "QuantizeBias": False,
        "OpTypesToExcludeOutputQuantization": list(MULTIPLYING),
    }
    with tempfile.TemporaryDirectory() as folder, _quiet():
        source, target = Path(folder) / "float.onnx", Path(folder) / "int8.onnx"
        onnx.save(onnx.shape_inference.infer_shapes(proto), source)
        quantize_static(
            str(source),
            str(target),
            _reader(samples),
            quant_format=QuantFormat.QDQ,
            activation_type=QuantType.QInt8 if symmetric else QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            per_channel=True,
            op_types_to_quantize=list(MULTIPLYING if symmetric else QUANTIZED),
            nodes_to_exclude=kept,
            reduce_range=reduce_range,
            calibrate_method=CalibrationMethod.MinMax,
            extra_options=extra if symmetric else {},
        )
        return onnx.load(str(target))


def _reader(samples: Sequence[Sample]) -> Any:
    """Return observations as the library reads them."""
    from onnxruntime.quantization import CalibrationDataReader

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self._batches = _batches(samples)

        def get_next(self) -> dict[str, Any] | None:
            obs = next(self._batches, None)
            return None if obs is None else {INPUT_NAME: obs}

    return Reader()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Hold back the library's advice to run its own preparation, which this graph does not need."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def _batches(samples: Sequence[Sample]) -> Iterator[NDArray[np.uint8]]:
    for sample in samples:
        for start in range(0, len(sample.obs), CALIBRATION_BATCH):
            yield sample.obs[start : start + CALIBRATION_BATCH]
