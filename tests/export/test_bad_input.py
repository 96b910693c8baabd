"""Bad input: one sentence that says what was expected, exit code 2, nothing written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest

from snakekit.export import pipeline
from snakekit.export.onnxfile import ModelFileError, describe, with_card
from snakekit.export.options import ExportConfig
from snakekit.runtime.contract import CARD_KEY, dump_card
from snakekit.runtime.files import write_whole
from snakekit.runtime.models import find_model
from snakekit.trainer import checkpoint as store
from snakekit.trainer.checkpoint import Checkpoint

Command = Callable[..., int]


@pytest.fixture
def refused(
    command: Command, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., None]:
    """Run the command and check that it refuses, names `words`, and writes nothing."""

    def run(words: str, *arguments: object) -> None:
        before = sorted(tmp_path.rglob("*"))
        assert command(*arguments) == 2
        said = capsys.readouterr()
        assert words in said.err
        assert said.err.startswith("snakekit export: ")
        assert said.err.count("\n") == 1
        assert said.out == ""
        assert sorted(tmp_path.rglob("*")) == before

    return run


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "either a checkpoint or --init"),
        (("x", "--init", "compact", "--out", "o"), "either a checkpoint or --init"),
        (("nowhere",), "--out: missing"),
        (("nowhere", "--out", "o"), "no checkpoint in it"),
        (("--show", "nowhere.onnx"), "cannot be read"),
        (("--show", "nowhere.engine"), "cannot be read"),
        (("--verify", "nowhere.onnx"), "no file nowhere.onnx; expected an ONNX file"),
        (("--verify", "x.onnx", "--show", "x.onnx"), "give one of --out, --show and --verify"),
        (("x", "--verify", "x.onnx"), "takes a model, not a checkpoint"),
        (("nowhere", "--out", "o", "--observations", "3"), "observations (from --observations)"),
        (("nowhere", "--out", "o", "--precision", "fp8"), "one of fp32, fp16, int8"),
        (("nowhere", "--out", "o", "--target", "coreml"), "one of onnx, tensorrt, tensorrt-rtx"),
        (("nowhere", "--out", "o", "--batch", "8,4,256"), "batch: expected least, usual, largest"),
        (("nowhere", "--out", "o", "--batch", "8"), "batch (from --batch)"),
        (("nowhere", "--out", "o", "--batch", "0,1,2"), "batch (from --batch)"),
        (("nowhere", "--out", "o", "--agreement", "2"), "agreement (from --agreement)"),
        (
            ("nowhere", "--out", "o", "--compute-capability", "8.6"),
            "only --target tensorrt-rtx builds for a GPU that is not here",
        ),
        (
            ("x", "--out", "o", "--compute-capability", "best", "--target", "tensorrt-rtx"),
            "compute_capability (from --compute-capability)",
        ),
        (("--verify", "x.onnx", "--backend", "tpu"), "backend (from --backend)"),
        (("--verify", "standard", "--backend", "triton"), "--reference: missing"),
    ],
)
def test_arguments(
    refused: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(message, *words)


OTHER = b"\x08\x0a\x12\x04test"


def foreign(card: str | None) -> bytes:
    """Return a sound ONNX file that is not one of ours."""
    value = onnx.helper.make_tensor_value_info("x", 1, ["n"])
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Identity", ["x"], ["y"])],
        "other",
        [value],
        [onnx.helper.make_tensor_value_info("y", 1, ["n"])],
    )
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)])
    proto.ir_version = 10
    if card is not None:
        onnx.helper.set_model_props(proto, {CARD_KEY: card})
    return bytes(proto.SerializeToString())


def files(saved: Checkpoint, proto: onnx.ModelProto) -> dict[str, tuple[bytes, str]]:
    """Return files that are no model of ours, and what is said of each."""
    whole = with_card(proto, saved.card)
    strange = onnx.ModelProto()
    strange.CopyFrom(proto)
    tensor = next(t for t in strange.graph.initializer if t.name == "policy.bias")
    nan = np.float32([0, np.nan, 0, np.inf])
    tensor.CopyFrom(onnx.numpy_helper.from_array(nan, tensor.name))
    later = dump_card(saved.card).replace('"schema":1', '"schema":2')
    return {
        "empty": (b"", "not an ONNX file; expected a model made by snakekit export"),
        "text": (b"hello, I am a model\n" * 9, "not an ONNX file; expected a model"),
        "cut": (whole[: len(whole) // 2], "cut short after"),
        "foreign": (foreign(None), "no model card (snakekit_card); expected a model made by"),
        "torn": (foreign("{"), "the model card is not JSON"),
        "future": (foreign(later), "model card schema 2, this version reads schema 1"),
        "nan": (with_card(strange, saved.card), "not finite"),
    }


@pytest.mark.parametrize("kind", ["empty", "text", "cut", "foreign", "torn", "future", "nan"])
def test_files(
    refused: Callable[..., None],
    saved: Checkpoint,
    proto: onnx.ModelProto,
    tmp_path: Path,
    kind: str,
) -> None:
    content, words = files(saved, proto)[kind]
    path = tmp_path / "bad.onnx"
    path.write_bytes(content)
    for arguments in (("--show", path), (path, "--out", tmp_path / "out")):
        refused(words, *arguments)
    # NaN cannot be seen without the onnx package, but it can be heard; see test_parity.
    if kind != "nan":
        refused(words, "--verify", path)


def changed(proto: onnx.ModelProto, kind: str) -> onnx.ModelProto:
    """Return a graph that is not the one that its card describes."""
    graph = onnx.ModelProto()
    graph.CopyFrom(proto)
    tensor = next(t for t in graph.graph.initializer if t.name == "stem.weight")
    if kind == "planes":
        graph.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 17
    elif kind == "rows":
        graph.graph.input[0].type.tensor_type.shape.dim[2].dim_value = 9
    elif kind == "inputs":
        del graph.graph.input[:]
    elif kind == "operator":
        graph.graph.node[5].op_type = "Frobnicate"
    elif kind == "short":
        tensor.raw_data = tensor.raw_data[:-1]
    elif kind == "outside":
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="/etc/hostname")
    return graph


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("planes", "obs: uint8[?, 17, ?, ?]; policy"),
        ("rows", "but its card asks for obs: uint8[?, 22, ?, ?]; policy: float[?, 4]; value"),
        ("inputs", "takes and gives policy: float[?, 4]"),
        ("operator", "bad.onnx: the graph is invalid: No Op registered for Frobnicate"),
        ("short", "bad.onnx: the graph is invalid"),
        ("outside", "weights lie outside of it; expected one whole file"),
    ],
)
def test_graphs_that_are_not_what_their_card_says(
    refused: Callable[..., None],
    saved: Checkpoint,
    proto: onnx.ModelProto,
    tmp_path: Path,
    kind: str,
    words: str,
) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(with_card(changed(proto, kind), saved.card))
    refused(words, "--show", path)
    refused(words, path, "--out", tmp_path / "o")
    refused("bad.onnx: ", "--verify", path)


def test_damage_is_always_one_sentence(tmp_path: Path) -> None:
    blob = find_model("compact.int8").read_bytes()
    random = np.random.default_rng(7)
    path = tmp_path / "bad.onnx"
    refused = 0
    for _ in range(60):
        damaged = bytearray(blob)
        # The graph's names and operators stand at the start, the weights behind them.
        for at in (*random.integers(0, len(blob), 3), random.integers(0, 6000)):
            damaged[at] = random.integers(256)
        path.write_bytes(damaged)
        try:
            describe(path)
        except ModelFileError:
            refused += 1
    assert 20 < refused < 60


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"encoder": 99}, "bad.onnx: made for encoder version 99, this program has 1, 2, 3"),
        ({"planes": 99}, "its card says 99 planes"),
        ({"boards": []}, "model card: Expected `array` of length >= 1 - at `$.boards`"),
        ({"boards": [(-3, 0)]}, "model card: Expected `int` >= 3 - at `$.boards[0][0]`"),
        ({"snakes": []}, "at `$.snakes`"),
        ({"rulesets": []}, "at `$.rulesets`"),
        ({"name": "../../elsewhere"}, "at `$.name`"),
        ({"weights_sha256": "../.."}, "at `$.weights_sha256`"),
        ({"precision": "fp8"}, "model card: Invalid enum value 'fp8' - at `$.precision`"),
    ],
)
def test_cards_that_cannot_be_used(
    refused: Callable[..., None],
    saved: Checkpoint,
    proto: onnx.ModelProto,
    tmp_path: Path,
    changes: dict[str, Any],
    words: str,
) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(with_card(proto, msgspec.structs.replace(saved.card, **changes)))
    refused(words, "--show", path)
    refused(words, path, "--out", tmp_path / "o")
    refused(words, "--verify", path)


def test_a_card_with_the_options_of_a_giant(
    refused: Callable[..., None], saved: Checkpoint, proto: onnx.ModelProto, tmp_path: Path
) -> None:
    options = {**saved.card.net_options, "channels": 1_000_000}
    path = tmp_path / "bad.onnx"
    path.write_bytes(with_card(proto, msgspec.structs.replace(saved.card, net_options=options)))
    words = "expected stem.weight of shape (1000000, 22, 3, 3)"
    refused(words, path, "--out", tmp_path / "o")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"encoder": 99}, "made for encoder version 99, this program has"),
        ({"planes": 99}, "its card says 99 planes"),
        ({"view": (5, 5)}, "has the view (5, 5)"),
        ({"net": "other"}, "unknown net 'other'"),
        ({"net_options": {}}, "is missing from the weights"),
    ],
)
def test_checkpoints_that_do_not_fit(
    refused: Callable[..., None],
    saved: Checkpoint,
    tmp_path: Path,
    changes: dict[str, Any],
    words: str,
) -> None:
    card = msgspec.structs.replace(saved.card, **changes)
    store.save(tmp_path / "c", Checkpoint(card=card, weights=saved.weights))
    refused(words, tmp_path / "c", "--out", tmp_path / "o")


def test_weights_that_are_not_finite(
    refused: Callable[..., None], saved: Checkpoint, tmp_path: Path
) -> None:
    weights = {name: values.copy() for name, values in saved.weights.items()}
    weights["stem.weight"][0, 0, 0, :2] = np.nan
    card = store.finish_card(saved.card, weights, 5)
    store.save(tmp_path / "c", Checkpoint(card=card, weights=weights))
    words = "2 numbers of tensor stem.weight are not finite; expected finite weights"
    refused(words, tmp_path / "c", "--out", tmp_path / "o")


def test_a_damaged_checkpoint(
    refused: Callable[..., None], saved: Checkpoint, tmp_path: Path
) -> None:
    store.save(tmp_path / "c", saved)
    path = tmp_path / "c" / "weights.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    refused("cut short or altered", tmp_path / "c", "--out", tmp_path / "o")


def test_a_model_without_its_reference(
    refused: Callable[..., None], saved: Checkpoint, tmp_path: Path
) -> None:
    pipeline.export(saved, ExportConfig(observations=64), tmp_path, origin="x")
    (tmp_path / "small.parity.npz").rename(tmp_path / "elsewhere.npz")
    words = "expected the reference that snakekit export writes beside a model, or --reference"
    refused(words, "--verify", tmp_path / "small.onnx")
    (tmp_path / "elsewhere.npz").write_bytes(b"PK\3\4")
    reference = ("--reference", tmp_path / "elsewhere.npz")
    refused("no reference file", "--verify", tmp_path / "small.onnx", *reference)


def test_an_output_that_cannot_be_written(
    refused: Callable[..., None], saved: Checkpoint, tmp_path: Path
) -> None:
    store.save(tmp_path / "c", saved)
    (tmp_path / "file").write_text("")
    words = ("--out", tmp_path / "file" / "x", "--observations", 64)
    refused("cannot be written: Not a directory", tmp_path / "c", *words)


def test_a_file_is_whole_or_absent(tmp_path: Path) -> None:
    write_whole(tmp_path / "deep" / "model.onnx", b"x")
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["model.onnx"]
    assert issubclass(ModelFileError, ValueError)
