"""From a checkpoint to files that answer as it does."""

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
import torch

from snakekit import core
from snakekit.export import pipeline
from snakekit.export.observations import collect, collect_all, scenarios_of
from snakekit.export.onnxfile import (
    ModelFileError,
    check,
    checkpoint_of,
    describe,
    to_onnx,
    with_card,
)
from snakekit.export.options import ExportConfig
from snakekit.export.parity import GateError, exact_gate
from snakekit.export.samples import answer, unpack
from snakekit.export.session import Session
from snakekit.runtime.contract import CARD_KEY, load_card
from snakekit.trainer import checkpoint as store
from snakekit.trainer.checkpoint import Checkpoint
from snakekit.trainer.generate import infer
from snakekit.trainer.model import Net
from snakekit.trainer.scenario import Scenario

QUICK = ExportConfig(observations=256, calibration=64)


def test_the_file_answers_as_the_net(saved: Checkpoint, net: Net, tmp_path: Path) -> None:
    steps: list[str] = []
    done = pipeline.export(saved, QUICK, tmp_path, origin="x", step=steps.append)
    assert [g.passed for g in done.gates] == [True]
    names = ["small.json", "small.onnx", "small.parity.npz"]
    assert sorted(p.name for p in tmp_path.iterdir()) == names
    assert sorted(p.name for p in done.files) == names
    assert done.files[0].name == "small.onnx"
    assert steps[0] == "playing games"
    assert steps[-1] == "writing"
    found = describe(tmp_path / "small.onnx")
    assert load_card((tmp_path / "small.json").read_bytes(), origin="json") == found.card
    figures = done.gates[0].figures
    assert found.card == msgspec.structs.replace(saved.card, opset=18, parity=figures)
    assert found.inputs == [f"obs: uint8[?, {core.PLANES[2]}, ?, ?]"]
    assert found.outputs == ["policy: float[?, 4]", "value: float[?, 1]"]
    assert found.opset == 18
    # On a board that no gate tried, at a size of its own.
    obs = collect(2, Scenario(9, 9, 3), 32, seed=77).obs
    policy, value = infer(net, obs)
    again, guess = Session((tmp_path / "small.onnx").read_bytes())(obs)
    np.testing.assert_allclose(again, policy, atol=1e-4)
    np.testing.assert_allclose(guess, value, atol=1e-4)


def test_the_work_of_a_net_is_counted(saved: Checkpoint, tmp_path: Path) -> None:
    pipeline.export(saved, QUICK, tmp_path, origin="x")
    found = describe(tmp_path / "small.onnx")
    planes, channels, hidden = core.PLANES[2], 16, 16
    convolutions = 9 * 11 * 11 * (planes * channels + 4 * channels * channels)
    assert found.multiply_adds == convolutions + 3 * channels * hidden + hidden * 5
    assert found.board == (11, 11)


def test_the_graph_is_clean(proto: onnx.ModelProto, saved: Checkpoint) -> None:
    check(proto, saved.card)
    kinds = {node.op_type for node in proto.graph.node}
    assert not kinds & {"Where", "Shape", "Gather", "Expand", "Reshape", "Transpose", "Loop", "If"}
    blob = with_card(proto, saved.card)
    assert str(Path(pipeline.__file__).parents[1]).encode() not in blob
    assert b".py" not in blob


def test_a_simplifier_finds_nothing_to_take_away(proto: onnx.ModelProto) -> None:
    onnxslim = pytest.importorskip("onnxslim", reason="needs onnxslim")
    assert len(onnxslim.slim(proto).graph.node) == len(proto.graph.node)


def test_only_a_conversion_reads_the_bytes(proto: onnx.ModelProto, saved: Checkpoint) -> None:
    wrong = onnx.ModelProto()
    wrong.CopyFrom(proto)
    node = onnx.helper.make_node("Slice", ["obs", "a", "b"], ["cut"], "early")
    for name in "ab":
        wrong.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros(1, np.int64), name))
    wrong.graph.node.insert(0, node)
    with pytest.raises(ModelFileError, match=r"node early \(Slice\) reads the uint8 input"):
        check(wrong, saved.card)


def test_the_article_net_exports() -> None:
    saved = pipeline.untrained("article", 0)
    assert saved.card.parameters == 29_886_725
    assert saved.card.method == "untrained, random weights"
    model = store.restore_model(saved, origin="x").eval()
    graph = to_onnx(model, saved.card)
    check(graph, saved.card)
    sample = collect(1, Scenario(11, 11, 4), 24, seed=1)
    assert sample.obs.shape == (24, 17, 23, 23)
    truth = answer(lambda obs: infer(model, obs), [sample], 24)
    session = Session(with_card(graph, saved.card))
    assert exact_gate(truth, session, most=8, tolerance=1e-4).passed


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


def test_a_refused_export_leaves_nothing(
    saved: Checkpoint, proto: onnx.ModelProto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = onnx.ModelProto()
    broken.CopyFrom(proto)
    tensor = next(t for t in broken.graph.initializer if t.name.endswith("policy.bias"))
    values = onnx.numpy_helper.to_array(tensor) + np.float32(2e-4)
    tensor.CopyFrom(onnx.numpy_helper.from_array(values, tensor.name))
    monkeypatch.setattr(pipeline, "to_onnx", lambda *_: broken)
    with pytest.raises(GateError, match=r"fp32 refused.*policy_max_abs 0\.0002"):
        pipeline.export(saved, QUICK, tmp_path / "out", origin="x")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing(
    saved: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(path: Path, blob: bytes) -> None:
        if path.suffix == ".npz":
            raise OSError(28, "No space left on device")
        path.write_bytes(blob)

    monkeypatch.setattr(pipeline, "write_whole", write)
    with pytest.raises(ModelFileError, match=r"small\.parity\.npz: cannot be written: No space"):
        pipeline.export(saved, QUICK, tmp_path, origin="x")
    assert list(tmp_path.iterdir()) == []


def test_an_exported_file_is_a_checkpoint(
    saved: Checkpoint, tmp_path: Path, command: Callable[..., int]
) -> None:
    pipeline.export(saved, QUICK, tmp_path, origin="x")
    again = checkpoint_of(tmp_path / "small.onnx")
    assert again.card == saved.card
    for name, values in saved.weights.items():
        np.testing.assert_array_equal(again.weights[name], values)
    words = ("--out", tmp_path / "b", "--observations", 64, "--precision", "fp16", "--name", "two")
    assert command(tmp_path / "small.onnx", *words) == 0
    made = sorted(p.name for p in (tmp_path / "b").iterdir())
    assert made == ["two.fp16.json", "two.fp16.onnx", "two.parity.npz"]
    assert command(tmp_path / "b" / "two.fp16.onnx", "--out", tmp_path / "c") == 2
    blob = (tmp_path / "small.onnx").read_bytes()
    at = blob.index(saved.weights["readout.bias"].tobytes())
    (tmp_path / "small.onnx").write_bytes(blob[:at] + b"\0\0\0\0" + blob[at + 4 :])
    with pytest.raises(ModelFileError, match="its weights are not those that its card names"):
        checkpoint_of(tmp_path / "small.onnx")


@pytest.mark.parametrize("options", [{}, {"attention": 2, "blocks": 1}])
def test_a_file_for_all_seats_is_a_checkpoint(
    every: Callable[..., Checkpoint], tmp_path: Path, options: dict[str, int]
) -> None:
    saved = every(**options)
    graph = to_onnx(store.restore_model(saved, origin="x").eval(), saved.card)
    names = {t.name for t in graph.graph.initializer}
    assert "to_outcome.weight.T" in names
    assert "to_draw.weight" in names
    path = tmp_path / "every.onnx"
    path.write_bytes(with_card(graph, saved.card))
    again = checkpoint_of(path)
    assert again.card == saved.card
    for name, values in saved.weights.items():
        np.testing.assert_array_equal(again.weights[name], values)


def test_the_contract_is_checked(proto: onnx.ModelProto, saved: Checkpoint) -> None:
    wrong = msgspec.structs.replace(saved.card, planes=5)
    with pytest.raises(ModelFileError, match=r"its card asks for obs: uint8\[\?, 5, \?, \?\]"):
        check(proto, wrong)
    renamed = onnx.ModelProto()
    renamed.CopyFrom(proto)
    renamed.graph.node.pop()
    with pytest.raises(ModelFileError, match="invalid"):
        check(renamed, saved.card)


def test_the_command_exports_shows_and_verifies(
    saved: Checkpoint,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    command: Callable[..., int],
) -> None:
    store.save(tmp_path / "run" / "checkpoints" / "step-000000005", saved)
    out = tmp_path / "out"
    words = ("--out", out, "--observations", 64, "--name", "mine", "--batch", "1,4,16")
    assert command(tmp_path / "run", *words) == 0
    said = capsys.readouterr()
    for word in ("mine.onnx", "mine.parity.npz", "policy_max_abs", "passed", "run on this CPU"):
        assert word in said.out
    assert said.err == ""
    assert command("--show", out / "mine.onnx") == 0
    shown = capsys.readouterr().out
    for word in ("uint8", "Conv", "opset", "made up for a test", "weights_sha256", "multiply-adds"):
        assert word in shown
    assert command("--verify", out / "mine.onnx") == 0
    assert "passed: every difference below" in capsys.readouterr().out
    # A difference of 1e-12 is not to be had, so this gate fails.
    strict = ("--tolerance", "1e-12")
    assert command("--verify", out / "mine.onnx", *strict) == 1
    assert "asked every difference below 1e-12; found" in capsys.readouterr().err
    assert command(tmp_path / "run", *words, *strict, "--name", "no") == 1
    assert "refused" in capsys.readouterr().err
    assert not list(out.glob("no*"))


def test_random_weights_repeat() -> None:
    first, again = pipeline.untrained("compact", 4), pipeline.untrained("compact", 4)
    assert first.card.weights_sha256 == again.card.weights_sha256
    assert first.card.weights_sha256 != pipeline.untrained("compact", 5).card.weights_sha256
    assert CARD_KEY == "snakekit_card"
    assert torch.get_num_threads() == 1


def test_the_reference_is_the_nets_own_answer(saved: Checkpoint, net: Net, tmp_path: Path) -> None:
    pipeline.export(saved, QUICK, tmp_path, origin="x")
    kept = unpack(tmp_path / "small.parity.npz", saved.card.weights_sha256)
    assert kept.positions >= 256
    for sample, (policy, value) in zip(kept.samples, kept.answers, strict=True):
        wanted = infer(net, sample.obs)
        np.testing.assert_allclose(policy, wanted[0], atol=1e-5)
        np.testing.assert_allclose(value, wanted[1], atol=1e-5)


@pytest.mark.slow
def test_the_article_net_passes_its_int8_gate(tmp_path: Path, command: Callable[..., int]) -> None:
    words = ("--init", "article", "--precision", "int8", "--observations", "256")
    assert command(*words, "--calibration", "64", "--out", tmp_path) == 0
    assert (tmp_path / "article-untrained.int8.onnx").stat().st_size < 31_000_000
    shutil.rmtree(tmp_path)
