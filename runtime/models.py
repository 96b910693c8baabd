"""Finding model files and judging whether a model fits this program."""

import os
from pathlib import Path

from snakekit import core
from snakekit.runtime.backends.base import BackendError
from snakekit.runtime.contract import ALL_SEATS, MOVE_ORDER, CardError, ModelCard

SHIPPED = "standard.onnx"


def model_folders() -> list[Path]:
    """Return where shipped models may lie: in an installed package, then in a checkout."""
    import snakekit

    package = Path(snakekit.__file__).parent
    return [package / "models", package.resolve().parents[1] / "models"]


def default_model() -> Path | None:
    """Return the shipped model's file, or None if this installation has none."""
    for folder in model_folders():
        if (folder / SHIPPED).is_file():
            return folder / SHIPPED
    return None


def find_model(model: str | os.PathLike[str] | None) -> Path:
    """Return the file of `model`: a path, a shipped model's bare name, or None for the default.

    Raises:
        BackendError: no such file.
    """
    if model is None:
        path = default_model()
        if path is None:
            raise BackendError(
                f"model: no shipped model {SHIPPED} in this installation; give --model FILE"
            )
        return path
    path = Path(model)
    if path.is_file():
        return path
    if path.name == os.fspath(model):
        for folder in model_folders():
            for name in (path.name, path.name + ".onnx"):
                if (folder / name).is_file():
                    return folder / name
    raise BackendError(
        f"model: no file {os.fspath(model)}; expected an ONNX file, give --model FILE"
    )


def check_card(card: ModelCard, *, origin: str) -> None:
    """Refuse a model that was made for another encoder or another order of moves.

    Raises:
        CardError: one sentence that names both versions.
    """
    if card.encoder == ALL_SEATS:
        _check_all_seats(card, origin)
        return
    if card.encoder not in core.PLANES:
        known = ", ".join(str(version) for version in sorted({*core.PLANES, ALL_SEATS}))
        raise CardError(
            f"{origin}: made for encoder version {card.encoder}, this program has {known}; "
            "export the model again with this version"
        )
    if card.planes != core.PLANES[card.encoder]:
        raise CardError(
            f"{origin}: its card says {card.planes} planes, encoder version {card.encoder} of this "
            f"program has {core.PLANES[card.encoder]}"
        )
    if card.move_order != MOVE_ORDER:
        raise CardError(
            f"{origin}: order of moves {', '.join(card.move_order)}, expected "
            f"{', '.join(MOVE_ORDER)}"
        )
    shape = core.State.new_game(7, 11, ["a"], 0).observation_shape(card.encoder)[1:]
    fixed = shape != (11, 7)
    if card.view != (shape if fixed else None):
        wanted = f"{shape[0]}x{shape[1]}" if fixed else "the board's size"
        raise CardError(
            f"{origin}: its card has the view {card.view}, encoder version {card.encoder} gives "
            f"{wanted}"
        )


def _check_all_seats(card: ModelCard, origin: str) -> None:
    if not 2 <= card.slots <= core.MAX_SLOTS:
        raise CardError(
            f"{origin}: its card says {card.slots} slots, expected 2 to {core.MAX_SLOTS}"
        )
    planes = core.all_seat_planes(card.slots)
    if card.planes != planes or card.view is not None or card.move_order != MOVE_ORDER:
        raise CardError(
            f"{origin}: its card says {card.planes} planes, view {card.view} and moves "
            f"{', '.join(card.move_order)}; expected {planes} planes, the board's size and "
            f"{', '.join(MOVE_ORDER)} for {card.slots} slots"
        )
