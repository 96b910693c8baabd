"""Paths, methods and readiness of the server."""

from typing import Any

import msgspec
import pytest

from snakekit.runtime.config import ServerConfig
from snakekit.runtime.engine import Engine

Json = dict[str, Any]
FAST = ServerConfig(backend="random", mode="hybrid", budget_ms=10, table_mb=1)


async def test_endpoints(make_client: Any, send: Any, request_json: Json) -> None:
    config = msgspec.structs.replace(
        FAST, author="me", color="#123456", head="pixel", tail="curled", version="7"
    )
    client = await make_client(config)
    async with client.get("/") as response:
        facts = await response.json()
    assert facts == {
        "version": "7",
        "apiversion": "1",
        "author": "me",
        "color": "#123456",
        "head": "pixel",
        "tail": "curled",
    }
    for path, status in (("/healthz", 200), ("/readyz", 200), ("/nowhere", 404), ("/move", 405)):
        async with client.get(path) as response:
            assert response.status == status
            assert response.content_type == "application/json"
            assert ("POST" in response.headers.get("Allow", "")) == (path == "/move")
    async with client.head("/") as response:
        assert response.status == 200
    async with client.options("/move") as response:
        assert response.status == 204
        assert response.headers["Allow"] == "POST, OPTIONS"


async def test_not_ready_until_warmed_up_yet_answers(
    make_client: Any, send: Any, request_json: Json
) -> None:
    client = await make_client(opened=False)
    async with client.get("/readyz") as response:
        assert response.status == 503
    async with client.get("/healthz") as response:
        assert response.status == 200
    assert (await send(client, "/move", request_json))[0] == 200
    engine: Engine = client.engine
    await engine.open()
    async with client.get("/readyz") as response:
        assert response.status == 200
    await engine.close()
    async with client.get("/readyz") as response:
        assert response.status == 503


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("HEAD", "/", 200, None),
        ("HEAD", "/readyz", 200, None),
        ("HEAD", "/move", 405, "OPTIONS,POST"),
        ("GET", "/move", 405, "OPTIONS,POST"),
        ("PUT", "/", 405, "GET,HEAD,OPTIONS"),
        ("OPTIONS", "/", 204, "GET, HEAD, OPTIONS"),
        ("OPTIONS", "/end", 204, "POST, OPTIONS"),
        ("OPTIONS", "/nowhere", 404, None),
    ],
)
async def test_methods(client: Any, method: str, path: str, status: int, allow: str | None) -> None:
    async with client.request(method, path) as response:
        assert response.status == status
        assert response.headers.get("Allow") == allow
        if method == "HEAD":
            assert await response.read() == b""


def test_connections_stay_longer_than_a_balancer_keeps_them() -> None:
    """600 s at the most patient of the usual ones; one that closes first costs a move."""
    assert ServerConfig().keepalive_s > 600
