"""What a graph is made of: operators, layers, work."""

import math
from collections import Counter
from collections.abc import Iterator

import onnx
from onnx import ModelProto, NodeProto, TensorProto

from snakekit.runtime.contract import INPUT_NAME

SMALL_LAYER = 100_000
"""Weights of a linear layer that takes no time."""


def signature(value: onnx.ValueInfoProto) -> str:
    """Return name, type and shape of an input or output in words."""
    kind = TensorProto.DataType.Name(value.type.tensor_type.elem_type).lower()
    return f"{value.name}: {kind}[{', '.join(map(str, shape_of(value)))}]"


def shape_of(value: onnx.ValueInfoProto) -> tuple[int | str, ...]:
    """Return the shape of an input or output, `?` where it is free."""
    dims = value.type.tensor_type.shape.dim
    return tuple(d.dim_value if d.HasField("dim_value") else "?" for d in dims)


def operators(proto: ModelProto) -> dict[str, int]:
    """Return how many nodes of each kind there are, most first."""
    return dict(Counter(n.op_type for n in proto.graph.node).most_common())


def parameters(proto: ModelProto) -> int:
    """Return the number of constants of the graph, weights and others."""
    return sum(math.prod(t.dims) for t in proto.graph.initializer)


def small_linear(proto: ModelProto) -> list[str]:
    """Return the names of the linear layers with fewer than `SMALL_LAYER` weights."""
    sizes = {t.name: math.prod(t.dims) for t in proto.graph.initializer}
    linear = (n for n in proto.graph.node if n.op_type == "Gemm")
    return [n.name for n in linear if sizes.get(n.input[1], 0) < SMALL_LAYER]


def takes_bytes(proto: ModelProto) -> Iterator[NodeProto]:
    """Yield the nodes other than conversions that read the uint8 input.

    GPUs convert bytes, but neither cut, compare nor add them: on such a node TensorRT refuses the
    file, and CUDA hands it to the CPU.
    """
    for node in proto.graph.node:
        if INPUT_NAME in node.input and node.op_type not in ("Cast", "QuantizeLinear"):
            yield node


def multiply_adds(proto: ModelProto, rows: int, cols: int) -> int:
    """Return the multiply-adds of convolutions and linear layers for one position.

    Args:
        proto: a model of the contract.
        rows: rows of the observation, where they are free.
        cols: its columns, where they are free.
    """
    fixed = ModelProto()
    fixed.CopyFrom(proto)
    del fixed.graph.value_info[:]
    dims = fixed.graph.input[0].type.tensor_type.shape.dim
    for dim, size in zip(dims, (1, 0, rows, cols), strict=True):
        if not dim.HasField("dim_value"):
            dim.dim_value = size
    for value in fixed.graph.output:
        value.type.tensor_type.shape.dim[0].dim_value = 1
    inferred = onnx.shape_inference.infer_shapes(fixed, data_prop=True)
    shapes = {v.name: shape_of(v) for v in (*inferred.graph.value_info, *inferred.graph.output)}
    shapes |= {t.name: tuple(t.dims) for t in inferred.graph.initializer}
    return sum(_work(node, shapes) for node in inferred.graph.node)


def _work(node: NodeProto, shapes: dict[str, tuple[int | str, ...]]) -> int:
    if node.op_type not in ("Conv", "Gemm", "MatMul"):
        return 0
    out, weights = _known(shapes, node.output[0]), _known(shapes, node.input[1])
    if not weights:
        return 0
    if node.op_type == "Conv":
        # weights: [out, in / groups, *kernel]; each output number takes one product for each.
        return math.prod(out) * math.prod(weights[1:])
    if len(weights) == 1:  # a vector, which each output number takes whole
        return math.prod(out) * weights[0]
    turned = any(a.name == "transB" and a.i for a in node.attribute)
    return math.prod(out) * (weights[1] if turned else weights[-2])


def _known(shapes: dict[str, tuple[int | str, ...]], name: str) -> tuple[int, ...]:
    """Return a shape without free sizes, or nothing where it is not known."""
    sizes = tuple(n for n in shapes.get(name, ()) if isinstance(n, int))
    return sizes if len(sizes) == len(shapes.get(name, ())) else ()
