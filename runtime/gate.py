"""Between the sockets and aiohttp: bounds on connections, on slow senders and on load.

A `Gate` stands before every connection. It hands a request on only once its headers are whole, so
that a connection that sends nothing, or a byte a second, costs a small object and is closed in
time. It also knows where most requests begin and end, so that a move which cannot be answered in
time any more is refused before any work is done for it, in a few microseconds.
"""

import asyncio
import re
import time
from collections.abc import Callable
from enum import Enum
from typing import NamedTuple, cast

from aiohttp import web

from snakekit.runtime.metrics import Metrics
from snakekit.runtime.turns import BUSY_SENTENCE, Turns

HEADERS_LIMIT = 32 << 10
HELD_LIMIT = 64 << 10
"""A larger move is left to aiohttp, which reads no more than it may; usual ones have some kB."""
SWEEP_S = 0.5
_METHODS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_TIMEOUT = re.compile(rb'"timeout"\s*:\s*(\d{1,7})\b')


class State(Enum):
    """What a connection is doing."""

    READING = "reading"
    """New, or within a request that is not whole."""
    IDLE = "idle"
    """Between two requests."""
    BODY = "body"
    """aiohttp waits for the rest of a body."""
    WAITING = "waiting"
    """Its move waits to be begun."""
    BUSY = "busy"
    """aiohttp has a request that is not answered."""


class Shape(NamedTuple):
    """Where a request ends, in bytes from its beginning, and whether it is a move."""

    size: int
    is_move: bool


def shape_of(data: bytes, end: int, move_line: bytes) -> Shape | None:
    """Return the shape of the request whose headers end at `end`, None where it is not certain.

    Certain is only what every reader understands alike: one plain length, or no body.
    """
    head = data[:end].lower()
    if b"\r\ntransfer-encoding" in head or b"\r\nexpect" in head or b"\r\nupgrade" in head:
        return None
    at = head.find(b"\r\ncontent-length:")
    if at < 0:
        return Shape(end + 4, is_move=False) if head.startswith((b"get ", b"head ")) else None
    if head.find(b"\r\ncontent-length", at + 1) >= 0:
        return None
    value = head[at + 17 :].split(b"\r\n", 1)[0].strip(b" ")
    if not value.isdigit() or len(value) > 9:
        return None
    return Shape(end + 4 + int(value), is_move=data.startswith(move_line))


def canned(status: int, reason: str, error: str, *, close: bool = False) -> bytes:
    """Return a whole HTTP answer with an error in the server's usual form."""
    body = f'{{"error":"{error}"}}'
    ending = "Connection: close\r\n" if close else ""
    return (
        f"HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
        f"Content-Length: {len(body)}\r\n{ending}\r\n{body}"
    ).encode()


BUSY_ANSWER = canned(503, "Service Unavailable", BUSY_SENTENCE)


class Gatekeeper:
    """What all connections of one port share. Belongs to one event loop."""

    def __init__(
        self,
        metrics: Metrics,
        *,
        path: str = "",
        read_timeout_s: float = 10.0,
        keepalive_s: float = 620.0,
        connections: int = 4096,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Set the bounds.

        Args:
            metrics: where refusals are counted.
            path: what stands before `/move`.
            read_timeout_s: longest time from a request's first byte to the last of its headers,
                and from a connection's begin to its first request.
            keepalive_s: longest time between two requests of a connection.
            connections: open at the same time; the longest silent one makes way for a new one.
            clock: seconds.
        """
        self.metrics = metrics
        self.move_line = f"POST {path}/move HTTP/1.".encode()
        self.clock = clock
        self._read_timeout_s, self._keepalive_s = read_timeout_s, keepalive_s
        self._limit = connections
        self._gates: dict[State, dict[Gate, None]] = {state: {} for state in State}
        self.turns = Turns(clock=clock)
        late = f"headers: incomplete, expected all of them within {read_timeout_s:g} s"
        self._late_answer = canned(408, "Request Timeout", late, close=True)

    @property
    def connections(self) -> int:
        """Open connections."""
        return sum(map(len, self._gates.values()))

    def moved(self, gate: "Gate", state: State) -> None:
        """Note a connection's new state; each state lists its connections, longest first."""
        if gate.is_open:
            self._gates[gate.state].pop(gate, None)
            gate.state = state
            self._gates[state][gate] = None

    def opened(self, gate: "Gate") -> None:
        """Take in a new connection, and close another one where there are too many."""
        if self.connections >= self._limit:
            silent = (State.READING, State.BODY, State.IDLE)
            victim = next((g for state in silent for g in self._gates[state]), gate)
            self.metrics.rejected["connections"].inc()
            self.closed(victim)
            victim.abort()
        self.moved(gate, State.READING)

    def closed(self, gate: "Gate") -> None:
        """Forget a connection."""
        self._gates[gate.state].pop(gate, None)

    async def sweep(self) -> None:
        """Close what is silent for too long, for ever."""
        while True:
            await asyncio.sleep(SWEEP_S)
            now = self.clock()
            for state, longest in (
                (State.READING, self._read_timeout_s),
                (State.IDLE, self._keepalive_s),
            ):
                for gate in list(self._gates[state]):
                    if now - gate.since <= longest:
                        break
                    if gate.close(self._late_answer if gate.has_part else b""):
                        self.metrics.rejected["timeout"].inc()

    def close(self) -> None:
        """Let waiting moves begin, then close the connections that aiohttp does not know."""
        self.turns.begin_all()
        for gate in [g for gates in self._gates.values() for g in gates if not g.handed_on]:
            gate.close()


class Gate(asyncio.Protocol):
    """One connection, seen from the socket."""

    __slots__ = (
        "_buffer",
        "_inner",
        "_keeper",
        "_left",
        "_make_inner",
        "_next_arrival",
        "_transport",
        "arrival",
        "since",
        "state",
    )

    def __init__(self, keeper: Gatekeeper, make_inner: Callable[[], asyncio.Protocol]) -> None:
        self._keeper = keeper
        self._make_inner = make_inner
        self._inner: asyncio.Protocol | None = None
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._left: int | None = 0
        """Bytes that the running request still lacks; None once its end is not certain."""
        self._next_arrival: float | None = None
        """When the first byte came that may be of the request behind the running one."""
        self.arrival: float | None = None
        """When the running request's first byte came."""
        self.since = keeper.clock()
        self.state = State.READING

    @property
    def is_open(self) -> bool:
        """Whether the connection still exists."""
        return self._transport is not None

    @property
    def handed_on(self) -> bool:
        """Whether aiohttp knows this connection."""
        return self._inner is not None

    @property
    def has_part(self) -> bool:
        """Whether a part of a request has come."""
        return bool(self._buffer)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for a request."""
        self._transport = cast(asyncio.Transport, transport)
        self._keeper.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell aiohttp, which cancels what runs."""
        self._transport = None
        self._keeper.closed(self)
        if self._inner is not None:
            self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        """Pass it on."""
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass it on."""
        if self._inner is not None:
            self._inner.resume_writing()

    def eof_received(self) -> None:
        """Take a client that stops sending for one that leaves, as aiohttp does."""
        if self._inner is not None:
            self._inner.eof_received()

    def data_received(self, data: bytes) -> None:
        """Hand on what belongs to a running request, look at what begins a new one."""
        if self.state in (State.BUSY, State.BODY) or self._left is None:
            self._go_on(data)
            return
        if not self._buffer:
            self.arrival = self.since = self._keeper.clock()
            self._keeper.moved(self, State.READING)
        self._buffer += data
        if self.state is State.WAITING:
            self._hand_on(None)
        else:
            self._look()

    def _go_on(self, data: bytes) -> None:
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                # The next request comes before the answer to this one, from now on aiohttp alone
                # tells them apart.
                self._left = None
        if self.state is State.IDLE:
            self.arrival = self._next_arrival = self.since = self._keeper.clock()
            self._keeper.moved(self, State.READING)
        elif self._left is None and self._next_arrival is None:
            self._next_arrival = self._keeper.clock()
        assert self._inner is not None
        self._inner.data_received(data)

    def _look(self) -> None:
        data = self._buffer
        end = data.find(b"\r\n\r\n")
        if end < 0:
            plain = data[0] in _METHODS and b"\n\n" not in data
            if not plain or len(data) > HEADERS_LIMIT:
                self._hand_on(None)
            return
        shape = shape_of(data, end, self._keeper.move_line)
        if shape is None or shape.size < len(data):
            self._hand_on(None)
        elif not shape.is_move or shape.size > HELD_LIMIT:
            self._hand_on(shape.size - len(data))
        elif not self._keeper.turns.pressed:
            self._keeper.turns.begin()
            self._hand_on(shape.size - len(data))
        elif shape.size == len(data):
            self._wait_or_refuse(data, end)

    def _wait_or_refuse(self, data: bytes, end: int) -> None:
        found = _TIMEOUT.search(data, end)
        self._keeper.moved(self, State.WAITING)
        if self._keeper.turns.queue(self._begin, float(found[1]) if found else 0.0):
            return
        self._keeper.metrics.rejected["busy"].inc()
        self._buffer = b""
        assert self._transport is not None
        self._transport.write(BUSY_ANSWER)
        self.answered()
        head = data[:end].lower()
        if b" http/1.0\r\n" in head or b"\r\nconnection: close" in head:
            self._transport.close()

    def _begin(self) -> bool:
        """Hand on the move that waited; False if it does not wait any more."""
        if self.state is not State.WAITING or self._transport is None:
            return False
        self._hand_on(0)
        return True

    def _hand_on(self, left: int | None) -> None:
        """Give aiohttp what has come; `left` bytes of the request are still to come."""
        self._keeper.moved(self, State.BUSY)
        data, self._buffer = self._buffer, b""
        self._left = left
        if left is None:
            self._next_arrival = self._keeper.clock()
        if self._inner is None:
            assert self._transport is not None
            self._inner = self._make_inner()
            self._inner.connection_made(self._transport)
        self._inner.data_received(data)

    def running(self) -> None:
        """Note that aiohttp works on a request."""
        self._keeper.moved(self, State.BUSY)

    def waits_for_body(self) -> None:
        """Note that aiohttp has not all of the request yet; `running` ends that."""
        self._keeper.moved(self, State.BODY)

    async def turn(self, timeout_ms: float) -> None:
        """Let a move wait for its turn, where that was not possible before aiohttp had it.

        Raises:
            RequestError: 503, its turn is reckoned to come too late.
        """
        if self._left is None:
            await self._keeper.turns.wait(timeout_ms)

    def answered(self) -> None:
        """Note that the running request is answered; called just before the answer is written."""
        self.since = self._keeper.clock()
        self.arrival, self._next_arrival = self._next_arrival, None
        if self._left:
            # The rest of a body that was refused may still come.
            self._left = None
        self._keeper.moved(self, State.IDLE)

    def close(self, last: bytes = b"") -> bool:
        """Close after writing `last`; return whether anything was written.

        The second time without mercy: one who reads nothing would hold the connection for ever.
        """
        if self._transport is None:
            return False
        if self._transport.is_closing():
            self.abort()
            return False
        if last:
            self._transport.write(last)
        self._transport.close()
        return bool(last)

    def abort(self) -> None:
        """Close at once, whatever is still to be written."""
        if self._transport is not None:
            self._transport.abort()


def gate_of(request: web.BaseRequest) -> Gate | None:
    """Return the gate that a request came through, if any."""
    if request.transport is None:
        return None
    found = request.transport.get_protocol()
    return found if isinstance(found, Gate) else None


class GatedRunner(web.AppRunner):
    """An aiohttp runner whose connections come through gates."""

    def __init__(self, app: web.Application, keeper: Gatekeeper, **options: object) -> None:
        super().__init__(app, **options)  # type: ignore[arg-type]
        self.keeper = keeper

    @property
    def server(self) -> web.Server | None:
        """What makes the protocol of a new connection."""
        inner = super().server
        if inner is None:
            return None
        return cast(web.Server, lambda: Gate(self.keeper, inner))

    async def cleanup(self) -> None:
        """Let running moves finish and close everything."""
        self.keeper.close()
        await super().cleanup()
