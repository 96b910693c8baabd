"""Metrics: all names of the design, no private names in labels, own port."""

from typing import Any

from aiohttp.test_utils import TestClient, TestServer
from prometheus_client.parser import text_string_to_metric_families

from snakekit.runtime.server import create_metrics_app

NAMES = {
    "backend_info",
    "deadline_misses",
    "decisions",
    "engine_timeouts",
    "fallbacks",
    "games",
    "games_active",
    "loop_lag_seconds",
    "model_info",
    "move_seconds",
    "network_overhead_seconds",
    "policy_batch_size",
    "policy_queue_seconds",
    "policy_seconds",
    "ready",
    "request_seconds",
    "requests_rejected",
    "search_depth",
    "search_nodes",
    "search_seconds",
}
LABELS = {"endpoint", "reason", "stage", "cause", "result", "le"}
LABELS |= {"name", "net", "encoder", "precision", "step", "weights", "requested", "actual"}
EDGES = {0.001, 0.002, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5}


async def test_names_labels_and_edges(client: Any, send: Any, request_json: Any) -> None:
    for path in ("/start", "/move", "/move", "/end"):
        await send(client, path, request_json)
    server = TestServer(create_metrics_app(client.engine.metrics), host="127.0.0.1")
    async with TestClient(server) as scraper:
        async with scraper.get("/metrics") as response:
            assert response.status == 200
            assert response.headers["Content-Type"].startswith("text/plain")
            text = await response.text()
        async with scraper.get("/") as response:
            assert response.status == 404
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert {"snakekit_" + name for name in NAMES} <= set(families)
    assert "process_cpu_seconds" in families
    for name, family in families.items():
        if name.startswith("snakekit_"):
            assert all(set(sample.labels) <= LABELS for sample in family.samples), name
    for private in ("totally-unique-game-id", "Snake a"):
        assert private not in text
    moves = families["snakekit_move_seconds"].samples
    edges = {float(sample.labels["le"]) for sample in moves if "le" in sample.labels}
    assert edges >= EDGES
    assert next(sample.value for sample in moves if sample.name.endswith("_count")) == 2


async def test_metrics_are_not_on_the_game_port(client: Any) -> None:
    async with client.get("/metrics") as response:
        assert response.status == 404
