"""The load generators: what they send, and how they count what a server does."""

import asyncio
import itertools
import json
import math
from collections.abc import AsyncIterator
from typing import Any

import pytest

from snakekit.bench.flood import Flood
from snakekit.bench.load import (
    Client,
    Player,
    Sample,
    Target,
    closed_loop,
    paced,
    scripts,
)
from snakekit.runtime import api

GOOD, BUSY = b'{"move": "up"}', b'{"error": "busy"}'


class Server:
    """Answers each request as told: a status and body, None for nothing, or a closed connection."""

    def __init__(self) -> None:
        self.bodies: list[tuple[str, Any]] = []
        self.connections = 0
        self.how: Any = lambda number: (200, GOOD)
        self.url = ""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = int(head.lower().split("content-length:")[1].split("\r\n")[0])
                body = json.loads(await reader.readexactly(length))
                self.bodies.append((head.split(" ")[1], body))
                answer = self.how(len(self.bodies))
                if answer is None:
                    continue
                if answer == "close":
                    return
                status, text = answer
                writer.write(
                    b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(text), text)
                )
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    listening = await asyncio.start_server(made, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/under"
    yield made
    listening.close()


GAMES = scripts(2, seed=1, snakes=2, timeout_ms=500)


def client(server: Server, timeout_ms: int = 1000) -> Client:
    return Client(Target(server.url), timeout_ms)


async def test_games_come_as_an_engine_sends_them(server: Server) -> None:
    asking = client(server)
    moves = len(GAMES[0].moves) + 2
    sample = await closed_loop(
        [Player(asking, GAMES, first=0, name="a")], asking, math.inf, moves=moves
    )
    asking.close()
    assert len(sample.answers_ms) == moves
    paths = [path for path, _ in server.bodies]
    begun = ["/under/start", *["/under/move"] * len(GAMES[0].moves), "/under/end"]
    assert paths == [*begun, "/under/start", "/under/move", "/under/move"]
    games = [body["game"]["id"] for _, body in server.bodies]
    assert len(set(games)) == 2
    for _, body in server.bodies:
        assert body["you"]["id"].startswith(body["game"]["id"])
        request = api.parse(json.dumps(body).encode())
        assert api.position(request) is not None or body["turn"] > 0
    turns = [body["turn"] for path, body in server.bodies if path == "/under/move"]
    assert turns == [*range(len(GAMES[0].moves)), 0, 1]
    latencies = [body["you"]["latency"] for _, body in server.bodies]
    assert latencies[0] == "0"
    assert all(text.isdigit() for text in latencies)
    assert server.connections == 1


async def test_the_same_seed_gives_the_same_games() -> None:
    assert scripts(2, seed=1, snakes=2, timeout_ms=500) == GAMES
    assert scripts(2, seed=2, snakes=2, timeout_ms=500) != GAMES


def told(number: int) -> Any:
    """The first is `/start`."""
    return [(200, GOOD), (503, BUSY), (200, b'{"move": "north"}'), "close", None][number % 5]


@pytest.mark.parametrize("generator", ["closed", "flood"])
async def test_what_goes_wrong_is_counted_by_kind(server: Server, generator: str) -> None:
    asking = client(server, timeout_ms=100)
    player = Player(asking, GAMES, first=0, name="a")
    request = await player.next_move()
    server.bodies.clear()
    server.how = lambda number: told(number - 1)
    if generator == "closed":
        sample = Sample()
        for _ in range(10):
            answer, busy = await asking.ask(request)
            sample.count(answer, busy=busy)
    else:
        sample = await Flood(asking.target, itertools.repeat(request), 0.1).run(0.2, 50)
    asking.close()
    assert sample.moves == 10
    assert len(sample.answers_ms) == len(sample.refusals_ms) == 2
    assert max(sample.answers_ms) < 100
    found = {words.split(":")[0]: count for words, count in sample.faults.items()}
    assert found == {"illegal word": 2, "http error": 2, "timeout": 2}


async def test_a_flood_keeps_its_rate_and_its_connections(server: Server) -> None:
    asking = client(server)
    request = await Player(asking, GAMES, first=0, name="a").next_move()
    server.connections = 0
    flood = Flood(asking.target, itertools.repeat(request), 1.0)
    await flood.connect(20)
    sample = await flood.run(0.5, 200)
    asking.close()
    assert sample.moves == len(sample.answers_ms) == 100
    assert len(sample.lag_ms) == sample.moves
    assert server.connections == 20


async def test_a_flood_without_a_server() -> None:
    sample = await Flood(Target("http://127.0.0.1:9"), itertools.repeat(b"x"), 0.2).run(0.05, 100)
    assert sample.moves > 0
    assert sum(sample.faults.values()) == sample.moves
    assert all(words.startswith("http error: connect") for words in sample.faults)


async def test_paced_games_are_spread_over_the_period(server: Server) -> None:
    asking = client(server)
    players = [Player(asking, GAMES, first=i, name=f"p{i}") for i in range(4)]
    sample = await paced(players, asking, 0.6, period_s=0.2)
    asking.close()
    assert sample.moves == pytest.approx(12, abs=2)
    assert len(sample.lag_ms) == sample.moves


@pytest.mark.parametrize("url", ["https://x", "ftp://x", "127.0.0.1:80", "http://"])
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(ValueError, match="expected http"):
        Target(url)
