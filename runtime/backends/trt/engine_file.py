"""Engines on disk: what they are called, the manifest beside each, and which may be loaded.

An engine belongs to one model, one version of TensorRT and one kind of GPU. TensorRT itself refuses
some strangers but not an engine of other weights, so all of it is compared before anything is
loaded.
"""

import hashlib
import re
from pathlib import Path

import msgspec

from snakekit.runtime.backends.base import BackendError
from snakekit.runtime.contract import ModelCard

MANIFEST_SCHEMA = 1
SUFFIX = ".engine"
NOT_RUN = "built, not run"
RUN = "run"


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """Smallest, usual and largest sizes of an engine's input."""

    batch: tuple[int, int, int]
    rows: tuple[int, int, int]
    cols: tuple[int, int, int]


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine is built with and for."""

    package: str
    """`tensorrt` or `tensorrt-rtx`."""
    version: str
    gpu: str
    """Name of the GPU, or `any` for one that was built ahead of time."""
    compute_capability: str
    """Such as `9.0`."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts about an engine, beside it as JSON."""

    schema: int = MANIFEST_SCHEMA
    target: Target
    profile: Profile
    status: str
    """`NOT_RUN` or `RUN`."""
    onnx_sha256: str
    """Of the ONNX file that it was built from."""
    engine_sha256: str
    card: ModelCard


def profile_of(card: ModelCard, batch: tuple[int, int, int]) -> Profile:
    """Return the sizes that an engine of this model is to take.

    A fixed view is exactly that; otherwise all official boards, 7x7 to 25x25, tuned for 11x11 or
    the first board that the model knows.
    """
    if card.view is not None:
        rows, cols = card.view
        return Profile(batch=batch, rows=(rows,) * 3, cols=(cols,) * 3)
    usual = (11, 11) if (11, 11) in card.boards or not card.boards else card.boards[0]
    widths = [7, 25, *(w for w, _ in card.boards)]
    heights = [7, 25, *(h for _, h in card.boards)]
    return Profile(
        batch=batch,
        rows=(min(heights), usual[1], max(heights)),
        cols=(min(widths), usual[0], max(widths)),
    )


def engine_path(folder: Path, card: ModelCard, target: Target) -> Path:
    """Return where the engine of a model belongs: model, weights, TensorRT and GPU in its name."""
    parts = (card.name, card.precision, card.weights_sha256[:16], _slug(target))
    return folder / (".".join(parts) + SUFFIX)


def timings_path(folder: Path, target: Target) -> Path:
    """Return where the timings of builds for `target` are kept, for all models together."""
    return folder / f"timings.{_slug(target)}.cache"


def _slug(target: Target) -> str:
    gpu = re.sub(r"[^a-z0-9]+", "-", target.gpu.lower()).strip("-")
    capability = "sm" + target.compute_capability.replace(".", "")
    return f"{target.package}-{target.version}.{gpu}-{capability}"


def manifest_path(engine: Path) -> Path:
    """Return the path of an engine's manifest."""
    return engine.with_name(engine.name + ".json")


def sha256(blob: bytes) -> str:
    """Return the hexadecimal hash."""
    return hashlib.sha256(blob).hexdigest()


def manifest_bytes(manifest: Manifest) -> bytes:
    """Return the manifest as it stands beside its engine."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"


def read_manifest(engine: Path) -> Manifest:
    """Read the manifest of `engine`.

    Raises:
        BackendError: missing, unreadable, or of another schema.
    """
    path = manifest_path(engine)
    try:
        raw = msgspec.json.decode(path.read_bytes())
    except OSError as error:
        raise BackendError(
            f"{path.name}: cannot be read ({error.strerror}); expected the manifest that "
            "snakekit export writes beside an engine"
        ) from None
    except msgspec.DecodeError:
        raise BackendError(f"{path.name}: cut short or not JSON; build the engine again") from None
    found = raw.get("schema") if isinstance(raw, dict) else None
    if found != MANIFEST_SCHEMA:
        raise BackendError(
            f"{path.name}: manifest schema {found!r}, this version reads {MANIFEST_SCHEMA}"
        )
    try:
        return msgspec.convert(raw, Manifest)
    except msgspec.ValidationError as error:
        raise BackendError(f"{path.name}: {error}") from None


def why_unfit(manifest: Manifest, target: Target) -> str | None:
    """Return why an engine is not for `target`, in words, or None if it is.

    An engine built ahead of time fits every GPU of its compute capability.
    """
    made = manifest.target
    for what, have, want in (
        ("package", made.package, target.package),
        (f"{made.package} version", made.version, target.version),
        ("compute capability", made.compute_capability, target.compute_capability),
    ):
        if have != want:
            return f"built for {what} {have}, here is {want}"
    if made.gpu not in ("any", target.gpu):
        return f"built for {made.gpu}, here is {target.gpu}"
    return None


def why_stale(
    manifest: Manifest, card: ModelCard, onnx_sha256: str, profile: Profile
) -> str | None:
    """Return why an engine is not that of a model file, in words, or None if it is."""
    if manifest.card.weights_sha256 != card.weights_sha256:
        return "built from other weights"
    if manifest.onnx_sha256 != onnx_sha256:
        return "built from another file of the same weights"
    if manifest.profile != profile:
        return "built for other sizes"
    return None


def read_engine(engine: Path, manifest: Manifest) -> bytes:
    """Return the engine's bytes.

    Raises:
        BackendError: unreadable, cut or altered.
    """
    try:
        blob = engine.read_bytes()
    except OSError as error:
        raise BackendError(f"{engine.name}: cannot be read ({error.strerror})") from None
    if sha256(blob) != manifest.engine_sha256:
        raise BackendError(
            f"{engine.name}: cut short or altered, its manifest names another sha256; "
            "build it again"
        )
    return blob
