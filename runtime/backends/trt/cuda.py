"""The few CUDA calls that running an engine takes, with errors as exceptions."""

import ctypes
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snakekit.runtime.backends.base import BackendError


class Cuda:
    """One device, by NVIDIA's own bindings (`cuda-bindings`).

    Memory and streams live until `close`.
    """

    def __init__(self, device: int) -> None:
        """Take the device.

        Raises:
            BackendError: no bindings, no driver, no GPU, or no such number.
        """
        if importlib.util.find_spec("cuda") is None:
            raise BackendError(
                "backend tensorrt: cuda-bindings is not installed; run: pip install cuda-bindings"
            )
        from cuda.bindings import runtime

        self._rt: Any = runtime
        self._freeing: list[Callable[[], Any]] = []
        count = self._ask(runtime.cudaGetDeviceCount())
        if device >= count:
            raise BackendError(f"device: there are {count} GPUs, found number {device}")
        self._ask(runtime.cudaSetDevice(device))
        facts = self._ask(runtime.cudaGetDeviceProperties(device))
        self.name = str(facts.name.decode().rstrip("\0").strip())
        self.compute_capability = f"{facts.major}.{facts.minor}"
        self.device = device

    def _ask(self, result: tuple[Any, ...]) -> Any:
        """Return what a call returned beside its status.

        Raises:
            BackendError: the call failed.
        """
        status, *values = result
        if int(status) != 0:
            raise BackendError(
                f"CUDA: {status.name}; expected a working NVIDIA GPU and driver, "
                "or choose --backend cpu"
            )
        return values[0] if len(values) == 1 else None

    def enter(self) -> None:
        """Make the device that of the calling thread."""
        self._ask(self._rt.cudaSetDevice(self.device))

    def stream(self) -> Any:
        """Return a new stream."""
        flags = self._rt.cudaStreamNonBlocking
        stream = self._ask(self._rt.cudaStreamCreateWithFlags(flags))
        self._freeing.append(lambda: self._rt.cudaStreamDestroy(stream))
        return stream

    def pinned(self, size: int) -> NDArray[np.uint8]:
        """Return page-locked memory of `size` bytes, which copies run from without a detour."""
        address = self._ask(self._rt.cudaHostAlloc(size, self._rt.cudaHostAllocDefault))
        self._freeing.append(lambda: self._rt.cudaFreeHost(address))
        memory = (ctypes.c_uint8 * size).from_address(int(address))
        return np.ctypeslib.as_array(memory)

    def memory(self, size: int) -> int:
        """Return the address of `size` bytes on the device."""
        address = self._ask(self._rt.cudaMalloc(size))
        self._freeing.append(lambda: self._rt.cudaFree(address))
        return int(address)

    def to_device(self, target: int, source: NDArray[np.uint8], size: int, stream: Any) -> None:
        """Queue a copy of `size` bytes of pinned memory."""
        kind = self._rt.cudaMemcpyKind.cudaMemcpyHostToDevice
        self._ask(self._rt.cudaMemcpyAsync(target, source.ctypes.data, size, kind, stream))

    def to_host(self, target: NDArray[np.uint8], source: int, size: int, stream: Any) -> None:
        """Queue a copy of `size` bytes into pinned memory."""
        kind = self._rt.cudaMemcpyKind.cudaMemcpyDeviceToHost
        self._ask(self._rt.cudaMemcpyAsync(target.ctypes.data, source, size, kind, stream))

    def capture(self, stream: Any, work: Callable[[], None]) -> Any:
        """Record what `work` queues on `stream` as a graph that can be launched.

        Raises:
            BackendError: something in it cannot be captured.
        """
        mode = self._rt.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal
        self._ask(self._rt.cudaStreamBeginCapture(stream, mode))
        try:
            work()
        finally:
            ended = self._rt.cudaStreamEndCapture(stream)
        graph = self._ask(ended)
        launchable = self._ask(self._rt.cudaGraphInstantiate(graph, 0))
        self._ask(self._rt.cudaGraphDestroy(graph))
        self._freeing.append(lambda: self._rt.cudaGraphExecDestroy(launchable))
        return launchable

    def launch(self, graph: Any, stream: Any) -> None:
        """Queue a graph."""
        self._ask(self._rt.cudaGraphLaunch(graph, stream))

    def wait(self, stream: Any) -> None:
        """Wait until all that is queued on `stream` is done."""
        self._ask(self._rt.cudaStreamSynchronize(stream))

    def close(self) -> None:
        """Free everything, last first. Safe to call twice."""
        while self._freeing:
            self._freeing.pop()()
