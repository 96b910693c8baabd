"""The live side of the watch page: server-sent events, to callers on this machine only.

The page shows names and boards, so it is not for everybody who may read metrics: it answers only
loopback addresses under a loopback name (an SSH tunnel or `kubectl port-forward` is one).
Nothing is prepared for it while nobody watches.
"""

import asyncio
import contextlib
import ipaddress
from collections.abc import AsyncGenerator

import msgspec
from aiohttp import web

from snakekit.runtime.api import Request
from snakekit.runtime.decided import decided
from snakekit.runtime.engine import Answer, Engine
from snakekit.runtime.watch.page import Frame, SeatFrame, page

VIEWERS = 8
QUEUE = 64
"""Frames that wait for a slow browser; the oldest are dropped."""
HEARTBEAT_S = 10.0
_SAFE = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
_NAMES = ("localhost", "127.0.0.1", "[::1]")
_Queue = asyncio.Queue[bytes | None]


class _Board(msgspec.Struct):
    board: msgspec.Raw


_board_decoder = msgspec.json.Decoder(_Board)


def expected_by_snake(asked: Request, answer: Answer) -> list[SeatFrame] | None:
    """Return what the model expects of every listed snake, if it answered for all."""
    evaluation = answer.choice.evaluation
    if evaluation is None or not evaluation.seats:
        return None
    listed = asked.board.snakes or ()
    return [
        SeatFrame(listed[seat].id, [round(p, 4) for p in policy], round(utility, 4))
        for seat, policy, utility in evaluation.seats
        if seat < len(listed)
    ]


class Watch:
    """Sends every answered move to those who watch."""

    def __init__(self, engine: Engine) -> None:
        """Prepare for the games of `engine`."""
        self._engine = engine
        self._viewers: set[_Queue] = set()

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the private port."""
        return [web.get("/watch", self._page), web.get("/watch/events", self._events)]

    async def close(self, _: web.Application) -> None:
        """End the streams, which else would hold up the server's end."""
        for queue in self._viewers:
            _put(queue, None)

    def moved(self, body: bytes, asked: Request, answer: Answer) -> None:
        """Show one answered `/move`."""
        if not self._viewers:
            return
        row = decided(asked, answer, self._engine.card, self._engine.backend_info)
        self._show(
            Frame(
                game=asked.game.id,
                you=asked.you.id,
                turn=asked.turn,
                board=_board_decoder.decode(body).board,
                decided=row,
                seats=expected_by_snake(asked, answer),
            )
        )

    def ended(self, body: bytes, asked: Request) -> None:
        """Show the end of a game."""
        if not self._viewers:
            return
        self._show(
            Frame(
                game=asked.game.id,
                you=asked.you.id,
                turn=asked.turn,
                board=_board_decoder.decode(body).board,
                over=True,
            )
        )

    def _show(self, frame: Frame) -> None:
        # A request may be spread over lines, an event must not be.
        data = msgspec.json.format(msgspec.json.encode(frame), indent=-1)
        event = b"event: frame\ndata: " + data + b"\n\n"
        for queue in self._viewers:
            _put(queue, event)

    async def _page(self, request: web.Request) -> web.Response:
        _check(request)
        text = page("snakekit: running games")
        return web.Response(text=text, content_type="text/html", headers=_SAFE)

    async def _events(self, request: web.Request) -> web.StreamResponse:
        _check(request)
        if len(self._viewers) >= VIEWERS:
            raise web.HTTPServiceUnavailable(text=f"watch: at most {VIEWERS} viewers")
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", **_SAFE})
        await response.prepare(request)
        with contextlib.suppress(ConnectionError):
            async with contextlib.aclosing(self._stream()) as stream:
                async for event in stream:
                    await response.write(event)
        return response

    async def _stream(self) -> AsyncGenerator[bytes, None]:
        queue: _Queue = asyncio.Queue(QUEUE)
        self._viewers.add(queue)
        try:
            yield b": hello\n\n"
            while True:
                try:
                    event = await asyncio.wait_for(queue.get(), HEARTBEAT_S)
                except TimeoutError:
                    # Only writing shows that a browser has gone.
                    event = b": still here\n\n"
                if event is None:
                    return
                yield event
        finally:
            self._viewers.discard(queue)


def _put(queue: _Queue, event: bytes | None) -> None:
    if queue.full():
        queue.get_nowait()
    queue.put_nowait(event)


def _check(request: web.Request) -> None:
    """Refuse strangers, and pages of other sites that have a name lead here."""
    host = request.host if request.host.endswith("]") else request.host.rpartition(":")[0]
    if not is_near(request.remote) or (host or request.host) not in _NAMES:
        raise web.HTTPForbidden(text="watch: only for callers on this machine")


def is_near(address: str | None) -> bool:
    """Return whether an address of a caller is one of this machine's own, as IPv4, IPv6 or both."""
    try:
        found = ipaddress.ip_address(address or "")
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback
