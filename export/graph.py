"""What a graph is made of: operators, layers, work."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto

from snakekit.runtime.contract import INPUT_NAME

TURNED = ".T"
"""Ending of the names of weights that stand in the graph turned."""
POOLING = ("ReduceSum", "ReduceMean", "ReduceMax", "Einsum")
"""Operators that take a board together."""
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


def name_weights(proto: ModelProto, weights: Mapping[str, NDArray[np.float32]]) -> None:
    """Give the weights that the exporter has turned or reshaped their names back.

    So that every weight can be found in the file, see `weight`. Turned ones are called `NAME.T`.
    """
    held = {t.name: t for t in proto.graph.initializer}
    missing = {name: values for name, values in weights.items() if name not in held}
    for tensor in [t for name, t in held.items() if name not in weights]:
        values = onnx.numpy_helper.to_array(tensor)
        for name, wanted in missing.items():
            if wanted.size != values.size or wanted.size == 1:
                continue
            if np.array_equal(values.reshape(wanted.shape), wanted):
                break
            if wanted.ndim == 2 and np.array_equal(values.reshape(wanted.T.shape), wanted.T):
                name += TURNED
                break
        else:
            continue
        del missing[name.removesuffix(TURNED)]
        for node in proto.graph.node:
            for at, used in enumerate(node.input):
                if used == tensor.name:
                    node.input[at] = name
        tensor.name = name


def weight(
    held: Mapping[str, TensorProto], name: str, shape: tuple[int, ...]
) -> NDArray[np.float32] | None:
    """Return a weight of this shape from the constants of a graph, or None if it is not there."""
    turned = name not in held
    tensor = held.get(name + TURNED if turned else name)
    if tensor is None or math.prod(tensor.dims) != math.prod(shape):
        return None
    values = onnx.numpy_helper.to_array(tensor)
    return (values.reshape(shape[::-1]).T if turned else values.reshape(shape)).copy()


def small_linear(proto: ModelProto) -> list[str]:
    """Return the names of the linear layers with fewer than `SMALL_LAYER` weights."""
    sizes = {t.name: math.prod(t.dims) for t in proto.graph.initializer}
    linear = (n for n in proto.graph.node if n.op_type == "Gemm")
    return [n.name for n in linear if sizes.get(n.input[1], 0) < SMALL_LAYER]


def beside_the_trunk(proto: ModelProto) -> list[str]:
    """Return the names of the nodes that follow no convolution, or that follow a pooling."""
    after_conv: set[str] = set()
    after_pool: set[str] = set()
    names = []
    for node in proto.graph.node:  # in the order of computation, as ONNX demands
        if node.op_type == "Conv" or not after_conv.isdisjoint(node.input):
            after_conv.update(node.output)
        if node.op_type in POOLING or not after_pool.isdisjoint(node.input):
            after_pool.update(node.output)
        if node.output[0] not in after_conv or node.output[0] in after_pool:
            names.append(node.name)
    return names


def measure_floats(proto: ModelProto) -> None:
    """Have sizes read from the observation as float, where the exporter reads them from the bytes.

    GPUs need not have kernels for bytes other than conversions, see `takes_bytes`.
    """
    nodes = proto.graph.node
    cast = next((n for n in nodes if n.op_type == "Cast" and INPUT_NAME in n.input), None)
    if cast is None:
        return
    for node in nodes:
        if node.op_type == "Shape" and INPUT_NAME in node.input:
            node.input[0] = cast.output[0]
    # It reads an input alone, so it may stand first, which nodes that now read it need.
    first = NodeProto()
    first.CopyFrom(cast)
    nodes.remove(cast)
    nodes.insert(0, first)


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
