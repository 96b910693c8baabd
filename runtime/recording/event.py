"""What the server tells the recording process: length-prefixed MessagePack over a pipe."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from snakekit.runtime.decided import Decided

_PREFIX = 4


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """A request that was answered. `body` is as it came; `decided` is None for an `/end`."""

    kind: Literal["move", "end"]
    game: str
    you: str
    turn: int
    body: bytes
    decided: Decided | None = None


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """What the recording process reports: counts since it began, one JSON line each.

    `refused` ends it: the folder cannot be used.
    """

    games: int = 0
    """Games finished, whether they ended or were given up."""
    failed: int = 0
    """Events and games that could not be written; a game is tried again."""
    bytes: int = 0
    """Size of all records."""
    error: str = ""
    """The last failure."""
    refused: str = ""


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Event)


def pack(event: Event) -> bytearray:
    """Return a frame."""
    frame = bytearray(_PREFIX)
    _encoder.encode_into(event, frame, _PREFIX)
    frame[:_PREFIX] = (len(frame) - _PREFIX).to_bytes(_PREFIX)
    return frame


def unpack(buffer: bytearray) -> Iterator[Event]:
    """Take the whole frames off the front of `buffer`.

    Raises:
        msgspec.DecodeError: the other side speaks something else.
    """
    start = 0
    try:
        while len(buffer) >= start + _PREFIX:
            end = start + _PREFIX + int.from_bytes(buffer[start : start + _PREFIX])
            if len(buffer) < end:
                return
            body = buffer[start + _PREFIX : end]
            start = end
            yield _decoder.decode(body)
    finally:
        del buffer[:start]
