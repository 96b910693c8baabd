"""Files of the evaluation's weights, as the tuner writes and players read them."""

from pathlib import Path

import msgspec

from snakekit.core import WEIGHTS

MAX_WEIGHT = 32_000


class _WeightFile(msgspec.Struct, frozen=True):
    weights: dict[str, int]


def read_weights(path: Path) -> dict[str, int]:
    """Return the weights in a file that the tuner wrote: JSON with a key `weights`.

    Raises:
        OSError: cannot be read.
        ValueError: another kind of file, an unknown name or a number out of range.
    """
    try:
        found = msgspec.json.decode(path.read_bytes(), type=_WeightFile).weights
    except msgspec.DecodeError as error:
        raise ValueError(f"not a file of weights: {error}") from None
    for name, value in found.items():
        if name not in WEIGHTS:
            raise ValueError(
                f"weights.{name}: unknown, expected names such as {next(iter(WEIGHTS))}"
            )
        if abs(value) > MAX_WEIGHT:
            raise ValueError(
                f"weights.{name}: expected -{MAX_WEIGHT} to {MAX_WEIGHT}, found {value}"
            )
    return found
