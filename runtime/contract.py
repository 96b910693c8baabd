"""The model card: what a model is, written once and carried with it everywhere.

The same JSON stands in a checkpoint's `state.json`, in the safetensors metadata and in the
`metadata_props` of an ONNX file, under the key `CARD_KEY`.
"""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

CARD_KEY = "snakekit_card"
SCHEMA = 1
MOVE_ORDER = ("up", "down", "left", "right")
INPUT_NAME = "obs"
OUTPUT_NAMES = ("policy", "value")
ALL_SEATS = 3
"""Observation version that shows all seats; its nets answer for all of them at once."""


Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
"""Of a model; files are called by it."""
Precision = Literal["fp32", "fp16", "int8", "none"]
"""Numbers that a model computes with; the random backend has none."""
Side = Annotated[int, Meta(ge=3, le=25)]
"""Of a board, as far as the rules go."""


class CardError(ValueError):
    """A model card that is missing, unreadable or from another version; the message says which."""


DRAW_WORTH = 0.3
"""Worth of an equal part of a draw, as nets are trained by default.

At 1 duels are zero-sum, and who expects an even game takes a collision as gladly.
"""


class ModelCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Facts that a server needs before it trusts a model.

    The model maps `obs` (uint8 `[N, planes, rows, cols]`) to `policy` (float32 logits `[N, 4]` in
    `move_order`) and `value` (float32 `[N, 1]` in -1..1, the expected result for the own seat).

    A net of encoder version 3 answers for all its slots, the living seats in order: `policy` is
    `[N, slots, 4]`, and `value` is logits `[N, slots + 1]` of each slot's win and of a draw.
    """

    schema: int = SCHEMA
    name: Name
    """Human name, for instance `standard`."""
    net: str
    """Architecture key in `trainer/model.py`: `article`, `compact` or `all-seat`."""
    net_options: dict[str, int]
    """Arguments of the architecture, such as channels and blocks."""
    encoder: Annotated[int, Meta(ge=1)]
    """Observation version, 1 to 3."""
    planes: Annotated[int, Meta(ge=1)]
    view: tuple[int, int] | None
    """Rows and columns of the observation, or None when they are the board's."""
    boards: Annotated[list[tuple[Side, Side]], Meta(min_length=1)]
    """Width and height of the boards trained on."""
    rulesets: Annotated[list[str], Meta(min_length=1)]
    snakes: Annotated[list[Annotated[int, Meta(ge=1)]], Meta(min_length=1)]
    """Numbers of snakes trained on."""
    move_order: tuple[str, str, str, str] = MOVE_ORDER
    method: str
    """How it was trained, in a few words."""
    step: Annotated[int, Meta(ge=0)]
    """Training steps (parameter updates) done."""
    parameters: Annotated[int, Meta(ge=0)]
    weights_sha256: Annotated[str, Meta(pattern=r"^([0-9a-f]{64})?$")]
    """Hash over the named float32 weights, see `trainer/checkpoint.py`."""
    source_commit: str
    """Commit of the code that trained it, or `unknown`."""
    opset: int | None = None
    precision: Precision = "fp32"
    calibration: str | None = None
    parity: dict[str, float] = {}
    """Figures of the export's parity gate."""

    @property
    def slots(self) -> int:
        """Seats that the model answers for at once; 0 where it answers for one own seat."""
        return self.net_options.get("slots", 0) if self.encoder == ALL_SEATS else 0


def dump_card(card: ModelCard) -> str:
    """Return the card as JSON text with a stable key order."""
    return msgspec.json.encode(card, order="deterministic").decode()


def load_card(text: str | bytes | None, *, origin: str) -> ModelCard:
    """Parse a card, naming `origin` (a file) in errors.

    Raises:
        CardError: no card, not JSON, a missing or odd field, or another schema.
    """
    if not text:
        raise CardError(
            f"{origin}: no model card ({CARD_KEY}); expected a model made by snakekit export"
        )
    try:
        raw: Any = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise CardError(f"{origin}: the model card is not JSON: {error}") from None
    found = raw.get("schema") if isinstance(raw, dict) else None
    if found != SCHEMA:
        raise CardError(
            f"{origin}: model card schema {found!r}, this version reads schema {SCHEMA}"
        )
    try:
        return msgspec.convert(raw, ModelCard)
    except msgspec.ValidationError as error:
        raise CardError(f"{origin}: model card: {error}") from None
