"""Half precision for GPUs: weights and activations in fp16, what decides the answer in fp32."""

import warnings

import onnx
from onnx import ModelProto

from snakekit.export.graph import small_linear

_IN_FLOAT = ("ReduceSum", "ReduceMean", "ReduceMax", "Tanh", "Softmax")
"""Sums over a board leave the range of fp16 first; they and the readout take no time."""


def halve(proto: ModelProto) -> ModelProto:
    """Return a version of a float model that computes in fp16; inputs and outputs stay as they are.

    The types stand in the file, so that a runtime that takes them as they are (strongly typed
    TensorRT, CUDA) has no other choice.
    """
    # Imported here because it takes a second and only this precision needs it.
    from onnxruntime.transformers.float16 import convert_float_to_float16
    from onnxruntime.transformers.onnx_model import OnnxModel

    copy = ModelProto()
    copy.CopyFrom(onnx.shape_inference.infer_shapes(proto))
    with warnings.catch_warnings():
        # Warns about every weight below fp16's smallest number, which the gate judges better.
        warnings.simplefilter("ignore")
        half: ModelProto = convert_float_to_float16(
            copy,
            keep_io_types=True,
            op_block_list=list(_IN_FLOAT),
            node_block_list=small_linear(proto),
        )
    # Shapes and types noted before the conversion are wrong now, and conversions stand at the end.
    del half.graph.value_info[:]
    OnnxModel(half).topological_sort()
    return half
