"""Settings of the backends; the server's configuration contains them all."""

from typing import Annotated

import msgspec
from msgspec import Meta

CHECKABLE = ("cpu", "cuda", "ort-tensorrt", "tensorrt", "tensorrt-rtx", "triton", "random")


class BackendOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a backend can be told; each one reads what concerns it."""

    threads: Annotated[int, Meta(ge=1, le=64, description="threads of one inference")] = 1
    spin: Annotated[
        bool,
        Meta(description="idle inference threads spin, which takes cores from the search"),
    ] = False
    device: Annotated[int, Meta(ge=0, le=63, description="number of the GPU")] = 0
    engine_cache: Annotated[
        str | None,
        Meta(description="folder of TensorRT engines and timings; none: engines beside the model"),
    ] = None
    check_backends: Annotated[
        tuple[Annotated[str, Meta(pattern=f"^({'|'.join(CHECKABLE)})$")], ...],
        Meta(
            min_length=2,
            max_length=2,
            description="of backend check: the one that answers, the one it is compared with",
        ),
    ] = ("cpu", "cuda")
    check_tolerance: Annotated[
        float, Meta(gt=0, le=100, description="of backend check: largest difference of a number")
    ] = 0.05
    triton_url: Annotated[
        str, Meta(min_length=1, description="address of Triton Inference Server, gRPC")
    ] = "127.0.0.1:8001"
    triton_timeout_ms: Annotated[
        float, Meta(ge=1, le=60_000, description="longest wait for Triton's answer, ms")
    ] = 200.0
