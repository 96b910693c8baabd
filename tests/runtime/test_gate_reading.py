"""What the gate reads of requests: the same as aiohttp, and nothing is lost."""

import asyncio
import itertools
import random

from aiohttp.http_parser import HttpRequestParser
from hypothesis import given
from hypothesis import strategies as st
from raw_http import wire

from snakekit.runtime import gate as gates
from snakekit.runtime.gate import Gatekeeper, State, shape_of
from snakekit.runtime.metrics import Metrics
from snakekit.runtime.turns import BURST

LINE = b"POST /move HTTP/1."

HEADS = [
    b"POST /move HTTP/1.1",
    b"POST /move HTTP/1.0",
    b"GET / HTTP/1.1",
    b"Host: a",
    b"Content-Length: 5",
    b"content-length:5",
    b"Content-Length: +5",
    b"Content-Length: 5, 5",
    b"Content-Length : 5",
    b"Content-Length: 0",
    b"Content-Length: 3",
    b"Transfer-Encoding: chunked",
    b"Expect: 100-continue",
    b"Connection: Upgrade",
    b"Upgrade: websocket",
    b"X: y\r\n content-length: 9",
    b"X: \r\nContent-Length: 5",
    b"Content-Length: 5\nContent-Length: 50",
]


def test_its_reading_of_a_request_is_aiohttps() -> None:
    """Where the gate is certain, aiohttp sees one whole request of the same bytes, or none."""
    dice = random.Random(7)
    certain = whole = 0
    for _ in range(5_000):
        rows = [HEADS[3], *dice.choices(HEADS[4:], k=dice.choice((0, 1, 1, 2)))]
        head = b"\r\n".join([dice.choice(HEADS[:3]), *rows])
        if dice.random() < 0.5:
            made = bytearray(head)
            made[dice.randrange(len(made))] = dice.choice(b" \r\n:5,c\x00")
            head = bytes(made)
        data = head + b"\r\n\r\n" + b"hello"
        shape = shape_of(data, data.find(b"\r\n\r\n"), LINE)
        if shape is None or shape.size > len(data):
            continue
        certain += 1
        parsed = parse(data[: shape.size])
        # None: aiohttp refuses it, and closes the connection.
        assert parsed in (None, 1), (data, shape)
        whole += parsed == 1
    assert 300 < whole < certain


def parse(data: bytes) -> int | None:
    """Return how many whole requests aiohttp finds, None for an error."""
    loop = asyncio.new_event_loop()
    try:
        parser = HttpRequestParser(Quiet(), loop, 2**16)
        messages, upgraded, tail = parser.feed_data(data)
    except Exception:
        return None
    finally:
        loop.close()
    whole = [m for m, payload in messages if payload.is_eof()]
    assert not tail or upgraded
    return len(whole) if len(whole) == len(messages) and not upgraded else -1


class Quiet:
    """As much of a protocol as the parser wants."""

    _reading_paused = False

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Inner(asyncio.Protocol):
    """Takes what a gate hands on."""

    def __init__(self) -> None:
        self.data = b""

    def data_received(self, data: bytes) -> None:
        self.data += data


class Wire:
    """As much of a transport as a gate wants."""

    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data

    def is_closing(self) -> bool:
        return False

    def close(self) -> None: ...


PIECES = [
    wire(b"{}"),
    wire(b"", first="POST /end HTTP/1.1"),
    wire(b'{"timeout": 500}' * 9, "X: " + "y" * 500),
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /move HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    b"garbage\r\n\r\n",
    wire(b"POST /move HTTP/1.1\r\nContent-Length: 0\r\n\r\n"),
]


@given(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=5),
    st.lists(st.integers(1, 400), max_size=12),
    st.booleans(),
    st.data(),
)
def test_nothing_is_lost_however_it_is_cut(
    pieces: list[bytes], cuts: list[int], pressed: bool, data: st.DataObject
) -> None:
    """What is handed on and what is refused make up what came, in order and in whole requests."""

    async def play() -> None:
        inner, outer = Inner(), Wire()
        keeper = Gatekeeper(Metrics(), clock=lambda: 0.0)
        keeper.turns.cost_s = 1000.0 if pressed else 0.0
        gate = gates.Gate(keeper, lambda: inner)
        gate.connection_made(outer)  # type: ignore[arg-type]
        stream, at = b"".join(pieces), 0
        for cut in [*cuts, len(stream)]:
            keeper.turns._begun = BURST if pressed else 0
            if not stream[at : at + cut]:
                break
            gate.data_received(stream[at : at + cut])
            at += cut
            if data.draw(st.booleans()) and gate.state is State.BUSY and gate._left == 0:
                gate.answered()
        refused = outer.written.count(b"HTTP/1.1 503")
        assert outer.written == gates.BUSY_ANSWER * refused
        kept = inner.data + gate._buffer
        if not refused:
            assert kept == stream
            return
        assert pressed
        lost = [piece for piece in pieces if piece.startswith(LINE)]
        assert any(
            b"".join(p for i, p in enumerate(pieces) if i not in gone) == kept
            for gone in itertools.combinations(range(len(pieces)), refused)
            if all(pieces[i] in lost for i in gone)
        )

    asyncio.run(play())
