"""The gates: what they notice, what they count, and the reference they go by."""

import dataclasses
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from snakekit.export import pipeline
from snakekit.export.observations import collect_boards
from snakekit.export.options import ExportConfig
from snakekit.export.parity import batch_sizes, close_gate, exact_gate, gate_of
from snakekit.export.samples import Sample, Truth, TruthError, in_batches, pack, unpack
from snakekit.export.session import Session
from snakekit.trainer.checkpoint import Checkpoint
from snakekit.trainer.generate import infer
from snakekit.trainer.model import Net
from snakekit.trainer.scenario import Scenario

QUICK = ExportConfig(observations=128)


def test_the_sizes_tried() -> None:
    assert batch_sizes(256) == (1, 2, 7, 256)
    assert batch_sizes(4) == (1, 2, 4)
    assert batch_sizes(1) == (1,)


@pytest.mark.parametrize("kind", ["nan", "place", "batch", "drift", ""])
def test_each_fault_is_noticed(kind: str, truth: Truth, net: Net) -> None:
    def run(obs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        policy, value = infer(net, obs)
        if kind == "nan":
            value[0] = np.nan
        elif kind == "place":
            policy += 0.01 * (len(obs) == 33) * np.arange(len(obs))[:, None]
        elif kind == "batch":
            policy[:, 0] += 9.0 * (len(obs) == 7)
        elif kind == "drift":
            policy[:, 1] -= 1000.0
        return policy, value

    exact = exact_gate(truth, run, most=256, tolerance=1e-4)
    assert exact.passed == (kind == "")
    close = close_gate("int8", truth, run, most=256, agreement=0.9, tolerance=1e-4)
    assert close.passed == (kind == "")
    assert close.figures["observations"] == truth.positions == 192
    if kind == "batch":
        assert close.figures["agreement"] == 1.0
        assert close.figures["agreement_between_batches"] < 0.9


def test_agreement_counts_safe_moves_that_are_no_tie(truth: Truth) -> None:
    allowed = np.array([[1, 1, 0, 1], [1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 1, 1]], bool)
    sample = dataclasses.replace(truth.samples[0], obs=truth.samples[0].obs[:4], allowed=allowed)
    policy = np.array([[1, 0, 9, 0], [1, 0, 0, 0], [0, 1, 2, 3], [1, 0.99, 0, 0]], np.float32)
    other = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 9, 2, 3], [0, 0, 0, 9]], np.float32)
    value = np.zeros(4, np.float32)
    small = Truth((sample,), ((policy, value),))
    order = {obs.tobytes(): row for obs, row in zip(sample.obs, other, strict=True)}

    def fixed(obs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.array([order[o.tobytes()] for o in obs]), np.zeros(len(obs), np.float32)

    gate = close_gate("int8", small, fixed, most=256, agreement=0.98, tolerance=1e-4)
    # The third has one safe move and the fourth is a tie; of the other two one agrees.
    assert gate.figures["compared"] == 2
    assert gate.figures["agreement"] == 0.5
    assert not gate.passed


@pytest.mark.parametrize("kind", ["second seat", "chances", "empty slot", ""])
def test_moves_of_all_seats_and_the_chances_count(kind: str) -> None:
    card = pipeline.untrained("all-seat", 0).card
    sample = collect_boards(2, Scenario(7, 7, 2), 64, seed=1)
    assert sample.allowed.shape == (64, 2, 4)
    assert sample.obs.shape == (64, card.planes, 7, 7)
    assert sample.allowed.any(2).all(1).mean() > 0.5
    policy = np.random.default_rng(2).normal(size=(64, 2, 4)).astype(np.float32)
    value = np.tile(np.float32([1, 0, -1]), (64, 1))
    if kind == "empty slot":
        sample.allowed[:, 1] = False
    truth = Truth((sample,), ((policy, value),))
    rows = {obs.tobytes(): i for i, obs in enumerate(sample.obs)}

    def run(obs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        at = [rows[o.tobytes()] for o in obs]
        found, chances = policy[at], value[at]
        if kind in ("second seat", "empty slot"):
            found[:, 1] *= -1
        if kind == "chances":
            chances[:, 2] += 0.3
        return found, chances

    gate = close_gate("int8", truth, run, most=64, agreement=0.98, tolerance=1e-4)
    assert gate.passed == (kind in ("empty slot", "")), gate.text()
    if kind == "chances":
        # Of chances 0.665, 0.245 and 0.090 the last grows to 0.118.
        assert gate.figures["value_mean_abs"] == pytest.approx(0.0278, abs=2e-4)


def test_each_precision_has_its_own_rule(truth: Truth, net: Net) -> None:
    def run(obs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return infer(net, obs)

    assert gate_of("fp32", truth, run).rule == "every difference below 0.0001"
    assert "99.5%" in gate_of("fp16", truth, run).rule
    assert "98.0%" in gate_of("int8", truth, run).rule
    assert "70.0%" in gate_of("int8", truth, run, agreement=0.7).rule


def test_a_reference_comes_back_whole(truth: Truth, tmp_path: Path) -> None:
    path = tmp_path / "x.parity.npz"
    path.write_bytes(pack(truth, "abc"))
    again = unpack(path, "abc")
    for one, other in zip(truth.samples, again.samples, strict=True):
        assert one.name == other.name
        np.testing.assert_array_equal(one.obs, other.obs)
        np.testing.assert_array_equal(one.allowed, other.allowed)
    for a, b in zip(truth.answers, again.answers, strict=True):
        np.testing.assert_array_equal(a[0], b[0])
        np.testing.assert_array_equal(a[1], b[1])


def test_references_that_cannot_be_used(truth: Truth, tmp_path: Path) -> None:
    path = tmp_path / "x.parity.npz"
    with pytest.raises(TruthError, match=r"cannot be read \(No such file"):
        unpack(path, "abc")
    blob = pack(truth, "abc")
    path.write_bytes(blob)
    with pytest.raises(TruthError, match="belongs to weights abc, the model has def"):
        unpack(path, "def")
    for bad in (b"", b"text", blob[: len(blob) // 2], blob[:-30]):
        path.write_bytes(bad)
        with pytest.raises(TruthError, match=r"x\.parity\.npz"):
            unpack(path, "abc")
    np.savez(path, format=np.int64(2), weights_sha256=np.array("abc"), names=np.array(["a"]))
    with pytest.raises(TruthError, match="format 2, this version reads 1"):
        unpack(path, "abc")
    shapes = {"obs0": truth.samples[0].obs, "allowed0": truth.samples[0].allowed[:3]}
    rest = {"policy0": truth.answers[0][0], "value0": truth.answers[0][1]}
    head = {"format": np.int64(1), "weights_sha256": np.array("abc"), "names": np.array(["a"])}
    np.savez(path, **head, **shapes, **rest)
    with pytest.raises(TruthError, match="no reference file"):
        unpack(path, "abc")


def test_verifying_notices_a_file_that_answers_otherwise(
    saved: Checkpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: Callable
) -> None:
    pipeline.export(saved, QUICK, tmp_path, origin="x")
    path = tmp_path / "small.onnx"
    proto = onnx.load(path)
    tensor = next(t for t in proto.graph.initializer if t.name.endswith("policy.bias"))
    values = onnx.numpy_helper.to_array(tensor).copy()
    for shift, code, words in ((1e-3, 1, "policy_max_abs 0.001"), (np.nan, 2, "not finite")):
        changed = values + np.array([shift, 0, 0, 0], np.float32)
        tensor.CopyFrom(onnx.numpy_helper.from_array(changed, tensor.name))
        onnx.save(proto, path)
        assert command("--verify", path) == code
        said = capsys.readouterr().err
        assert words in said
        assert said.count("\n") == 1


def test_verifying_needs_neither_torch_nor_onnx(saved: Checkpoint, tmp_path: Path) -> None:
    pipeline.export(saved, QUICK, tmp_path, origin="x")
    code = (
        "import sys\nfrom snakekit.__main__ import main\n"
        f"code = main(['export', '--verify', {str(tmp_path / 'small.onnx')!r}])\n"
        "print(code, sorted({'torch', 'onnx', 'safetensors'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"


def test_batches_are_joined_in_order(truth: Truth, proto: onnx.ModelProto) -> None:
    session = Session(proto.SerializeToString())
    obs = truth.samples[0].obs[:10]
    whole, parts = session(obs), in_batches(session, obs, 3)
    np.testing.assert_allclose(whole[0], parts[0], atol=1e-5)
    assert isinstance(truth.samples[0], Sample)
