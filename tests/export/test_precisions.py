"""fp16 and int8: marked, gated, and of the types that runtimes take as they are."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest

from snakekit import core
from snakekit.export import pipeline
from snakekit.export.fp16 import halve
from snakekit.export.int8 import quantize
from snakekit.export.observations import collect
from snakekit.export.onnxfile import ModelFileError, check, describe
from snakekit.export.options import ExportConfig
from snakekit.export.parity import GateError, close_gate
from snakekit.export.samples import Truth
from snakekit.export.session import Session
from snakekit.trainer.checkpoint import Checkpoint
from snakekit.trainer.scenario import Scenario

QUICK = ExportConfig(observations=256, calibration=64)
FLOAT, HALF = onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16


def types(proto: onnx.ModelProto) -> dict[str, int]:
    """Return the type of every tensor of a graph."""
    graph = onnx.shape_inference.infer_shapes(proto, check_type=True, strict_mode=True).graph
    found = {v.name: v.type.tensor_type.elem_type for v in (*graph.value_info, *graph.output)}
    return found | {t.name: t.data_type for t in graph.initializer}


def test_half_precision_is_half_precision(
    proto: onnx.ModelProto, saved: Checkpoint, truth: Truth
) -> None:
    half = halve(proto)
    check(half, saved.card)
    of = types(half)
    for node in half.graph.node:
        if node.op_type == "Conv":
            assert {of[name] for name in (*node.input, *node.output)} == {HALF}
        if node.op_type in ("ReduceSum", "Gemm"):
            assert {of[name] for name in (node.input[0], node.output[0])} == {FLOAT}
    assert len(half.SerializeToString()) < 0.7 * len(proto.SerializeToString())
    assert [v.type.tensor_type.elem_type for v in half.graph.output] == [FLOAT, FLOAT]
    run = Session(half.SerializeToString())
    gate = close_gate("fp16", truth, run, most=64, agreement=0.995, tolerance=1e-4)
    assert gate.passed, gate.text()
    # Were it fp32 in disguise, there would be no difference at all.
    assert gate.figures["value_max_abs"] > 1e-6
    # The graph given is left as it was.
    assert types(proto)["stem.weight"] == FLOAT


def test_fp16_is_marked(saved: Checkpoint, tmp_path: Path) -> None:
    config = msgspec.structs.replace(QUICK, precision="fp16")
    done = pipeline.export(saved, config, tmp_path, origin="x")
    assert [p.name for p in done.files][:2] == ["small.fp16.onnx", "small.fp16.json"]
    found = describe(done.files[0])
    assert found.card.precision == "fp16"
    assert found.card.parity["agreement"] >= 0.995
    assert [g.name for g in done.gates] == ["fp32", "fp16"]


def test_int8_is_gated_and_marked(saved: Checkpoint, tmp_path: Path) -> None:
    config = msgspec.structs.replace(QUICK, precision="int8", agreement=0.5, name="other")
    done = pipeline.export(saved, config, tmp_path, origin="x")
    path, gate = done.files[0], done.gates[-1]
    assert path.name == "other.int8.onnx"
    found = describe(path)
    assert found.card.precision == "int8"
    assert found.card.calibration is not None
    assert "min-max" in found.card.calibration
    assert found.card.parity["agreement"] == gate.figures["agreement"] > 0.5
    assert found.operators["QuantizeLinear"] > 0
    assert found.inputs == [f"obs: uint8[?, {core.PLANES[2]}, ?, ?]"]


@pytest.mark.parametrize(("precision", "share"), [("int8", r"98\.0%"), ("fp16", r"99\.5%")])
def test_a_model_that_plays_otherwise_is_refused(
    saved: Checkpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    precision: str,
    share: str,
) -> None:
    def careless(graph: onnx.ModelProto, *_: object, **__: object) -> onnx.ModelProto:
        tensor = next(t for t in graph.graph.initializer if t.name.endswith("policy.bias"))
        tensor.CopyFrom(onnx.numpy_helper.from_array(np.float32([9, 0, 0, 0]), tensor.name))
        return graph

    monkeypatch.setattr(pipeline.int8, "quantize", careless)
    monkeypatch.setattr(pipeline.fp16, "halve", careless)
    config = msgspec.structs.replace(QUICK, precision=precision)
    words = rf"{precision} refused.*{share}.*agreement 0\.\d+.*kl_mean"
    with pytest.raises(GateError, match=words):
        pipeline.export(saved, config, tmp_path, origin="x")
    assert list(tmp_path.iterdir()) == []


def test_int8_of_a_model_for_all_seats(every: Callable[..., Checkpoint], tmp_path: Path) -> None:
    config = msgspec.structs.replace(QUICK, precision="int8", agreement=0.8)
    done = pipeline.export(every(), config, tmp_path, origin="x")
    assert done.files[0].name.endswith(".int8.onnx")
    graph = onnx.load(done.files[0])
    # The trunk's four convolutions but the first; no sum that holds the -1e4 of an empty slot.
    assert len(weights_of(graph)) == 4
    figures = done.gates[-1].figures
    assert 0 < figures["value_mean_abs"] < 0.02
    assert "chances are off by at most 0.02 on average" in done.gates[-1].rule
    held = {t.name: t.data_type for t in graph.graph.initializer}
    assert held["to_outcome.weight.T"] == FLOAT


def test_a_net_without_anything_to_quantize_is_refused(
    every: Callable[..., Checkpoint], tmp_path: Path
) -> None:
    saved = every(attention=2, blocks=1)
    config = msgspec.structs.replace(QUICK, precision="int8", observations=64)
    with pytest.raises(ModelFileError, match="expected --precision fp32 or fp16"):
        pipeline.export(saved, config, tmp_path, origin="x")
    assert list(tmp_path.iterdir()) == []
    config = msgspec.structs.replace(config, precision="fp16", agreement=0.8)
    done = pipeline.export(saved, config, tmp_path, origin="x")
    assert [gate.passed for gate in done.gates] == [True, True]


def weights_of(graph: onnx.ModelProto) -> list[np.ndarray]:
    """Return the quantized weights of convolutions."""
    return [
        onnx.numpy_helper.to_array(t).astype(int)
        for t in graph.graph.initializer
        if t.data_type == onnx.TensorProto.INT8 and len(t.dims) == 4
    ]


def test_the_range_is_reduced_on_request(saved: Checkpoint, proto: onnx.ModelProto) -> None:
    samples = [collect(2, Scenario(7, 7, 2), 32, seed=1)]
    largest = {}
    for reduce_range in (True, False):
        graph = quantize(proto, samples, reduce_range=reduce_range)
        check(graph, saved.card)
        largest[reduce_range] = max(np.abs(w).max() for w in weights_of(graph))
    assert largest[True] <= 64
    assert largest[False] > 100


def test_int8_for_gpus_is_symmetric(saved: Checkpoint, proto: onnx.ModelProto) -> None:
    samples = [collect(2, Scenario(7, 7, 2), 32, seed=1)]
    graph = quantize(proto, samples, symmetric=True)
    check(graph, saved.card)
    held = {t.name: onnx.numpy_helper.to_array(t) for t in graph.graph.initializer}
    zeros = [held[n.input[2]] for n in graph.graph.node if n.op_type.endswith("quantizeLinear")]
    zeros += [held[n.input[2]] for n in graph.graph.node if n.op_type == "QuantizeLinear"]
    assert zeros
    assert all(z.dtype == np.int8 and not z.any() for z in zeros)
    kinds = {t.data_type for t in graph.graph.initializer}
    assert onnx.TensorProto.INT32 not in kinds
    # The first convolution and the readout stay in float.
    assert len(weights_of(graph)) == 4
