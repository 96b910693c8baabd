"""A secret path, a rate limit, and what a stranger learns: nothing."""

import json
from typing import Any

import pytest

from snakekit.__main__ import main
from snakekit.runtime.config import ServerConfig
from snakekit.runtime.rate import BURST_S, CAPACITY, RateLimit

SECRET = "s3cret-path_0123456789"


def test_private_parts_are_on_loopback_unless_asked() -> None:
    assert ServerConfig().metrics_host == "127.0.0.1"


async def test_the_game_is_only_under_the_secret_path(
    make_client: Any, send: Any, request_json: Any
) -> None:
    client = await make_client(secret_path=SECRET)
    for path in ("/start", "/move", "/end"):
        assert (await send(client, f"/{SECRET}{path}", request_json))[0] == 200
        assert await send(client, path, request_json) == (404, {"error": "path: unknown"})
        assert (await send(client, f"/{SECRET}x{path}", request_json))[0] == 404
        assert (await send(client, f"/{SECRET[:-1]}{path}", request_json))[0] == 404
    for path, status in (
        (f"/{SECRET}", 200),
        (f"/{SECRET}/", 200),
        ("/", 404),
        ("/healthz", 200),
        ("/readyz", 200),
        (f"/{SECRET}/healthz", 404),
        ("/metrics", 404),
        (f"/{SECRET}/../{SECRET}/move", 405),
    ):
        async with client.get(path) as response:
            assert response.status == status, path
            assert SECRET not in await response.text()
    text = client.engine.metrics.render().decode()
    assert SECRET not in text
    assert 'snakekit_request_seconds_count{endpoint="move"} 2.0' in text
    assert 'snakekit_request_seconds_count{endpoint="index"} 2.0' in text


async def test_the_secret_is_not_in_the_log(
    make_client: Any, send: Any, request_json: Any, caplog: Any, monkeypatch: Any
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("broken on purpose")

    client = await make_client(secret_path=SECRET)
    monkeypatch.setattr("snakekit.runtime.engine.position", broken)
    assert (await send(client, f"/{SECRET}/move", request_json))[0] == 200
    assert "broken on purpose" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize("secret", ["short", "with/slash-here", "with space 123", "ünïcödé-12345"])
def test_secrets_that_are_none(secret: str, capfd: Any) -> None:
    assert main(["serve", "--secret-path", secret]) == 2
    error = capfd.readouterr().err
    assert "secret_path (from --secret-path)" in error
    assert len(error.splitlines()) == 1


async def test_the_rate_limit_is_off_by_default(client: Any, send: Any, request_json: Any) -> None:
    assert ServerConfig().rate_limit == 0
    for _ in range(50):
        assert (await send(client, "/move", request_json))[0] == 200


async def test_too_many_requests_of_one_address(
    make_client: Any, send: Any, request_json: Any
) -> None:
    client = await make_client(rate_limit=2.0, mode="policy")
    answers = [await send(client, "/move", request_json) for _ in range(8)]
    statuses = [status for status, _ in answers]
    assert statuses[:4] == [200] * 4
    assert statuses[-1] == 429
    assert answers[-1][1] == {"error": "server: too many requests, expected at most 2 a second"}
    async with client.get("/healthz") as response:
        assert response.status == 200
    value = client.engine.metrics.registry.get_sample_value
    refused = value("snakekit_requests_rejected_total", {"cause": "rate"})
    assert refused == statuses.count(429)


async def test_behind_a_proxy_its_word_counts(make_client: Any, request_json: Any) -> None:
    client = await make_client(rate_limit=1.0, behind_proxy=True, mode="policy")
    body = json.dumps(request_json).encode()

    async def ask(forwarded: str) -> int:
        headers = {"X-Forwarded-For": forwarded}
        async with client.post("/move", data=body, headers=headers) as response:
            return int(response.status)

    # What the client claims stands before what the proxy saw.
    first = [await ask(f"10.0.0.{i}, 192.0.2.1") for i in range(6)]
    assert 429 in first
    assert await ask("10.0.0.1, 192.0.2.2") == 200


def test_a_silent_address_may_send_a_burst() -> None:
    now = [0.0]
    rate = RateLimit(10, clock=lambda: now[0])
    assert [rate.allows("a") for _ in range(25)].count(True) == 10 * BURST_S
    assert rate.allows("b")
    now[0] += 0.1
    assert rate.allows("a")
    assert not rate.allows("a")
    now[0] += 1000
    assert [rate.allows("a") for _ in range(25)].count(True) == 10 * BURST_S


def test_slow_limits_let_single_requests_through() -> None:
    now = [0.0]
    rate = RateLimit(0.1, clock=lambda: now[0])
    assert [rate.allows("a") for _ in range(3)] == [True, False, False]
    now[0] += 10.001
    assert rate.allows("a")


def test_ipv6_senders_have_a_network_each() -> None:
    now = [0.0]
    rate = RateLimit(1, clock=lambda: now[0])
    for host in range(10):
        rate.allows(f"2001:db8:1:2::{host:x}")
    assert not rate.allows("2001:db8:1:2::ffff")
    assert rate.allows("2001:db8:1:3::1")
    assert rate.allows("fe80::1%eth0")
    assert rate.allows("not:an:address")


def test_the_memory_of_addresses_is_bounded() -> None:
    rate = RateLimit(1)
    for number in range(CAPACITY + 500):
        rate.allows(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert len(rate) == CAPACITY
