"""Nets as ONNX: exported, checked, marked with their card, described."""

import contextlib
import logging
import os
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import onnx
import torch
from google.protobuf.message import DecodeError
from onnx import ModelProto, TensorProto

from snakekit.runtime.contract import CARD_KEY, INPUT_NAME, OUTPUT_NAMES, ModelCard, dump_card
from snakekit.trainer.model import Net

OPSET = 20


class ModelFileError(ValueError):
    """A file that is no ONNX model, or one that breaks the contract; says what is wrong."""


def to_onnx(model: Net, card: ModelCard) -> ModelProto:
    """Export `model` with a free batch and, without a fixed view, free rows and columns."""
    rows, cols = card.view or (11, 9)
    example = torch.zeros(3, card.planes, rows, cols, dtype=torch.uint8)
    example[:, :2] = 1
    free: dict[int, Any] = {0: torch.export.Dim("batch", min=1)}
    if card.view is None:
        free |= {2: torch.export.Dim("rows", min=3), 3: torch.export.Dim("cols", min=3)}
    # The exporter warns about its own internals and about the absence of torchvision.
    exporter_log = logging.getLogger("torch.onnx")
    level = exporter_log.level
    exporter_log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program = torch.onnx.export(
                model.eval(),
                (example,),
                dynamo=True,
                dynamic_shapes=(free,),
                input_names=[INPUT_NAME],
                output_names=list(OUTPUT_NAMES),
                opset_version=OPSET,
                external_data=False,
                verbose=False,
            )
    finally:
        exporter_log.setLevel(level)
    assert program is not None
    proto: ModelProto = program.model_proto
    _forget_sources(proto)
    return proto


def _forget_sources(proto: ModelProto) -> None:
    """Drop the exporter's notes on every node: source paths of this machine and stack traces."""
    for node in proto.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    for value in (*proto.graph.value_info, *proto.graph.input, *proto.graph.output):
        del value.metadata_props[:]
    for tensor in proto.graph.initializer:
        del tensor.metadata_props[:]
    del proto.graph.metadata_props[:]


def with_card(proto: ModelProto, card: ModelCard) -> bytes:
    """Return the file's bytes with `card` as its only metadata."""
    del proto.metadata_props[:]
    onnx.helper.set_model_props(proto, {CARD_KEY: dump_card(card)})
    return bytes(proto.SerializeToString())


def check(proto: ModelProto, card: ModelCard) -> None:
    """Check the graph with ONNX's own checker and shape inference, then the contract.

    Raises:
        ModelFileError: a graph, input or output that is not as it should be.
    """
    try:
        onnx.checker.check_model(proto, full_check=True)
        onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise ModelFileError(f"the exported graph is invalid: {error}") from None
    inputs, outputs = proto.graph.input, proto.graph.output
    if [i.name for i in inputs] != [INPUT_NAME] or [o.name for o in outputs] != [*OUTPUT_NAMES]:
        raise ModelFileError("the exported graph has other inputs or outputs than the contract")
    if inputs[0].type.tensor_type.elem_type != TensorProto.UINT8:
        raise ModelFileError("the exported graph's input is not uint8")
    expected = ("?", card.planes, *(card.view or ("?", "?")))
    if _shape(inputs[0]) != expected:
        raise ModelFileError(f"the graph's input is {_shape(inputs[0])}, expected {expected}")


def _shape(value: onnx.ValueInfoProto) -> tuple[int | str, ...]:
    dims = value.type.tensor_type.shape.dim
    return tuple(d.dim_value if d.HasField("dim_value") else "?" for d in dims)


def write_file(path: Path, blob: bytes) -> None:
    """Write `blob` to `path` by way of a temporary file, so that it is whole or not there.

    Raises:
        ModelFileError: the disk refuses.
    """
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(blob)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise ModelFileError(f"{path}: cannot be written: {error.strerror}") from None


class Description(msgspec.Struct, frozen=True):
    """What is inside an ONNX file."""

    card: str
    """The card's JSON text, empty where there is none."""
    inputs: list[str]
    outputs: list[str]
    operators: dict[str, int]
    parameters: int
    bytes: int
    opset: int
    ir_version: int


def describe(path: Path) -> Description:
    """Read what `snakekit export --show` prints.

    Raises:
        ModelFileError: missing, unreadable or no ONNX file.
    """
    try:
        blob = path.read_bytes()
        proto = onnx.load_from_string(blob)
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror}") from None
    except DecodeError:
        raise ModelFileError(f"{path}: not an ONNX file") from None
    if not proto.graph.node:
        raise ModelFileError(f"{path}: not an ONNX file")
    properties = {p.key: p.value for p in proto.metadata_props}
    return Description(
        card=properties.get(CARD_KEY, ""),
        inputs=[_signature(v) for v in proto.graph.input],
        outputs=[_signature(v) for v in proto.graph.output],
        operators=dict(Counter(n.op_type for n in proto.graph.node).most_common()),
        parameters=sum(_size(t) for t in proto.graph.initializer),
        bytes=len(blob),
        opset=max((o.version for o in proto.opset_import if o.domain == ""), default=0),
        ir_version=proto.ir_version,
    )


def _signature(value: onnx.ValueInfoProto) -> str:
    kind = TensorProto.DataType.Name(value.type.tensor_type.elem_type).lower()
    return f"{value.name}: {kind}[{', '.join(map(str, _shape(value)))}]"


def _size(tensor: TensorProto) -> int:
    size = 1
    for dim in tensor.dims:
        size *= dim
    return size
