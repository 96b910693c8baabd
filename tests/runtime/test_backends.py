"""Backends that need no GPU: the card in a file, ONNX Runtime's options, the check backend."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from backend_parts import Shifted, answers, batch, card, shipped

from snakekit.runtime.backends import (
    BACKENDS,
    BackendError,
    BackendOptions,
    check_installed,
    load_backend,
    ort,
)
from snakekit.runtime.backends.check import CheckBackend
from snakekit.runtime.backends.onnxcard import card_of, read_card
from snakekit.runtime.backends.random_play import RandomBackend
from snakekit.runtime.config import ServerConfig
from snakekit.runtime.contract import CardError, load_card
from snakekit.runtime.metrics import Metrics
from snakekit.runtime.models import find_model


def test_the_card_is_that_in_the_file() -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs ONNX Runtime")
    session = onnxruntime.InferenceSession(str(shipped()), providers=["CPUExecutionProvider"])
    text = session.get_modelmeta().custom_metadata_map["snakekit_card"]
    assert load_card(text, origin="x") == read_card(shipped())


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99, 0.999])
def test_a_cut_file_says_so(share: float) -> None:
    blob = shipped().read_bytes()
    with pytest.raises(CardError, match=r"x\.onnx: cut short after [\d,]+ bytes; expected a whole"):
        card_of(blob[: int(share * len(blob))], origin="x.onnx")


@pytest.mark.parametrize(
    "content",
    [b"", b"not a model", b"hello world\n" * 50, b"{}", b"\x08\x0a", b"\xff" * 40, b"PK\3\4aaaa"],
)
def test_other_files_are_no_onnx_files(content: bytes) -> None:
    with pytest.raises(CardError, match=r"x: not an ONNX file; expected a model made by snakekit"):
        card_of(content, origin="x")


def test_damage_never_ends_in_another_error() -> None:
    blob = bytearray(shipped().read_bytes())
    rng = np.random.default_rng(5)
    for _ in range(300):
        damaged = bytearray(blob)
        for at in rng.integers(0, min(len(blob), 400), 3):
            damaged[at] = rng.integers(256)
        for tail in rng.integers(len(blob) - 1500, len(blob), 3):
            damaged[tail] = rng.integers(256)
        said = ["x: "]
        try:
            card_of(bytes(damaged), origin="x")
        except CardError as error:
            said = str(error).splitlines()
        assert len(said) == 1
        assert said[0].startswith("x: ")


def test_every_backend_can_be_configured() -> None:
    kinds = next(f for f in msgspec.structs.fields(ServerConfig) if f.name == "backend").type
    assert set(msgspec.json.schema(kinds)["enum"]) == set(BACKENDS)
    assert issubclass(ServerConfig, BackendOptions)
    assert ServerConfig().threads == 1
    assert ServerConfig().spin is False


class Recorded:
    """Stands for `onnxruntime.InferenceSession`: keeps the options and says what it is told."""

    made: "list[Recorded]"

    def __init__(self, path: str, options: Any, **rest: Any) -> None:
        self.options, self.rest = options, rest
        type(self).made.append(self)

    def get_providers(self) -> list[str]:
        return ["CPUExecutionProvider"]

    def disable_fallback(self) -> None: ...


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> type[Recorded]:
    runtime = pytest.importorskip("onnxruntime", reason="needs ONNX Runtime")
    Recorded.made = []
    monkeypatch.setattr(runtime, "InferenceSession", Recorded)
    monkeypatch.setattr(runtime, "get_available_providers", lambda: list(ort.PROVIDERS.values()))
    monkeypatch.setattr(runtime, "preload_dlls", lambda: print("Failed to load libcublas.so.13"))
    monkeypatch.setattr(runtime, "set_default_logger_severity", lambda level: None)
    return Recorded


@pytest.mark.parametrize(("spin", "entry"), [(False, "0"), (True, "1")])
def test_threads_and_spinning_are_as_asked(
    recorded: type[Recorded], spin: bool, entry: str
) -> None:
    options = BackendOptions(threads=3, spin=spin)
    with pytest.raises(AttributeError):
        ort.open_model(shipped(), "cpu", card(), options)
    found = recorded.made[0]
    assert found.options.intra_op_num_threads == 3
    assert found.options.inter_op_num_threads == 1
    key = "session.intra_op.allow_spinning"
    assert found.options.get_session_config_entry(key) == entry
    assert found.rest["providers"] == ["CPUExecutionProvider"]


def test_cuda_may_not_fall_back(recorded: type[Recorded], capfd: Any) -> None:
    words = "asked for CUDAExecutionProvider and got CPUExecutionProvider; expected a working GPU"
    with pytest.raises(BackendError, match=words):
        ort.open_model(shipped(), "cuda", card(), BackendOptions(device=2))
    found = recorded.made[0]
    assert found.options.get_session_config_entry("session.disable_cpu_ep_fallback") == "1"
    options = {"device_id": "2", "use_tf32": "0"}
    assert found.rest["providers"] == [("CUDAExecutionProvider", options)]
    assert found.rest["enable_fallback"] == 0
    assert capfd.readouterr() == ("", "")


def test_a_library_that_is_missing_is_named(
    recorded: type[Recorded], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("nodes are assigned to the default CPU EP")

    monkeypatch.setattr("onnxruntime.InferenceSession", fail)
    words = r"cannot run compact\.onnx here: Failed to load libcublas\.so\.13; expected a GPU"
    with pytest.raises(BackendError, match=words):
        ort.open_model(shipped(), "cuda", card(), BackendOptions())


def provider_of(folder: Path, content: bytes) -> Path:
    (folder / "capi").mkdir()
    (folder / "capi" / "libonnxruntime_providers_tensorrt.so").write_bytes(content)
    return folder


def test_onnxruntime_gets_the_tensorrt_that_it_is_linked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BackendError, match="has no TensorRT provider; run: pip install"):
        ort.check_tensorrt_major(tmp_path)
    package = provider_of(tmp_path, b"\x7fELF..libnvinfer.so.10\0libnvonnxparser.so.10\0")
    assert ort.linked_tensorrt(package) == "10"
    for found, words in ((None, "found none"), ("11.4.0.106", r"found 11\.4\.0\.106")):
        monkeypatch.setattr(ort, "_version", lambda _, found=found: found)
        fix = rf"linked to TensorRT 10, {words}; run: pip install 'tensorrt==10\.\*'"
        with pytest.raises(BackendError, match=fix):
            ort.check_tensorrt_major(package)
    monkeypatch.setattr(ort, "_version", lambda _: "10.16.1")
    ort.check_tensorrt_major(package)


def test_tensorrt_of_onnxruntime_keys_its_engines_by_the_weights(
    recorded: type[Recorded], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ort, "check_tensorrt_major", lambda _: None)
    options = BackendOptions(engine_cache=str(tmp_path / "engines"))
    with pytest.raises(BackendError, match="got CPUExecutionProvider"):
        ort.open_model(shipped(), "ort-tensorrt", card(precision="fp16"), options)
    [(name, given)] = recorded.made[0].rest["providers"]
    assert name == "TensorrtExecutionProvider"
    assert given["trt_engine_cache_prefix"] == "tiny.fp16.abababababababab"
    assert given["trt_engine_cache_path"] == str(tmp_path / "engines")
    assert (given["trt_fp16_enable"], given["trt_int8_enable"]) == ("1", "0")


def test_a_batch_that_the_runtime_refuses_is_one_sentence() -> None:
    pytest.importorskip("onnxruntime", reason="needs ONNX Runtime")
    backend, found = load_backend("cpu")
    words = rf"backend cpu: the model does not run on 1x{found.planes + 1}x11x11: .*[Ii]nvalid"
    with pytest.raises(BackendError, match=words):
        backend.infer(np.zeros((1, found.planes + 1, 11, 11), np.uint8))
    backend.close()


def test_two_backends_that_agree() -> None:
    seen: list[tuple[int, int]] = []
    backend = CheckBackend(
        RandomBackend(), Shifted(0.01), tolerance=0.05, on_compared=lambda *n: seen.append(n)
    )
    obs = batch(4)
    np.testing.assert_array_equal(backend.infer(obs)[0], RandomBackend().infer(obs)[0])
    assert seen == [(4, 0)]
    assert (backend.compared, backend.disagreements) == (4, 0)
    assert backend.describe().actual == "random+shifted"


@pytest.mark.parametrize("shift", [0.2, np.nan, np.inf])
def test_each_disagreement_is_counted_once(shift: float) -> None:
    other = Shifted(shift, rows=(1, 3))
    metrics = Metrics()
    backend = CheckBackend(RandomBackend(), other, tolerance=0.05, on_compared=metrics.compared)
    backend.infer(batch(4))
    backend.infer(batch(4, seed=1))
    value = metrics.registry.get_sample_value
    assert value("snakekit_check_positions_total") == 8
    assert value("snakekit_check_disagreements_total") == 4
    backend.close()
    assert other.closed


def test_answers_for_all_seats_are_compared() -> None:
    class Every(RandomBackend):
        def __init__(self, shift: float) -> None:
            self.shift = shift

        def infer(self, batch: Any) -> Any:
            policy, value = answers(batch, 2)
            value[0, 1] += self.shift
            return policy, value

    for shift, count in ((0.0, 0), (1.0, 1)):
        backend = CheckBackend(Every(0.0), Every(shift), tolerance=0.05)
        backend.infer(batch(3))
        assert backend.disagreements == count


def test_a_compared_backend_that_fails_never_reaches_the_caller() -> None:
    class Failing(RandomBackend):
        def infer(self, batch: Any) -> Any:
            raise RuntimeError("gone")

    backend = CheckBackend(RandomBackend(), Failing(), tolerance=0.05)
    assert backend.infer(batch(2))[0].shape == (2, 4)
    assert backend.disagreements == 2
    backend = CheckBackend(Failing(), RandomBackend(), tolerance=0.05)
    with pytest.raises(RuntimeError, match="gone"):
        backend.infer(batch(2))


def test_the_check_backend_is_opened_with_both_of_its_parts() -> None:
    pytest.importorskip("onnxruntime", reason="needs ONNX Runtime")
    options = BackendOptions(check_backends=("cpu", "cpu"))
    backend, found = load_backend("check", options=options)
    obs = np.zeros((2, found.planes, 11, 11), np.uint8)
    obs[:, :2] = 1
    backend.infer(obs)
    assert isinstance(backend, CheckBackend)
    assert (backend.compared, backend.disagreements) == (2, 0)
    backend.close()
    with pytest.raises(BackendError, match="this ONNX Runtime has no CUDAExecutionProvider"):
        load_backend("check", options=BackendOptions(check_backends=("cpu", "cuda")))
    with pytest.raises(BackendError, match="backend triton: the client is not installed"):
        hide(["tritonclient"], lambda: check_installed("triton"))


def hide(names: list[str], work: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("importlib.util.find_spec", lambda name, *_: None if name in names else 1)
        work()


@pytest.mark.parametrize("kind", ["tensorrt", "tensorrt-rtx"])
def test_an_absent_package_is_named_with_the_fix(kind: str) -> None:
    words = rf"backend {kind}: {kind} is not installed; run: pip install 'snakekit\[{kind}\]'"
    with pytest.raises(BackendError, match=words):
        hide(["tensorrt", "tensorrt_rtx"], lambda: load_backend(kind))


async def test_a_server_counts_what_two_backends_disagree_on(
    make_client: Any, send: Any, request_json: Any
) -> None:
    pytest.importorskip("onnxruntime", reason="needs ONNX Runtime")
    config = ServerConfig(
        backend="check", check_backends=("cpu", "random"), mode="policy", batch_sizes=(1,)
    )
    client = await make_client(config)
    value = client.engine.metrics.registry.get_sample_value
    before = value("snakekit_check_positions_total")
    status, _ = await send(client, "/move", request_json)
    assert status == 200
    assert value("snakekit_check_positions_total") == before + 1
    assert value("snakekit_check_disagreements_total") == before + 1
    labels = {"requested": "check", "actual": "CPUExecutionProvider+random", "precision": "fp32"}
    assert value("snakekit_backend_info", labels) == 1


@pytest.mark.parametrize("first", ["cpu", "random"])
def test_the_card_is_that_of_the_model(first: str) -> None:
    pytest.importorskip("onnxruntime", reason="needs ONNX Runtime")
    pair = (first, "random" if first == "cpu" else "cpu")
    backend, found = load_backend("check", options=BackendOptions(check_backends=pair))
    assert found == read_card(find_model(None))
    backend.close()
