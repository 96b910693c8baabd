"""Small models, cards and stand-ins for GPU libraries, for the tests of backends."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np

from snakekit.runtime.backends.base import BackendInfo
from snakekit.runtime.backends.random_play import RandomBackend, random_card
from snakekit.runtime.contract import ModelCard
from snakekit.runtime.models import find_model


def card(**changes: Any) -> ModelCard:
    facts = {"name": "tiny", "precision": "fp32", "weights_sha256": "ab" * 32, **changes}
    return msgspec.structs.replace(random_card(), **facts)


def shipped() -> Path:
    """The file of a model that answers for one seat."""
    return find_model("compact")


def batch(count: int = 3, rows: int = 11, cols: int = 11, seed: int = 0) -> np.ndarray:
    size = (count, card().planes, rows, cols)
    return np.random.default_rng(seed).integers(0, 255, size, np.uint8)


class Shifted(RandomBackend):
    """Answers as the random backend, but with `shift` added to the rows given."""

    def __init__(self, shift: float, rows: tuple[int, ...] = (0,)) -> None:
        self.shift, self.rows, self.closed = shift, rows, False

    def infer(self, batch: np.ndarray) -> Any:
        policy, value = super().infer(batch)
        policy[list(self.rows), 1] += self.shift
        return policy, value

    def describe(self) -> BackendInfo:
        return BackendInfo("shifted", "shifted", "none")

    def close(self) -> None:
        self.closed = True


class FakeCuda:
    """Host memory in the place of a GPU; keeps the order of calls. Addresses are indices."""

    name, compute_capability, device = "Fake GPU", "9.0", 0

    def __init__(self, *_: Any) -> None:
        self.calls: list[str] = []
        self.blocks: dict[int, np.ndarray] = {}
        self.closed = False
        self._recording: list[Any] | None = None

    def enter(self) -> None:
        self.calls.append("enter")

    def stream(self) -> int:
        return 7

    def pinned(self, size: int) -> np.ndarray:
        return np.zeros(size, np.uint8)

    def memory(self, size: int) -> int:
        self.blocks[len(self.blocks) + 1] = np.zeros(size, np.uint8)
        return len(self.blocks)

    def queue(self, name: str, work: Any) -> None:
        """Do `work`, or in a capture only keep it, as a stream does."""
        if self._recording is not None:
            self._recording.append(work)
            return
        self.calls.append(name)
        work()

    def to_device(self, target: int, source: np.ndarray, size: int, stream: int) -> None:
        assert stream == 7
        self.queue("in", lambda: np.copyto(self.blocks[target][:size], source[:size]))

    def to_host(self, target: np.ndarray, source: int, size: int, stream: int) -> None:
        assert stream == 7
        self.queue("out", lambda: np.copyto(target[:size], self.blocks[source][:size]))

    def capture(self, stream: int, work: Any) -> list[Any]:
        self.calls.append("capture")
        self._recording = []
        work()
        graph, self._recording = self._recording, None
        return graph

    def launch(self, graph: list[Any], stream: int) -> None:
        self.calls.append("launch")
        for work in graph:
            work()

    def wait(self, stream: int) -> None:
        self.calls.append("wait")

    def close(self) -> None:
        self.closed = True


class FakeTensorrt:
    """What of the TensorRT package a runner touches; the engine is the random backend."""

    __version__ = "11.4.0"

    class ILogger:
        Severity = SimpleNamespace(ERROR=1, INTERNAL_ERROR=0, WARNING=2)

    LayerInformationFormat = SimpleNamespace(JSON="json")

    def __init__(self, cuda: FakeCuda, slots: int = 0) -> None:
        self.cuda, self.slots = cuda, slots
        self.loads = True
        self.runs = True
        self.shapes: list[tuple[int, ...]] = []

    def Runtime(self, log: Any) -> Any:
        def load(plan: bytes) -> Any:
            if not self.loads:
                log.log(1, "engine plan file  is not\n compatible")
                return None
            return SimpleNamespace(create_execution_context=lambda: FakeContext(self, log))

        return SimpleNamespace(deserialize_cuda_engine=load)


def answers(obs: np.ndarray, slots: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return the random backend's answers, or as many as a model for all seats gives."""
    policy, value = RandomBackend().infer(obs)
    if not slots:
        return policy, value
    seats = np.arange(slots, dtype=np.float32)
    outcomes = np.arange(slots + 1, dtype=np.float32)
    return policy[:, None] + seats[None, :, None], value[:, None] + outcomes


class FakeContext:
    def __init__(self, package: FakeTensorrt, log: Any) -> None:
        self.package, self.log = package, log
        self.at: dict[str, int] = {}

    def set_tensor_address(self, name: str, address: int) -> bool:
        self.at[name] = address
        return True

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        self.shape = shape
        self.package.shapes.append(shape)
        return True

    def execute_async_v3(self, stream: int) -> bool:
        if not self.package.runs:
            self.log.log(1, "out of memory")
            return False
        cuda, shape = self.package.cuda, self.shape

        def work() -> None:
            size = int(np.prod(shape))
            obs = cuda.blocks[self.at["obs"]][:size].reshape(shape)
            policy, value = answers(obs, self.package.slots)
            for name, found in (("policy", policy), ("value", value)):
                raw = found.view(np.uint8).reshape(-1)
                cuda.blocks[self.at[name]][: len(raw)] = raw

        cuda.queue("run", work)
        return True
