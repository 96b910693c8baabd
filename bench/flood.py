"""Requests at a fixed rate, whatever becomes of those before, with little work for each.

A general client takes as long for a request as the server takes to refuse one, and would measure
itself. Here requests are prepared, and nothing waits: one timer sends what is due and gives up what
is late, and answers are counted where they arrive.
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterator

from snakekit.bench.load import BUSY, Sample, Target
from snakekit.bench.protocol import Answer, Kind, read_answer

TICK_S = 0.001


class Flood:
    """Sends prepared requests to one server over as many connections as it takes."""

    def __init__(self, target: Target, requests: Iterator[bytes], timeout_s: float) -> None:
        """Take endless `requests`; one without an answer for `timeout_s` is given up."""
        self._target = target
        self._requests = requests
        self._timeout_s = timeout_s
        self.sample = Sample()
        self.idle: list[_Line] = []
        self._open: deque[tuple[float, _Line, int]] = deque()
        """What was sent, oldest first: when, over which connection, and its how manieth request."""
        self._opening: set[asyncio.Task[None]] = set()

    async def connect(self, lines: int) -> None:
        """Open connections one after the other, as games that begin one after the other do.

        Raises:
            OSError: the server does not take them.
        """
        loop = asyncio.get_running_loop()
        for _ in range(lines):
            _, line = await loop.create_connection(
                lambda: _Line(self), self._target.host, self._target.port
            )
            self.idle.append(line)

    async def run(self, seconds: float, per_second: float) -> Sample:
        """Send for so long, wait for the last answers, and return what came of it."""
        begin = time.perf_counter()
        total, sent = round(seconds * per_second), 0
        while sent < total:
            now = time.perf_counter()
            due = min(total, int((now - begin) * per_second) + 1)
            for number in range(sent, due):
                self.sample.lag_ms.append((now - begin - number / per_second) * 1000)
                self._send()
            sent = max(sent, due)
            self._give_up(now)
            await asyncio.sleep(TICK_S)
        self.sample.seconds = time.perf_counter() - begin
        for _ in range(round(self._timeout_s / TICK_S) + 100):
            self._give_up(time.perf_counter())
            if not self._open and not self._opening:
                break
            await asyncio.sleep(TICK_S)
        for line in self.idle:
            line.close()
        return self.sample

    def _send(self) -> None:
        request = next(self._requests)
        while self.idle:
            line = self.idle.pop()
            if line.transport is not None:
                self.put(line, request, time.perf_counter())
                return
        task = asyncio.create_task(self._connect(request, time.perf_counter()))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _connect(self, request: bytes, at: float) -> None:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._timeout_s):
                _, line = await loop.create_connection(
                    lambda: _Line(self), self._target.host, self._target.port
                )
        except (TimeoutError, OSError) as error:
            self.sample.count(Answer(Kind.HTTP_ERROR, detail=f"connect: {error}"), busy=False)
            return
        self.put(line, request, at)

    def put(self, line: "_Line", request: bytes, at: float) -> None:
        """Write a request and note that it waits for its answer."""
        if line.transport is None:
            self.sample.count(Answer(Kind.HTTP_ERROR, detail="closed"), busy=False)
            return
        line.number += 1
        line.at = at
        line.transport.write(request)
        self._open.append((at, line, line.number))

    def _give_up(self, now: float) -> None:
        while self._open:
            at, line, number = self._open[0]
            waits = line.at is not None and line.number == number
            if waits and now - at < self._timeout_s:
                return
            self._open.popleft()
            if waits:
                line.fail(Answer(Kind.TIMEOUT, detail="no answer in time"))


class _Line(asyncio.Protocol):
    """One connection with at most one request at a time."""

    __slots__ = ("_buffer", "_flood", "at", "number", "transport")

    def __init__(self, flood: Flood) -> None:
        self._flood = flood
        self._buffer = b""
        self.transport: asyncio.Transport | None = None
        self.number = 0
        self.at: float | None = None
        """When the request that waits was sent."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self.at is not None:
            self.fail(Answer(Kind.HTTP_ERROR, detail=str(exc or "closed without an answer")))

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        data = self._buffer + data
        end = data.find(b"\r\n\r\n")
        at = data.lower().find(b"content-length:", 0, end)
        if end < 0 or at < 0 or self.at is None:
            self._buffer = data
            return
        size = int(data[at + 15 : data.index(b"\r", at)])
        if len(data) < end + 4 + size:
            self._buffer = data
            return
        self._buffer = b""
        took_ms, self.at = (now - self.at) * 1000, None
        status = int(data[9:12])
        self._flood.sample.count(read_answer(status, data[end + 4 :], took_ms), busy=status == BUSY)
        self._flood.idle.append(self)

    def fail(self, answer: Answer) -> None:
        """Count a request without an answer, and close."""
        self.at = None
        self._flood.sample.count(answer, busy=False)
        self.close()

    def close(self) -> None:
        """Close at once."""
        if self.transport is not None:
            self.transport.abort()
            self.transport = None
