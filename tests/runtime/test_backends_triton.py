"""The Triton backend against a server that speaks Triton's protocol, by its own definitions."""

from collections.abc import Iterator
from concurrent import futures
from typing import Any

import numpy as np
import pytest
from backend_parts import batch, card

from snakekit.runtime.backends import BackendError, BackendOptions, load_backend
from snakekit.runtime.backends.random_play import RandomBackend
from snakekit.runtime.contract import CARD_KEY, ModelCard, dump_card

grpc = pytest.importorskip("grpc", reason="needs tritonclient[grpc]")
pytest.importorskip("tritonclient.grpc", reason="needs tritonclient[grpc]")
from tritonclient.grpc import service_pb2, service_pb2_grpc  # noqa: E402


class FakeTriton(service_pb2_grpc.GRPCInferenceServiceServicer):
    """Holds one model, the random backend, and can be told to misbehave."""

    def __init__(self) -> None:
        self.card: ModelCard | None = card()
        self.planes = card().planes
        self.most = 4
        self.fault = ""
        self.sizes: list[int] = []

    def ModelReady(self, request: Any, context: Any) -> Any:
        return service_pb2.ModelReadyResponse(ready=request.name == "standard")

    def ModelConfig(self, request: Any, context: Any) -> Any:
        answer = service_pb2.ModelConfigResponse()
        config = answer.config
        config.name, config.backend, config.max_batch_size = "standard", "onnxruntime", self.most
        if self.card is not None:
            config.parameters[CARD_KEY].string_value = dump_card(self.card)
        config.input.add(name="obs", dims=[self.planes, -1, -1])
        config.output.add(name="policy", dims=[4])
        config.output.add(name="value", dims=[1])
        return answer

    def ModelInfer(self, request: Any, context: Any) -> Any:
        [given] = request.inputs
        assert (given.name, given.datatype) == ("obs", "UINT8")
        obs = np.frombuffer(request.raw_input_contents[0], np.uint8).reshape(given.shape)
        self.sizes.append(len(obs))
        if self.fault == "slow":
            context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
        if self.fault == "refuses":
            context.abort(grpc.StatusCode.UNAVAILABLE, "exceeds maximum queue size")
        policy, value = RandomBackend().infer(obs)
        if self.fault == "shape":
            policy = policy[:, :3]
        answer = service_pb2.ModelInferResponse(model_name=request.model_name)
        for name, array in (("policy", policy), ("value", value[:, None])):
            answer.outputs.add(name=name, datatype="FP32", shape=array.shape)
            answer.raw_output_contents.append(np.ascontiguousarray(array).tobytes())
        return answer


@pytest.fixture(scope="module")
def address() -> Iterator[tuple[FakeTriton, str]]:
    fake = FakeTriton()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    service_pb2_grpc.add_GRPCInferenceServiceServicer_to_server(fake, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield fake, f"127.0.0.1:{port}"
    server.stop(None)


@pytest.fixture
def triton(address: tuple[FakeTriton, str]) -> Iterator[tuple[FakeTriton, BackendOptions]]:
    fake, url = address
    vars(fake).update(vars(FakeTriton()))
    return fake, BackendOptions(triton_url=url, triton_timeout_ms=5000)


def test_answers_are_those_of_the_server(triton: tuple[FakeTriton, BackendOptions]) -> None:
    fake, options = triton
    backend, found = load_backend("triton", options=options)
    assert found == card()
    info = backend.describe()
    assert (info.actual, info.precision, info.device) == (
        "triton:onnxruntime",
        "fp32",
        options.triton_url,
    )
    # More than the server's largest batch goes in parts.
    for count in (1, 3, 4, 10):
        obs = batch(count, 7, 9, seed=count)
        policy, value = backend.infer(obs)
        wanted = RandomBackend().infer(obs)
        np.testing.assert_array_equal(policy, wanted[0])
        np.testing.assert_array_equal(value, wanted[1])
    assert fake.sizes == [1, 3, 4, 4, 4, 2]
    backend.close()


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("slow", "Deadline Exceeded"),
        ("refuses", "exceeds maximum queue size"),
        ("shape", "answers in another shape"),
    ],
)
def test_failures_are_one_sentence(
    triton: tuple[FakeTriton, BackendOptions], fault: str, words: str
) -> None:
    fake, options = triton
    backend, _ = load_backend("triton", options=options)
    fake.fault = fault
    with pytest.raises(BackendError, match=words):
        backend.infer(batch(2))
    fake.fault = ""
    assert backend.infer(batch(2))[0].shape == (2, 4)
    backend.close()


def test_models_that_do_not_fit(triton: tuple[FakeTriton, BackendOptions]) -> None:
    fake, options = triton
    from pathlib import Path

    with pytest.raises(BackendError, match="has no model other that is ready"):
        load_backend("triton", Path("other.onnx"), options=options)
    fake.planes = 3
    with pytest.raises(BackendError, match=r"takes {'obs': \[3, -1, -1\]}"):
        load_backend("triton", options=options)
    fake.planes, fake.card = card().planes, None
    with pytest.raises(BackendError, match="Triton's model standard: no model card"):
        load_backend("triton", options=options)
    fake.card = card(encoder=9)
    with pytest.raises(BackendError, match="encoder version 9"):
        load_backend("triton", options=options)


def test_no_server() -> None:
    options = BackendOptions(triton_url="127.0.0.1:1")
    with pytest.raises(BackendError, match=r"127\.0\.0\.1:1 does not answer .*give --triton-url"):
        load_backend("triton", options=options)
