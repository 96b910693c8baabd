"""Triton's folder by Triton's own definitions; engines by a real builder, where it is installed."""

from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from snakekit.export import engine, pipeline
from snakekit.export.options import ExportConfig
from snakekit.export.parity import GateError
from snakekit.export.session import Session
from snakekit.export.triton import config
from snakekit.runtime.backends.trt.build import Built
from snakekit.runtime.backends.trt.engine_file import read_manifest
from snakekit.runtime.contract import CARD_KEY, load_card
from snakekit.trainer.checkpoint import Checkpoint
from snakekit.trainer.generate import infer
from snakekit.trainer.model import Net

QUICK = ExportConfig(observations=128, calibration=64)


def test_tritons_folder_is_what_triton_reads(saved: Checkpoint, tmp_path: Path) -> None:
    pytest.importorskip("tritonclient.grpc", reason="needs tritonclient[grpc]")
    from google.protobuf import text_format
    from tritonclient.grpc import model_config_pb2

    options = msgspec.structs.replace(QUICK, target="triton", precision="fp16", batch=(1, 4, 32))
    done = pipeline.export(saved, options, tmp_path, origin="x")
    folder = tmp_path / "small.fp16"
    assert [p.relative_to(tmp_path).as_posix() for p in done.files] == [
        "small.fp16/1/model.onnx",
        "small.fp16/config.pbtxt",
    ]
    found = text_format.Parse((folder / "config.pbtxt").read_text(), model_config_pb2.ModelConfig())
    assert (found.name, found.backend, found.max_batch_size) == ("small.fp16", "onnxruntime", 32)
    assert [(i.name, list(i.dims)) for i in found.input] == [("obs", [22, -1, -1])]
    assert found.input[0].data_type == model_config_pb2.TYPE_UINT8
    assert {o.name: list(o.dims) for o in found.output} == {"policy": [4], "value": [1]}
    assert [w.batch_size for w in found.model_warmup] == [1, 4]
    assert list(found.model_warmup[0].inputs["obs"].dims) == [22, 11, 11]
    text = found.parameters[CARD_KEY].string_value
    assert load_card(text, origin="x") == done.card
    awkward = msgspec.structs.replace(done.card, method='"quotes", \\ and ümlauts\n')
    again = text_format.Parse(config("x", awkward, (1, 4, 32)), model_config_pb2.ModelConfig())
    assert load_card(again.parameters[CARD_KEY].string_value, origin="x") == awkward


@pytest.fixture
def triton() -> Iterator[Callable[[Path], str]]:
    """Serve a model repository by Triton's protocol; returns the address."""
    grpc = pytest.importorskip("grpc", reason="needs tritonclient[grpc]")
    pytest.importorskip("tritonclient.grpc", reason="needs tritonclient[grpc]")
    from google.protobuf import text_format
    from tritonclient.grpc import model_config_pb2, service_pb2, service_pb2_grpc

    class Server(service_pb2_grpc.GRPCInferenceServiceServicer):
        def __init__(self, folder: Path) -> None:
            self.folder = folder
            self.models: dict[str, Session] = {}

        def ModelReady(self, request: Any, context: Any) -> Any:
            path = self.folder / request.name / "1" / "model.onnx"
            if path.is_file():
                self.models[request.name] = Session(path.read_bytes())
            return service_pb2.ModelReadyResponse(ready=path.is_file())

        def ModelConfig(self, request: Any, context: Any) -> Any:
            text = (self.folder / request.name / "config.pbtxt").read_text()
            found = text_format.Parse(text, model_config_pb2.ModelConfig())
            return service_pb2.ModelConfigResponse(config=found)

        def ModelInfer(self, request: Any, context: Any) -> Any:
            shape, raw = request.inputs[0].shape, request.raw_input_contents[0]
            obs = np.frombuffer(raw, np.uint8).reshape(shape)
            policy, value = self.models[request.model_name](obs)
            answer = service_pb2.ModelInferResponse()
            for name, array in (("policy", policy), ("value", value.reshape(len(obs), -1))):
                answer.outputs.add(name=name, datatype="FP32", shape=array.shape)
                answer.raw_output_contents.append(np.ascontiguousarray(array).tobytes())
            return answer

    server = grpc.server(futures.ThreadPoolExecutor(1))

    def start(folder: Path) -> str:
        service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(Server(folder), server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        return f"127.0.0.1:{port}"

    yield start
    server.stop(None).wait()


def test_a_model_passes_its_gate_through_triton(
    saved: Checkpoint,
    tmp_path: Path,
    command: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    triton: Callable[[Path], str],
) -> None:
    pipeline.export(saved, QUICK, tmp_path / "files", origin="x")
    options = msgspec.structs.replace(QUICK, target="triton", batch=(1, 8, 32))
    pipeline.export(saved, options, tmp_path / "repository", origin="x")
    address = triton(tmp_path / "repository")
    words = ("--backend", "triton", "--triton-url", address)
    reference = ("--reference", tmp_path / "files" / "small.parity.npz")
    assert command("--verify", "small", *words, *reference) == 0
    assert "triton:onnxruntime" in capsys.readouterr().out
    assert command("--verify", "other", *words, *reference) == 2
    assert "has no model other that is ready" in capsys.readouterr().err


def test_a_model_for_all_seats_in_half_precision_through_triton(
    tmp_path: Path, command: Callable[..., int], triton: Callable[[Path], str]
) -> None:
    every = pipeline.untrained("all-seat", 0)
    half = msgspec.structs.replace(QUICK, precision="fp16", agreement=0.9)
    done = pipeline.export(every, half, tmp_path / "files", origin="x")
    assert done.gates[-1].figures["value_max_abs"] < 0.01
    pipeline.export(
        every, msgspec.structs.replace(half, target="triton"), tmp_path / "served", origin="x"
    )
    words = ("--backend", "triton", "--triton-url", triton(tmp_path / "served"))
    reference = ("--reference", next((tmp_path / "files").glob("*.npz")))
    name = f"{every.card.name}.fp16"
    assert command("--verify", name, *words, *reference, "--agreement", "0.9") == 0


class FakeEngine:
    """In the place of an engine on a GPU: the net itself, or something else."""

    def __init__(self, net: Net, shift: float) -> None:
        self.net, self.shift, self.closed = net, shift, False

    def infer(self, obs: np.ndarray) -> Any:
        policy, value = infer(self.net, obs)
        policy[:, 0] += self.shift
        return policy, value

    def layers(self, trt: Any) -> str:
        return '{"Layers": []}'

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, net: Net) -> Callable[[float], FakeEngine]:
    """A machine that builds engines, which answer with `shift` added to a logit."""

    def install(shift: float) -> FakeEngine:
        fake = FakeEngine(net, shift)
        device = SimpleNamespace(name="Fake GPU", compute_capability="9.0")
        monkeypatch.setattr(engine, "Cuda", lambda _: device)
        package = SimpleNamespace(__version__="11.4.0")
        monkeypatch.setattr(engine, "load_package", lambda _: package)
        monkeypatch.setattr(engine, "TensorrtBackend", lambda *_, **__: fake)
        monkeypatch.setattr(
            "snakekit.runtime.backends.trt.runner.build", lambda *_, **__: Built(b"plan", b"times")
        )
        return fake

    return install


def test_an_engine_goes_through_the_gate(
    gpu: Callable[[float], FakeEngine], saved: Checkpoint, tmp_path: Path
) -> None:
    fake = gpu(0.0)
    options = msgspec.structs.replace(QUICK, target="tensorrt")
    done = pipeline.export(saved, options, tmp_path, origin="x")
    assert [g.name for g in done.gates] == ["fp32", "fp32 engine"]
    assert done.status == "run on Fake GPU"
    [path] = tmp_path.glob("*.engine")
    assert path.name.startswith("small.fp32.")
    assert path.name.endswith(".tensorrt-11.4.0.fake-gpu-sm90.engine")
    manifest = read_manifest(path)
    assert manifest.status == "run"
    assert manifest.card.parity == done.gates[1].figures
    assert (tmp_path / (path.name + ".layers.json")).read_text() == '{"Layers": []}'
    assert (tmp_path / "timings.tensorrt-11.4.0.fake-gpu-sm90.cache").read_bytes() == b"times"
    assert fake.closed


def test_an_engine_that_answers_otherwise_is_refused(
    gpu: Callable[[float], FakeEngine], saved: Checkpoint, tmp_path: Path
) -> None:
    fake = gpu(0.01)
    options = msgspec.structs.replace(QUICK, target="tensorrt")
    with pytest.raises(GateError, match=r"fp32 engine refused.*policy_max_abs 0\.01"):
        pipeline.export(saved, options, tmp_path, origin="x")
    assert list(tmp_path.iterdir()) == []
    assert fake.closed


def test_no_tensorrt_is_bad_input(
    saved: Checkpoint,
    tmp_path: Path,
    command: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from snakekit.trainer import checkpoint as store

    monkeypatch.setattr(
        "snakekit.runtime.backends.trt.package.importlib.util.find_spec", lambda *_: None
    )
    store.save(tmp_path / "c", saved)
    words = ("--out", tmp_path / "o", "--target", "tensorrt", "--observations", "64")
    assert command(tmp_path / "c", *words) == 2
    assert "tensorrt is not installed; run: pip install" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


@pytest.mark.slow
@pytest.mark.parametrize("seats", ["one seat", "all seats"])
@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_a_real_engine_is_built_but_not_run(
    seats: str,
    saved: Checkpoint,
    every: Callable[..., Checkpoint],
    tmp_path: Path,
    command: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    precision: str,
) -> None:
    pytest.importorskip("tensorrt_rtx", reason="needs tensorrt-rtx")
    options = ExportConfig(
        observations=256,
        precision=precision,
        target="tensorrt-rtx",
        compute_capability="8.6",
        agreement=0.8,
    )
    made = saved if seats == "one seat" else every()
    done = pipeline.export(made, options, tmp_path, origin="x")
    assert done.status == "engine for compute capability 8.6 built, not run"
    [path] = tmp_path.glob("*.engine")
    assert read_manifest(path).status == "built, not run"
    assert command("--show", path) == 0
    shown = capsys.readouterr().out
    for word in ("built, not run", "tensorrt-rtx", "8.6", precision):
        assert word in shown
    path.write_bytes(path.read_bytes()[:-1])
    assert command("--show", path) == 2
    assert "cut short or altered" in capsys.readouterr().err
