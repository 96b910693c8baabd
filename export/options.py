"""Options of `snakekit export`."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from snakekit.runtime.contract import Name

Capability = Annotated[str, Meta(pattern=r"^\d+\.\d$")]
Share = Annotated[float, Meta(ge=0, le=1)]


class ExportConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of an export."""

    precision: Annotated[
        Literal["fp32", "fp16", "int8"], Meta(description="numbers that the model computes with")
    ] = "fp32"
    target: Annotated[
        Literal["onnx", "tensorrt", "tensorrt-rtx", "triton"],
        Meta(description="an ONNX file; also an engine; or a folder for Triton Inference Server"),
    ] = "onnx"
    batch: Annotated[
        tuple[Annotated[int, Meta(ge=1, le=4096)], ...],
        Meta(
            min_length=3,
            max_length=3,
            description="least, usual and largest batch: what gates try and engines are built for",
        ),
    ] = (1, 8, 256)
    compute_capability: Annotated[
        Capability | None,
        Meta(description="build an engine for such a GPU, such as 8.9, without one"),
    ] = None
    device: Annotated[int, Meta(ge=0, le=63, description="number of the GPU")] = 0
    name: Annotated[Name | None, Meta(description="the model's and file's name")] = None
    seed: Annotated[int, Meta(ge=0, lt=2**31, description="of random weights and games")] = 0
    observations: Annotated[
        int, Meta(ge=64, le=1_000_000, description="positions of played games that the gate tries")
    ] = 2400
    calibration: Annotated[
        int, Meta(ge=64, le=100_000, description="positions that set the ranges of int8")
    ] = 1024
    tolerance: Annotated[
        float, Meta(gt=0, le=1, description="largest difference allowed to fp32")
    ] = 1e-4
    agreement: Annotated[
        Share | None,
        Meta(description="share of equal best moves; none: 0.995 for fp16, 0.98 for int8"),
    ] = None
    reduce_range: Annotated[
        bool | None, Meta(description="7-bit weights; by default where this CPU has no VNNI")
    ] = None

    def __post_init__(self) -> None:
        """Recheck what no single field can tell.

        Raises:
            ValueError: options that do not go together.
        """
        if list(self.batch) != sorted(self.batch):
            raise ValueError(f"batch: expected least, usual, largest, found {self.batch}")
        if self.compute_capability is not None and self.target != "tensorrt-rtx":
            raise ValueError(
                "compute_capability: only --target tensorrt-rtx builds for a GPU that is not "
                f"here, found --target {self.target}"
            )


class VerifyConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of `snakekit export --verify`."""

    backend: Annotated[
        Literal["cpu", "cuda", "ort-tensorrt", "tensorrt", "tensorrt-rtx", "triton"],
        Meta(description="with --verify: what runs the model"),
    ] = "cpu"
    threads: Annotated[
        int, Meta(ge=1, le=64, description="with --verify: threads of one inference")
    ] = 1
    triton_url: Annotated[
        str, Meta(min_length=1, description="with --verify: address of Triton, gRPC")
    ] = "127.0.0.1:8001"
