"""Options of `snakekit export`."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


class ExportConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of an export."""

    precision: Annotated[
        Literal["fp32", "int8"], Meta(description="numbers that the model computes with")
    ] = "fp32"
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
        float, Meta(ge=0, le=1, description="share of equal best moves that int8 needs")
    ] = 0.98
    reduce_range: Annotated[
        bool | None, Meta(description="7-bit weights; by default where this CPU has no VNNI")
    ] = None
