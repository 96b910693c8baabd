"""What the server refuses to start with: one sentence, exit code 2."""

import logging
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec
import pytest

from snakekit import core
from snakekit.__main__ import main
from snakekit.runtime.backends import BackendError, load_backend, ort
from snakekit.runtime.backends.random_play import random_card
from snakekit.runtime.contract import CARD_KEY, CardError, ModelCard, dump_card
from snakekit.runtime.models import check_card, find_model
from snakekit.runtime.policy import Policy


@pytest.fixture(autouse=True)
def keep_logging() -> Iterator[None]:
    """The command sets up logging for a process of its own."""
    root, ours = logging.getLogger(), logging.getLogger("snakekit")
    before = (root.handlers[:], root.level, ours.level)
    yield
    root.handlers[:], root.level, ours.level = before


def installed(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    real = metadata.distribution

    def distribution(name: str) -> Any:
        if name.startswith("onnxruntime"):
            if name not in names:
                raise metadata.PackageNotFoundError(name)
            return object()
        return real(name)

    monkeypatch.setattr(metadata, "distribution", distribution)


def test_neither_onnxruntime(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    installed(monkeypatch)
    assert main(["serve", "--host", "127.0.0.1", "--port", "0"]) == 2
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "not installed; run: pip install onnxruntime" in lines[0]
    with pytest.raises(BackendError, match="pip install 'onnxruntime-gpu"):
        ort.check_distribution("cuda")


def test_both_onnxruntimes(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    installed(monkeypatch, "onnxruntime", "onnxruntime-gpu")
    assert main(["serve", "--host", "127.0.0.1", "--port", "0"]) == 2
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "both installed" in lines[0]
    assert "pip uninstall -y onnxruntime onnxruntime-gpu && pip install onnxruntime" in lines[0]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--port", "99999"], "port (from --port): expected a whole number"),
        (["--color", "red"], "color (from --color): expected text matching"),
        (["--mode", "fast"], "one of hybrid, policy, search"),
        (["--config", "none.toml"], "none.toml: cannot be read"),
        (["--batch-sizes", "4,2"], "batch_sizes: expected rising"),
        (["--model", "none.onnx"], "no file none.onnx"),
        (["--backend", "random", "--port", "0", "--host", "203.0.113.1"], "cannot listen"),
    ],
)
def test_bad_options_exit_with_2(words: list[str], part: str, capfd: Any) -> None:
    assert main(["serve", *words]) == 2
    captured = capfd.readouterr()
    assert len(captured.err.splitlines()) == 1
    assert part in captured.err
    assert captured.out == ""


def card(**changes: Any) -> ModelCard:
    return msgspec.structs.replace(random_card(), name="tiny", precision="fp32", **changes)


def tiny_model(path: Path, **changes: Any) -> Path:
    """Write a model of one constant: logits 0, 1, 2, 3 plus the first pixel, value 0.5."""
    onnx = pytest.importorskip("onnx", reason="needs the onnx package to build a model")
    from onnx import TensorProto as Type
    from onnx import helper

    the_card = changes.pop("the_card", card())
    planes = changes.pop("planes", card().planes)
    kind = changes.pop("kind", Type.UINT8)
    moves = changes.pop("moves", 4)
    name = changes.pop("name", "obs")
    inputs = [helper.make_tensor_value_info(name, kind, ["n", planes, "h", "w"])]
    outputs = [
        helper.make_tensor_value_info("policy", Type.FLOAT, ["n", moves]),
        helper.make_tensor_value_info("value", Type.FLOAT, ["n", 1]),
    ]
    nodes = [
        helper.make_node("Cast", [name], ["f"], to=Type.FLOAT),
        helper.make_node("ReduceMax", ["f"], ["m"], axes=[1, 2, 3], keepdims=0),
        helper.make_node("Unsqueeze", ["m", "one"], ["column"]),
        helper.make_node("Add", ["column", "base"], ["policy"]),
        helper.make_node("Mul", ["column", "zero"], ["nothing"]),
        helper.make_node("Add", ["nothing", "half"], ["value"]),
    ]
    initial = [
        helper.make_tensor("one", Type.INT64, [1], [1]),
        helper.make_tensor("base", Type.FLOAT, [1, moves], [float(i) for i in range(moves)]),
        helper.make_tensor("zero", Type.FLOAT, [1, 1], [0.0]),
        helper.make_tensor("half", Type.FLOAT, [1, 1], [0.5]),
    ]
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, initial)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    if the_card is not None:
        helper.set_model_props(model, {CARD_KEY: dump_card(the_card)})
    onnx.save(model, path)
    return path


def test_a_good_model_opens_and_plays(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="needs ONNX Runtime")
    policy = Policy.load(tiny_model(tmp_path / "m.onnx"))
    state = core.State.new_game(11, 11, ["a", "b"], 3)
    logits, values = policy.evaluate(state, [0, 1])
    assert logits.shape == (2, 4)
    assert values.tolist() == [0.5, 0.5]
    safe = [move for move in range(4) if state.safe_mask(0) >> move & 1]
    assert policy.best(state, 0) == max(safe)
    info = policy.backend.describe()
    assert (info.requested, info.actual) == ("cpu", "CPUExecutionProvider")
    assert policy.card.name == "tiny"
    policy.close()


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"the_card": None}, "no model card"),
        ({"planes": 3}, "obs is tensor(uint8)"),
        ({"kind": 1}, "obs is tensor(float)"),
        ({"moves": 5}, "policy is tensor(float) ['n', 5]"),
        ({"name": "image"}, "expected one input obs, found image"),
    ],
)
def test_models_that_do_not_fit_their_card(
    tmp_path: Path, changes: dict[str, Any], part: str, capfd: Any
) -> None:
    pytest.importorskip("onnxruntime", reason="needs ONNX Runtime")
    path = tiny_model(tmp_path / "m.onnx", **changes)
    with pytest.raises(BackendError, match=re.escape(part)):
        load_backend("cpu", path)
    words = ["serve", "--host", "127.0.0.1", "--port", "0", "--no-metrics", "--model", str(path)]
    assert main(words) == 2
    output, error = capfd.readouterr()
    assert output == ""
    assert part in error
    assert "Traceback" not in error
    assert len(error.splitlines()) == 1


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="needs ONNX Runtime")
    path = tmp_path / "m.onnx"
    path.write_bytes(b"not a model")
    with pytest.raises(BackendError, match=r"m\.onnx: not an ONNX file; expected a model") as error:
        load_backend("cpu", path)
    assert str(tmp_path) not in str(error.value)


@pytest.mark.parametrize(
    ("cut", "words"), [(True, "cut short after"), (False, "model card schema 2, this version")]
)
def test_a_cut_file_and_one_of_the_future(
    tmp_path: Path, capfd: Any, cut: bool, words: str
) -> None:
    pytest.importorskip("onnxruntime", reason="needs ONNX Runtime")
    blob = find_model(None).read_bytes()
    later = blob.replace(b'"schema":1', b'"schema":2')
    path = tmp_path / "m.onnx"
    path.write_bytes(blob[: len(blob) // 2] if cut else later)
    arguments = ["--host", "127.0.0.1", "--port", "0", "--no-metrics", "--model", str(path)]
    assert main(["serve", *arguments]) == 2
    output, error = capfd.readouterr()
    assert output == ""
    assert words in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"encoder": 99}, "made for encoder version 99, this program has"),
        ({"planes": 99}, "its card says 99 planes"),
        ({"view": (5, 5)}, "has the view (5, 5)"),
        ({"move_order": ("up", "right", "down", "left")}, "order of moves up, right"),
    ],
)
def test_cards_of_another_version(changes: dict[str, Any], part: str) -> None:
    with pytest.raises(CardError, match=re.escape(part)):
        check_card(card(**changes), origin="m.onnx")
    check_card(card(), origin="m.onnx")


class FakeSession:
    """Says that it runs on the CPU, whatever it was asked for."""

    def __init__(self, *_: Any, **options: Any) -> None:
        assert options["providers"][0][0] == "CUDAExecutionProvider"
        assert options["enable_fallback"] == 0

    def get_providers(self) -> list[str]:
        return ["CPUExecutionProvider"]

    def disable_fallback(self) -> None: ...


def test_cuda_without_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="needs ONNX Runtime")
    path = tiny_model(tmp_path / "m.onnx")
    monkeypatch.setattr(runtime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    words = ["serve", "--backend", "cuda", "--host", "127.0.0.1", "--port", "0", "--no-metrics"]
    assert main([*words, "--model", str(path)]) == 2
    error = capfd.readouterr().err
    assert "backend cuda: this ONNX Runtime has no CUDAExecutionProvider" in error
    assert len(error.splitlines()) == 1
    monkeypatch.setattr(runtime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    monkeypatch.setattr(runtime, "InferenceSession", FakeSession)
    with pytest.raises(BackendError, match="asked for CUDAExecutionProvider and got CPU"):
        load_backend("cuda", path)


def test_models_are_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("snakekit.runtime.models.model_folders", lambda: [tmp_path])
    with pytest.raises(BackendError, match="no shipped model"):
        find_model(None)
    shipped = tmp_path / "standard.onnx"
    shipped.write_bytes(b"")
    assert find_model(None) == find_model("standard") == find_model("standard.onnx") == shipped
    assert find_model(str(shipped)) == shipped
    with pytest.raises(BackendError, match="no file nosuch"):
        find_model("nosuch")
    with pytest.raises(BackendError, match="expected one of cpu, cuda, ort-tensorrt, tensorrt"):
        load_backend("tpu")
