"""Where a net runs: device, number format, threads, and batches through it."""

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from snakekit.trainer.model import Net

CPU_ROWS = 256
"""Observations a forward pass on the CPU: larger ones leave the cache and are slower."""
CUDA_ROWS = 128
"""Batches on a GPU are padded to a multiple, so that few shapes have kernels to be chosen for."""


class DeviceError(ValueError):
    """A device that is not here, or an option that it does not have."""


def open_device(name: str, precision: str = "fp32", *, compiled: bool = False) -> torch.device:
    """Return the device `name` (`cpu`, `cuda`, `cuda:1`) after checking that it can be used.

    Raises:
        DeviceError: no such device here, bf16 that it lacks, or compilation on a CPU.
    """
    if not name.startswith("cuda"):
        if compiled:
            raise DeviceError("compile: only on cuda, where it pays; leave it out on a cpu")
        return torch.device(name)
    if not torch.cuda.is_available():
        raise DeviceError(f"device: {name} was asked for, but torch {torch.__version__} sees none")
    device = torch.device(name)
    if (device.index or 0) >= torch.cuda.device_count():
        raise DeviceError(f"device: there is no {name}, only {torch.cuda.device_count()}")
    if precision == "bf16" and not torch.cuda.is_bf16_supported():
        raise DeviceError(f"precision: {torch.cuda.get_device_name(device)} has no bf16")
    torch.set_float32_matmul_precision("high")
    return device


def set_threads(count: int) -> int:
    """Let torch use `count` threads in the calling thread, 0 for one a core; return how many."""
    chosen = count or len(os.sched_getaffinity(0))
    torch.set_num_threads(chosen)
    return chosen


def mixed(device: torch.device, precision: str) -> AbstractContextManager[Any]:
    """Return the context of a forward pass: autocast to bf16 if that is the precision."""
    if precision == "bf16":
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()


def placed(model: Net, device: torch.device) -> Net:
    """Return `model` on `device` with its weights in the layout that convolutions want."""
    moved: Net = model.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    return moved


class Forward:
    """A net that only answers: batches of observations to logits and values, no gradients."""

    def __init__(
        self,
        model: Net,
        device: torch.device | None = None,
        *,
        precision: str = "fp32",
        compiled: bool = False,
    ) -> None:
        """Take `model` over; it must not be trained meanwhile."""
        self.device = device or torch.device("cpu")
        self.model = placed(model, self.device).eval()
        self._precision = precision
        self._run: Callable[[Tensor], tuple[Tensor, Tensor]] = (
            torch.compile(self.model, dynamic=True) if compiled else self.model
        )

    def load(self, weights: Mapping[str, NDArray[Any]]) -> None:
        """Replace the weights by named arrays."""
        state = {name: torch.from_numpy(np.array(value)) for name, value in weights.items()}
        self.model.load_state_dict(state)

    def put(self, obs: Tensor) -> Tensor:
        """Return `obs` on the device; through pinned memory where that is a GPU."""
        if self.device.type == "cpu":
            return obs
        return obs.pin_memory().to(self.device, non_blocking=True)

    def ask(self, obs: Tensor) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return (logits `[N, 4]`, values `[N]`) of `obs`, which lies on the device."""
        count = len(obs)
        if not count:
            return np.zeros((0, 4), np.float32), np.zeros(0, np.float32)
        with torch.inference_mode(), mixed(self.device, self._precision):
            if self.device.type == "cpu":
                parts = [self._run(part) for part in torch.split(obs, CPU_ROWS)]
                policy, value = (torch.cat(p) for p in zip(*parts, strict=True))
            else:
                gap = -count % CUDA_ROWS
                padded = torch.cat([obs, obs[:1].expand(gap, *obs.shape[1:])]) if gap else obs
                policy, value = (out[:count] for out in self._run(padded))
            return policy.float().cpu().numpy(), value[:, 0].float().cpu().numpy()

    def __call__(self, obs: NDArray[np.uint8]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return (logits `[N, 4]`, values `[N]`) of `obs` `[N, planes, rows, cols]`."""
        return self.ask(self.put(torch.from_numpy(obs)))
