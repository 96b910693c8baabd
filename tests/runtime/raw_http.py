"""Requests as bytes, and a client that sends them as it likes."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

Json = dict[str, Any]


def wire(body: bytes, *lines: str, first: str = "POST /move HTTP/1.1") -> bytes:
    rows = [first, "Host: x", f"Content-Length: {len(body)}", *lines]
    return ("\r\n".join(rows) + "\r\n\r\n").encode() + body


class Connection:
    """A client that sends bytes as it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, limit_s: float = 10.0) -> tuple[int, Json]:
        async with asyncio.timeout(limit_s):
            head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            body = await self.reader.readexactly(length)
        return int(head[9:12]), json.loads(body)

    async def closed(self, limit_s: float = 10.0) -> bool:
        async with asyncio.timeout(limit_s):
            with contextlib.suppress(ConnectionError):
                return await self.reader.read() == b""
            return True


@pytest.fixture
async def connect() -> AsyncIterator[Callable[[Any], Awaitable[Connection]]]:
    """Give a function that connects to the server of a client."""
    made: list[Connection] = []

    async def connect(client: Any) -> Connection:
        made.append(Connection(*await asyncio.open_connection("127.0.0.1", client.server.port)))
        return made[-1]

    yield connect
    for one in made:
        one.writer.close()
        with contextlib.suppress(ConnectionError):
            await one.writer.wait_closed()


async def until(true: Callable[[], bool]) -> None:
    for _ in range(1000):
        if true():
            return
        await asyncio.sleep(0.005)
    pytest.fail("it did not happen")
