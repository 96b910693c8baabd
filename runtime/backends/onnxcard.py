"""The model card of an ONNX file, read without the onnx package.

An ONNX file is one protobuf message (`ModelProto` of onnx.proto). Its top level is walked field by
field; only the card is decoded. That also tells a file that was cut, or that is no ONNX file at
all, before any runtime gets to see it.
"""

from collections.abc import Iterator
from pathlib import Path

from snakekit.runtime.contract import CARD_KEY, CardError, ModelCard, load_card

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_IR_VERSION, _GRAPH, _OPSETS, _METADATA = 1, 7, 8, 14
_HIGHEST_FIELD = 25
"""ModelProto has no field above this one (`functions`)."""


class OnnxFileError(CardError):
    """A file that is not a whole ONNX file."""


def read_card(path: Path) -> ModelCard:
    """Return the card of an ONNX file.

    Raises:
        CardError: unreadable, cut, no ONNX file, no card, or a card of another schema.
    """
    try:
        blob = path.read_bytes()
    except OSError as error:
        raise CardError(f"{path.name}: cannot be read ({error.strerror})") from None
    return card_of(blob, origin=path.name)


def card_of(blob: bytes, *, origin: str) -> ModelCard:
    """Return the card in the bytes of an ONNX file, naming `origin` in errors.

    Raises:
        CardError: cut, no ONNX file, no card, or a card of another schema.
    """
    card: str | None = None
    seen: set[int] = set()
    data = memoryview(blob)
    for field, content in _fields(data, origin, top=True):
        seen.add(field)
        if field == _METADATA and isinstance(content, memoryview):
            entry = {k: v for k, v in _fields(content, origin) if isinstance(v, memoryview)}
            if bytes(entry.get(1, b"")).decode(errors="replace") == CARD_KEY:
                card = bytes(entry.get(2, b"")).decode(errors="replace")
    missing = {_IR_VERSION, _GRAPH, _OPSETS} - seen
    if missing:
        raise _foreign(origin) if seen.isdisjoint({_GRAPH, _OPSETS}) else _cut(origin, len(blob))
    return load_card(card, origin=origin)


def _fields(
    data: memoryview, origin: str, *, top: bool = False
) -> Iterator[tuple[int, int | memoryview]]:
    """Yield number and content of each field of one protobuf message."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at, origin)
        field, kind = key >> 3, key & 7
        if field == 0 or kind not in (_VARINT, _FIXED64, _BYTES, _FIXED32):
            raise _foreign(origin)
        if top and field > _HIGHEST_FIELD:
            raise _foreign(origin)
        if kind == _VARINT:
            value, at = _varint(data, at, origin)
            yield field, value
            continue
        size = {_FIXED64: 8, _FIXED32: 4}.get(kind, 0)
        if kind == _BYTES:
            size, at = _varint(data, at, origin)
        if at + size > len(data):
            # The large field that runs past the end is the graph; in other files, anything.
            raise _cut(origin, len(data)) if field in (_GRAPH, _METADATA) else _foreign(origin)
        yield field, data[at : at + size]
        at += size


def _varint(data: memoryview, at: int, origin: str) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 64:
        byte = data[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return value, at
        shift += 7
    raise _foreign(origin) if shift >= 64 else _cut(origin, len(data))


def _foreign(origin: str) -> OnnxFileError:
    return OnnxFileError(f"{origin}: not an ONNX file; expected a model made by snakekit export")


def _cut(origin: str, size: int) -> OnnxFileError:
    return OnnxFileError(
        f"{origin}: cut short after {size:,} bytes; expected a whole ONNX file, copy it again"
    )
