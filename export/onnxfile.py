"""Nets as ONNX: exported, checked, marked with their card, described, and read back."""

import logging
import warnings
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import torch
from google.protobuf.message import DecodeError
from onnx import ModelProto, TensorProto

from snakekit.export import graph
from snakekit.runtime.backends.onnxcard import card_of
from snakekit.runtime.contract import (
    CARD_KEY,
    INPUT_NAME,
    OUTPUT_NAMES,
    CardError,
    ModelCard,
    dump_card,
)
from snakekit.runtime.models import check_card
from snakekit.trainer.checkpoint import Checkpoint, hash_weights, weights_of
from snakekit.trainer.model import Net, build

OPSET = 18
"""What the exporter writes by itself, and what runtimes of a server of some years run.

ReduceMax changed in 20, and a CUDA kernel that is registered for 18 and later is not taken for it:
an older ONNX Runtime would send the node to the CPU.
"""


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
    graph.name_weights(proto, weights_of(model))
    graph.measure_floats(proto)
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
    """Check an exported graph: `check_contract`, and that every node runs on GPUs.

    Raises:
        ModelFileError: a graph, input or output that is not as it should be.
    """
    check_contract(proto, card, origin="the exported graph")
    for node in graph.takes_bytes(proto):
        raise ModelFileError(
            f"node {node.name} ({node.op_type}) reads the uint8 input, which no GPU does; expected "
            "the net to convert its observation to float first"
        )


def check_contract(proto: ModelProto, card: ModelCard, *, origin: str) -> None:
    """Check a graph with ONNX's own checker and shape inference, then inputs and outputs.

    Raises:
        ModelFileError: names `origin` and what was expected.
    """
    values = {v.name: graph.signature(v) for v in (*proto.graph.input, *proto.graph.output)}
    rows, cols = card.view or ("?", "?")
    slots = f"{card.slots}, " if card.slots else ""
    policy, value = OUTPUT_NAMES
    expected = {
        INPUT_NAME: f"{INPUT_NAME}: uint8[?, {card.planes}, {rows}, {cols}]",
        policy: f"{policy}: float[?, {slots}4]",
        value: f"{value}: float[?, {card.slots + 1}]",
    }
    if values != expected or len(proto.graph.input) != 1:
        raise ModelFileError(
            f"{origin}: takes and gives {'; '.join(values.values()) or 'nothing'}, but its card "
            f"asks for {'; '.join(expected.values())}"
        )
    try:
        onnx.checker.check_model(proto, full_check=True)
        onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise ModelFileError(f"{origin}: the graph is invalid: {error}") from None
    except UnicodeDecodeError:  # the reason quotes a name that is no text
        raise ModelFileError(f"{origin}: the graph is invalid: a name in it is damaged") from None


class Description(msgspec.Struct, frozen=True):
    """What is inside an ONNX file."""

    card: ModelCard
    inputs: list[str]
    outputs: list[str]
    operators: dict[str, int]
    parameters: int
    multiply_adds: int
    """For one position, see `board`."""
    board: tuple[int, int]
    """Rows and columns of that position."""
    bytes: int
    opset: int
    ir_version: int


def describe(path: Path) -> Description:
    """Read what `snakekit export --show` prints.

    Raises:
        ModelFileError: missing, unreadable, cut, foreign, or with weights that are not finite.
    """
    blob, proto, card = read_model(path)
    board = card.view or ((11, 11) if (11, 11) in card.boards else card.boards[0][::-1])
    return Description(
        card=card,
        inputs=[graph.signature(v) for v in proto.graph.input],
        outputs=[graph.signature(v) for v in proto.graph.output],
        operators=graph.operators(proto),
        parameters=graph.parameters(proto),
        multiply_adds=graph.multiply_adds(proto, *board),
        board=board,
        bytes=len(blob),
        opset=max((o.version for o in proto.opset_import if o.domain == ""), default=0),
        ir_version=proto.ir_version,
    )


def read_model(path: Path) -> tuple[bytes, ModelProto, ModelCard]:
    """Return a file's bytes, graph and card.

    Raises:
        ModelFileError: missing, unreadable, cut, foreign, or with weights that are not finite.
    """
    try:
        blob = path.read_bytes()
        card = card_of(blob, origin=path.name)
        check_card(card, origin=path.name)
        proto = onnx.load_from_string(blob)
    except OSError as error:
        raise ModelFileError(f"{path}: cannot be read: {error.strerror}") from None
    except CardError as error:
        raise ModelFileError(str(error)) from None
    except DecodeError:
        raise ModelFileError(f"{path.name}: damaged; expected a whole ONNX file") from None
    if any(t.data_location == TensorProto.EXTERNAL for t in proto.graph.initializer):
        raise ModelFileError(f"{path.name}: weights lie outside of it; expected one whole file")
    check_contract(proto, card, origin=path.name)
    for tensor in proto.graph.initializer:
        if tensor.data_type in (TensorProto.FLOAT, TensorProto.FLOAT16):
            require_finite(tensor.name, onnx.numpy_helper.to_array(tensor), path.name)
    return blob, proto, card


def require_finite(name: str, values: Any, origin: str) -> None:
    """Refuse weights that are not finite.

    Raises:
        ModelFileError: names the tensor.
    """
    count = int((~np.isfinite(values)).sum())
    if count:
        raise ModelFileError(
            f"{origin}: {count} numbers of tensor {name} are not finite; expected finite weights"
        )


def checkpoint_of(path: Path) -> Checkpoint:
    """Return the checkpoint that an fp32 file was exported from, weights bit for bit.

    Raises:
        ModelFileError: no such file, another precision, or weights other than the card's.
    """
    _, proto, card = read_model(path)
    if card.precision != "fp32":
        raise ModelFileError(
            f"{path.name}: is {card.precision}; expected a checkpoint or an fp32 file"
        )
    try:
        with torch.device("meta"):  # names and shapes, whatever size the card says
            wanted = build(card.net, card.net_options).state_dict()
    except (ValueError, TypeError, RuntimeError) as error:
        raise ModelFileError(f"{path.name}: {error}") from None
    held = {t.name: t for t in proto.graph.initializer}
    weights = {}
    for name, like in wanted.items():
        values = graph.weight(held, name, tuple(like.shape))
        if values is None:
            raise ModelFileError(
                f"{path.name}: its weights are not those that its card names; expected {name} of "
                f"shape {tuple(like.shape)}"
            )
        weights[name] = values
    if hash_weights(weights) != card.weights_sha256:
        raise ModelFileError(f"{path.name}: its weights are not those that its card names")
    return Checkpoint(card=msgspec.structs.replace(card, opset=None, parity={}), weights=weights)
