"""Requests as the official engine writes them, and a server to send them to."""

import copy
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
import pytest
from aiohttp.test_utils import TestClient, TestServer
from processes import start
from raw_http import connect
from stopwatch import OwnTime, own_time

from snakekit.runtime.config import ServerConfig
from snakekit.runtime.engine import Engine
from snakekit.runtime.gate import Gatekeeper
from snakekit.runtime.process import make_keeper, make_runner
from snakekit.runtime.searching import SearchPool

__all__ = ["connect", "start"]

Json = dict[str, Any]
WORDS = {"up", "down", "left", "right"}


def snake(identity: str, *points: tuple[int, int], health: int = 90, latency: Any = "43") -> Json:
    body = [{"x": x, "y": y} for x, y in points]
    return {
        "id": identity,
        "name": "Snake " + identity,
        "latency": latency,
        "health": health,
        "body": body,
        "head": body[0] if body else None,
        "length": len(body),
        "shout": "",
        "squad": "",
        "customizations": {"color": "#ff0000", "head": "default", "tail": "default"},
    }


SETTINGS = {
    "foodSpawnChance": 15,
    "minimumFood": 1,
    "hazardDamagePerTurn": 14,
    "hazardMap": "",
    "hazardMapAuthor": "",
    "royale": {"shrinkEveryNTurns": 0},
    "squad": {"allowBodyCollisions": False, "sharedElimination": False},
}


def request_of(*snakes: Json, you: Json | None = None, width: int = 11, height: int = 11) -> Json:
    return {
        "game": {
            "id": "totally-unique-game-id",
            "ruleset": {"name": "standard", "version": "v1.2.3", "settings": SETTINGS},
            "map": "standard",
            "timeout": 500,
            "source": "custom",
        },
        "turn": 14,
        "board": {
            "height": height,
            "width": width,
            "food": [{"x": 5, "y": 5}, {"x": 9, "y": 0}],
            "hazards": [{"x": 3, "y": 2}, {"x": 3, "y": 2}],
            "snakes": list(snakes),
        },
        "you": you if you is not None else snakes[0],
    }


@pytest.fixture
def request_json() -> Json:
    """A duel in which `you` (a) can go up, left or right."""
    one = snake("a", (5, 4), (5, 3), (6, 3), (6, 2))
    two = snake("b", (1, 8), (1, 9), (2, 9))
    return copy.deepcopy(request_of(one, two))


@pytest.fixture
def make_snake() -> Callable[..., Json]:
    return snake


@pytest.fixture
def make_request() -> Callable[..., Json]:
    return request_of


class GatedServer(TestServer):
    """A test server whose connections come through gates, as they do in production."""

    def __init__(self, engine: Engine) -> None:
        self.keeper = make_keeper(engine.config, engine.metrics)
        self._gated = make_runner(engine, self.keeper)
        super().__init__(self._gated.app, host="127.0.0.1")

    async def _make_runner(self, **_: Any) -> Any:
        return self._gated


FAST = ServerConfig(backend="random", mode="hybrid", budget_ms=10, table_mb=1, log_level="error")
Client = TestClient[Any, Any]
MakeClient = Callable[..., Awaitable[Client]]


@pytest.fixture
async def make_client() -> AsyncIterator[MakeClient]:
    """Give a function that starts a server (of `config`, ready unless told) and its client."""
    clients: list[Client] = []
    engines: list[Engine] = []

    async def make(config: ServerConfig = FAST, *, opened: bool = True, **changes: Any) -> Client:
        engine = Engine(msgspec.structs.replace(config, **changes))
        engines.append(engine)
        if opened:
            await engine.open()
        server = GatedServer(engine)
        client = TestClient(server)
        client.keeper = server.keeper  # type: ignore[attr-defined]
        clients.append(client)
        client.engine = engine  # type: ignore[attr-defined]
        await client.start_server()
        return client

    yield make
    for client in clients:
        await client.close()
    for engine in engines:
        await engine.close()


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make servers decide on a busy machine as on a quiet one.

    Their deadlines do not run while the event loop waits for a core, and searches do not give way.
    """
    monkeypatch.setattr("snakekit.runtime.engine.time", OwnTime)
    monkeypatch.setattr("snakekit.runtime.searching.yield_to_others", lambda: None)
    for owner in (Gatekeeper, SearchPool):
        monkeypatch.setitem(owner.__init__.__kwdefaults__, "clock", own_time)


@pytest.fixture
async def client(make_client: MakeClient) -> Client:
    return await make_client()


async def post(client: Client, path: str, body: Json | bytes) -> tuple[int, Json]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with client.post(path, data=io.BytesIO(data)) as response:
        return response.status, await response.json()


@pytest.fixture
def send() -> Callable[..., Awaitable[tuple[int, Json]]]:
    return post
