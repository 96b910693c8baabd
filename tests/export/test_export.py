import argparse
import dataclasses
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
import torch

from snakekit import core
from snakekit.export import cli, parity, pipeline
from snakekit.export.int8 import quantize
from snakekit.export.observations import collect, collect_all, scenarios_of
from snakekit.export.onnxfile import (
    ModelFileError,
    check,
    describe,
    to_onnx,
    with_card,
    write_file,
)
from snakekit.export.options import ExportConfig
from snakekit.export.parity import GateError, close_gate, exact_gate
from snakekit.export.session import Session
from snakekit.runtime.contract import CARD_KEY, load_card
from snakekit.trainer import checkpoint as store
from snakekit.trainer.checkpoint import Checkpoint
from snakekit.trainer.generate import infer
from snakekit.trainer.scenario import Scenario

QUICK = ExportConfig(observations=256, calibration=64)


@pytest.fixture(scope="session")
def proto(saved: Checkpoint) -> onnx.ModelProto:
    return to_onnx(store.restore_model(saved, origin="x"), saved.card)


def command(*words: str) -> int:
    parser = argparse.ArgumentParser()
    cli.add_arguments(parser)
    return cli.run(parser.parse_args(words))


def test_the_file_answers_as_the_net(saved: Checkpoint, tmp_path: Path) -> None:
    path, gate = pipeline.export(saved, QUICK, tmp_path, origin="x")
    assert gate.passed
    assert sorted(p.name for p in tmp_path.iterdir()) == ["small.json", "small.onnx"]
    found = describe(path)
    card = load_card(found.card, origin="small.onnx")
    assert load_card((tmp_path / "small.json").read_bytes(), origin="json") == card
    assert card == msgspec.structs.replace(saved.card, opset=20, parity=gate.figures)
    assert found.inputs == [f"obs: uint8[?, {core.PLANES[2]}, ?, ?]"]
    assert found.outputs == ["policy: float[?, 4]", "value: float[?, 1]"]
    assert found.opset == 20
    # On a board that no gate tried, at a size of its own.
    obs = collect(2, Scenario(9, 9, 3), 32, seed=77).obs
    policy, value = infer(store.restore_model(saved, origin="x").eval(), obs)
    again, guess = Session(path.read_bytes())(obs)
    np.testing.assert_allclose(again, policy, atol=1e-4)
    np.testing.assert_allclose(guess, value, atol=1e-4)


def test_the_graph_is_clean(proto: onnx.ModelProto, saved: Checkpoint) -> None:
    check(proto, saved.card)
    kinds = {node.op_type for node in proto.graph.node}
    assert not kinds & {"Where", "Shape", "Gather", "Expand", "Reshape", "Transpose", "Loop", "If"}
    blob = with_card(proto, saved.card)
    assert str(Path(pipeline.__file__).parents[1]).encode() not in blob
    assert b".py" not in blob


def test_the_article_net_exports(tmp_path: Path) -> None:
    saved = pipeline.untrained("article", 0)
    assert saved.card.parameters == 29_886_725
    assert saved.card.method == "untrained, random weights"
    graph = to_onnx(store.restore_model(saved, origin="x"), saved.card)
    check(graph, saved.card)
    sample = collect(1, Scenario(11, 11, 4), 24, seed=1)
    assert sample.obs.shape == (24, 17, 23, 23)
    model = store.restore_model(saved, origin="x").eval()
    session = Session(with_card(graph, saved.card))
    assert exact_gate(lambda obs: infer(model, obs), session, [sample], tolerance=1e-4).passed


def test_observations_are_real_and_repeatable(saved: Checkpoint) -> None:
    names = [str(s) for s in scenarios_of(saved.card)]
    assert names == ["11x11x2", "11x11x4", "7x7x2"]
    first = collect_all(saved.card, 60, 3)
    again = collect_all(saved.card, 60, 3)
    assert [s.name for s in first] == names
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a.obs, b.obs)
        assert len(a.obs) == 20
        assert (a.obs[:, 1].sum((1, 2)) == 1).all()
        assert a.allowed.any(1).mean() > 0.8


def test_the_gate_notices_a_wrong_weight(
    saved: Checkpoint, proto: onnx.ModelProto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = onnx.ModelProto()
    broken.CopyFrom(proto)
    tensor = next(t for t in broken.graph.initializer if t.name.endswith("policy.bias"))
    values = onnx.numpy_helper.to_array(tensor) + np.float32(2e-4)
    tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
    monkeypatch.setattr(pipeline, "to_onnx", lambda *_: broken)
    with pytest.raises(GateError, match=r"fp32 refused.*policy_max_abs 0\.0002"):
        pipeline.export(saved, QUICK, tmp_path, origin="x")
    assert list(tmp_path.iterdir()) == []


def test_the_gate_notices_nan_and_dependence_on_place(saved: Checkpoint) -> None:
    sample = collect(2, Scenario(7, 7, 2), 64, seed=1)
    model = store.restore_model(saved, origin="x").eval()

    def reference(obs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return infer(model, obs)

    class Faulty(Session):
        def __init__(self, kind: str) -> None:
            self.kind = kind

        def __call__(self, obs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            policy, value = infer(model, obs)
            if self.kind == "nan":
                value[0] = np.nan
            elif self.kind == "place":
                policy += 0.01 * (len(obs) == 33) * np.arange(len(obs))[:, None]
            elif self.kind == "batch":
                policy += 0.01 * (len(obs) == 7)
            return policy, value

    for kind in ("nan", "place", "batch"):
        assert not exact_gate(reference, Faulty(kind), [sample], tolerance=1e-4).passed
    assert exact_gate(reference, Faulty(""), [sample], tolerance=1e-4).passed
    assert not close_gate(reference, Faulty("nan"), [sample], agreement=0.5).passed


def test_agreement_counts_safe_moves_that_are_no_tie() -> None:
    sample = collect(2, Scenario(7, 7, 2), 4, seed=1)
    allowed = np.array([[1, 1, 0, 1], [1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 1, 1]], bool)
    sample = dataclasses.replace(sample, allowed=allowed)
    policy = np.array([[1, 0, 9, 0], [1, 0, 0, 0], [0, 1, 2, 3], [1, 0.99, 0, 0]], np.float32)
    other = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 9, 2, 3], [0, 0, 0, 9]], np.float32)
    value = np.zeros(4, np.float32)

    class Fixed(Session):
        def __init__(self) -> None:
            pass

        def __call__(self, obs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return other, value

    gate = close_gate(lambda _: (policy, value), Fixed(), [sample], agreement=0.98)
    # The third has one safe move and the fourth is a tie; of the other two one agrees.
    assert gate.figures["compared"] == 2
    assert gate.figures["agreement"] == 0.5
    assert not gate.passed


def test_int8_is_gated_and_marked(saved: Checkpoint, tmp_path: Path) -> None:
    config = msgspec.structs.replace(QUICK, precision="int8", agreement=0.5, name="other")
    path, gate = pipeline.export(saved, config, tmp_path, origin="x")
    assert path.name == "other.int8.onnx"
    found = describe(path)
    card = load_card(found.card, origin="x")
    assert card.precision == "int8"
    assert card.calibration is not None
    assert "min-max" in card.calibration
    assert card.parity["agreement"] == gate.figures["agreement"] > 0.5
    assert found.operators["QuantizeLinear"] > 0
    assert found.inputs == [f"obs: uint8[?, {core.PLANES[2]}, ?, ?]"]


def test_int8_that_plays_otherwise_is_refused(
    saved: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def careless(graph: onnx.ModelProto, *_: object, **__: object) -> onnx.ModelProto:
        tensor = next(t for t in graph.graph.initializer if t.name.endswith("policy.bias"))
        tensor.CopyFrom(onnx.numpy_helper.from_array(np.float32([9, 0, 0, 0]), tensor.name))
        return graph

    monkeypatch.setattr(pipeline.int8, "quantize", careless)
    config = msgspec.structs.replace(QUICK, precision="int8")
    with pytest.raises(GateError, match=r"int8 refused.*98\.0%.*agreement 0\.\d+.*kl_mean"):
        pipeline.export(saved, config, tmp_path, origin="x")
    assert list(tmp_path.iterdir()) == []


def test_the_range_is_reduced_on_request(saved: Checkpoint, proto: onnx.ModelProto) -> None:
    samples = [collect(2, Scenario(7, 7, 2), 32, seed=1)]
    largest = {}
    for reduce_range in (True, False):
        graph = quantize(proto, samples, reduce_range=reduce_range)
        check(graph, saved.card)
        weights = [
            np.abs(onnx.numpy_helper.to_array(t).astype(int)).max()
            for t in graph.graph.initializer
            if t.data_type == onnx.TensorProto.INT8 and len(t.dims) == 4
        ]
        largest[reduce_range] = max(weights)
    assert largest[True] <= 64
    assert largest[False] > 100


def test_a_file_is_whole_or_absent(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelFileError, match="cannot be written"):
        write_file(tmp_path / "file" / "model.onnx", b"x")
    write_file(tmp_path / "deep" / "model.onnx", b"x")
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["model.onnx"]


def test_the_contract_is_checked(proto: onnx.ModelProto, saved: Checkpoint) -> None:
    wrong = msgspec.structs.replace(saved.card, planes=5)
    with pytest.raises(ModelFileError, match="expected"):
        check(proto, wrong)
    renamed = onnx.ModelProto()
    renamed.CopyFrom(proto)
    renamed.graph.node.pop()
    with pytest.raises(ModelFileError, match="invalid"):
        check(renamed, saved.card)


def test_the_command_exports_and_shows(
    saved: Checkpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store.save(tmp_path / "run" / "checkpoints" / "step-000000005", saved)
    out = tmp_path / "out"
    words = ("--out", str(out), "--observations", "64", "--name", "mine")
    assert command(str(tmp_path / "run"), *words) == 0
    assert "policy_max_abs" in capsys.readouterr().out
    assert command("--show", str(out / "mine.onnx")) == 0
    shown = capsys.readouterr().out
    for word in ("mine", "uint8", "Conv", "opset", "made up for a test", "weights_sha256"):
        assert word in shown
    # A difference of 1e-12 is not to be had, so this gate fails.
    assert command(str(tmp_path / "run"), *words, "--tolerance", "1e-12", "--name", "no") == 1
    assert "refused" in capsys.readouterr().err
    assert not (out / "no.onnx").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "either a checkpoint or --init"),
        (("x", "--init", "compact", "--out", "o"), "either a checkpoint or --init"),
        (("nowhere",), "--out: missing"),
        (("nowhere", "--out", "o"), "no checkpoint in it"),
        (("--show", "nowhere.onnx"), "cannot be read"),
        (("nowhere", "--out", "o", "--observations", "3"), "observations (from --observations)"),
        (("nowhere", "--out", "o", "--precision", "fp8"), "one of fp32, int8"),
    ],
)
def test_bad_input_is_one_sentence(
    words: tuple[str, ...],
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(*words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x08\x0a" * 40])
def test_other_files_are_no_models(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="not an ONNX file"):
        describe(path)


def test_a_damaged_checkpoint_is_refused(
    saved: Checkpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store.save(tmp_path / "c", saved)
    path = tmp_path / "c" / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    assert command(str(tmp_path / "c"), "--out", str(tmp_path / "o")) == 2
    assert "cut short or altered" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


def test_random_weights_repeat() -> None:
    first, again = pipeline.untrained("compact", 4), pipeline.untrained("compact", 4)
    assert first.card.weights_sha256 == again.card.weights_sha256
    assert first.card.weights_sha256 != pipeline.untrained("compact", 5).card.weights_sha256
    assert CARD_KEY == "snakekit_card"
    assert parity.TIE > 0
    assert torch.get_num_threads() == 1


@pytest.mark.slow
def test_the_article_net_passes_its_int8_gate(tmp_path: Path) -> None:
    words = ("--init", "article", "--precision", "int8", "--observations", "256")
    assert command(*words, "--calibration", "64", "--out", str(tmp_path)) == 0
    assert (tmp_path / "article-untrained.int8.onnx").stat().st_size < 31_000_000
