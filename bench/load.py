"""A load generator: prepared official requests over plain connections, cheap enough to saturate.

Its own work is some 50 microseconds a request, a tenth of what a general HTTP client takes, so that
one core can ask for more moves than the server can answer.
"""

import asyncio
import math
import time
import uuid
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import msgspec

from snakekit.bench.match import derive_seed
from snakekit.bench.protocol import Answer, Kind, Seat, Turn, game_object, read_answer
from snakekit.bench.tally import percentile
from snakekit.core import Settings, State, greedy_move

GAME_MARK = "game-id-game-id-game-id-game-id-game"
"""Stands for the game's id, as long as a UUID, so that a prepared request fits every game."""
LATENCY_MARK = "latency-of-ours"
BUSY = 503


class Target:
    """Where the server is, and the unchanging part of every request to it."""

    def __init__(self, url: str) -> None:
        """Take `http://HOST[:PORT][/PREFIX]` apart.

        Raises:
            ValueError: not such an address.
        """
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"url: expected http://HOST:PORT, found {url!r}")
        self.host, self.port = parts.hostname, parts.port or 80
        self._prefix = parts.path.rstrip("/")
        self._lines = (
            f" HTTP/1.1\r\nHost: {parts.netloc}\r\nUser-Agent: Go-http-client/1.1\r\n"
            "Content-Type: application/json\r\nAccept-Encoding: gzip\r\nContent-Length: "
        )

    def request(self, what: str, body: bytes) -> bytes:
        """Return the bytes of a POST to `/what`."""
        head = f"POST {self._prefix}/{what}{self._lines}{len(body)}\r\n\r\n"
        return head.encode() + body


class Connection(asyncio.Protocol):
    """One HTTP/1.1 connection with one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._buffer = b""

    @property
    def usable(self) -> bool:
        """Whether the server has left it open."""
        return self._transport is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the request that waits."""
        self._transport = None
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("closed without an answer"))

    def data_received(self, data: bytes) -> None:
        """Collect the answer until it is whole."""
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0 or self._answer is None or self._answer.done():
            return
        head = self._buffer[:end].lower()
        at = head.find(b"content-length:")
        length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        if len(self._buffer) < end + 4 + length:
            return
        body, self._buffer = self._buffer[end + 4 : end + 4 + length], b""
        if b"connection: close" in head:
            self.close()
        self._answer.set_result((int(head[9:12]), body))

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Send a whole request and return status and body of its answer.

        Raises:
            OSError: the connection broke.
        """
        if self._transport is None:
            raise ConnectionResetError("closed")
        self._buffer = b""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            return await self._answer
        except asyncio.CancelledError:
            # What still comes would be taken for the answer to the next request.
            self.close()
            raise

    def close(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()
            self._transport = None


class Client:
    """Sends requests over as many connections as are in use at once, and judges the answers."""

    def __init__(self, target: Target, timeout_ms: int) -> None:
        self.target = target
        self._timeout_s = timeout_ms / 1000
        self._idle: list[Connection] = []

    async def move(self, request: bytes) -> Answer:
        """Send a prepared `/move`; what is wrong with the answer stands in it."""
        return (await self._ask(request))[0]

    async def notify(self, request: bytes) -> None:
        """Send a prepared `/start` or `/end`, whose answer plays no part."""
        await self._ask(request)

    async def _ask(self, request: bytes) -> tuple[Answer, int]:
        begun = time.perf_counter()
        try:
            async with asyncio.timeout(self._timeout_s):
                status, body = await self._send(request)
        except TimeoutError:
            took = (time.perf_counter() - begun) * 1000
            return Answer(Kind.TIMEOUT, latency_ms=took, detail="no answer in time"), 0
        except OSError as error:
            took = (time.perf_counter() - begun) * 1000
            return Answer(Kind.HTTP_ERROR, latency_ms=took, detail=str(error)), 0
        took = (time.perf_counter() - begun) * 1000
        return read_answer(status, body, took), status

    async def ask(self, request: bytes) -> tuple[Answer, bool]:
        """Send a prepared `/move`; also return whether the server refused it as too busy."""
        answer, status = await self._ask(request)
        return answer, status == BUSY

    async def _send(self, request: bytes) -> tuple[int, bytes]:
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                break
        else:
            loop = asyncio.get_running_loop()
            _, connection = await loop.create_connection(
                Connection, self.target.host, self.target.port
            )
        found = await connection.ask(request)
        if connection.usable:
            self._idle.append(connection)
        return found

    def close(self) -> None:
        """Close all connections."""
        for connection in self._idle:
            connection.close()
        self._idle.clear()


@dataclass(frozen=True)
class Script:
    """One game from the first seat's side: bodies of `/start`, each `/move` and `/end`."""

    start: bytes
    moves: tuple[bytes, ...]
    end: bytes


def scripts(count: int, *, seed: int, snakes: int, timeout_ms: int) -> list[Script]:
    """Return seeded games of the greedy player on 11x11, with marks for id and latency."""
    return [_script(seed, number, snakes, timeout_ms) for number in range(count)]


def _script(seed: int, number: int, snakes: int, timeout_ms: int) -> Script:
    settings = Settings(solo=snakes == 1)
    seats = [Seat(f"{GAME_MARK}-{i}", f"snake {i}") for i in range(snakes)]
    seats[0].latency = LATENCY_MARK
    state = State.new_game(
        11, 11, [s.id for s in seats], derive_seed(seed, "board", number), settings
    )
    game = game_object(
        game_id=GAME_MARK,
        ruleset="standard",
        map_name="standard",
        timeout_ms=timeout_ms,
        settings=settings,
    )

    def body(*, turn: int | None = None) -> bytes:
        return msgspec.json.encode(Turn(game, state, seats, turn=turn).request(0))

    start, moves = body(), []
    while state.alive(0) and not state.game_over():
        moves.append(body())
        draw = derive_seed(seed, "move", number, state.turn)
        chosen = [0] * snakes
        for seat in state.living():
            chosen[seat] = greedy_move(state, seat, draw + seat)
        state.step(chosen)
        state.spawn_food(derive_seed(seed, "food", number))
    return Script(start, tuple(moves), body(turn=state.turn + 1))


class Player:
    """Plays prepared games one after the other, as one engine does, over and over."""

    def __init__(self, client: Client, games: list[Script], *, first: int, name: str) -> None:
        """Begin with game `first`; `name` makes the games' ids differ from other players'."""
        self._client = client
        self._games = games
        self._number = first
        self._name = name
        self._requests = self._endless()
        self.latency_ms = 0

    def _endless(self) -> Iterator[tuple[str, bytes, bytes]]:
        while True:
            script = self._games[self._number % len(self._games)]
            identity = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self._name} {self._number}")).encode()
            self._number += 1
            yield "start", script.start, identity
            for body in script.moves:
                yield "move", body, identity
            yield "end", script.end, identity

    async def next_move(self) -> bytes:
        """Return the next `/move`, after any `/end` and `/start` before it have been sent."""
        while True:
            what, template, identity = next(self._requests)
            body = template.replace(GAME_MARK.encode(), identity)
            if what == "start":
                self.latency_ms = 0
            request = self._client.target.request(
                what, body.replace(LATENCY_MARK.encode(), b"%d" % self.latency_ms)
            )
            if what == "move":
                return request
            await self._client.notify(request)


@dataclass
class Sample:
    """What a load met: answers in ms, refusals in ms, and faults by kind."""

    answers_ms: list[float] = field(default_factory=list)
    refusals_ms: list[float] = field(default_factory=list)
    faults: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    lag_ms: list[float] = field(default_factory=list)
    """How much later than planned each request was sent: the generator's own limit."""

    def count(self, answer: Answer, *, busy: bool) -> None:
        """Add one answer."""
        if busy:
            self.refusals_ms.append(answer.latency_ms)
        elif answer.kind is Kind.OK:
            self.answers_ms.append(answer.latency_ms)
        else:
            words = f"{answer.kind.value}: {answer.detail}" if answer.detail else answer.kind.value
            self.faults[words] = self.faults.get(words, 0) + 1

    def add(self, other: "Sample") -> None:
        """Add what came after."""
        self.answers_ms += other.answers_ms
        self.refusals_ms += other.refusals_ms
        self.lag_ms += other.lag_ms
        self.seconds += other.seconds
        for words, count in other.faults.items():
            self.faults[words] = self.faults.get(words, 0) + count

    @property
    def moves(self) -> int:
        """Requests sent."""
        return len(self.answers_ms) + len(self.refusals_ms) + sum(self.faults.values())

    @property
    def per_second(self) -> float:
        """Moves answered a second."""
        return len(self.answers_ms) / self.seconds if self.seconds else math.nan

    def answered(self, share: float) -> float:
        """Return the time in ms that `share` of the answers do not exceed."""
        return percentile(self.answers_ms, share)


async def closed_loop(
    players: list[Player], client: Client, seconds: float, *, moves: float = math.inf
) -> Sample:
    """Let each player ask again as soon as it is answered, up to `moves` times altogether."""
    sample = Sample()
    end = time.perf_counter() + seconds

    async def play(player: Player) -> None:
        while time.perf_counter() < end and sample.moves < moves:
            answer, busy = await client.ask(await player.next_move())
            player.latency_ms = int(answer.latency_ms)
            sample.count(answer, busy=busy)

    return await _timed(sample, [play(player) for player in players])


async def paced(
    players: list[Player], client: Client, seconds: float, *, period_s: float
) -> Sample:
    """Let each player ask once a period, spread evenly over it."""
    sample = Sample()
    begin = time.perf_counter()

    async def play(number: int, player: Player) -> None:
        due = begin + period_s * number / len(players)
        while due < begin + seconds:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            request = await player.next_move()
            sample.lag_ms.append(max(0.0, time.perf_counter() - due) * 1000)
            answer, busy = await client.ask(request)
            player.latency_ms = int(answer.latency_ms)
            sample.count(answer, busy=busy)
            due = max(due + period_s, time.perf_counter())

    return await _timed(sample, [play(i, player) for i, player in enumerate(players)])


async def _timed(sample: Sample, work: list[Coroutine[Any, Any, None]]) -> Sample:
    begin = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for one in work:
            group.create_task(one)
    sample.seconds = time.perf_counter() - begin
    return sample
