"""Metrics: all names of the design with their labels and buckets, no private names, own port."""

from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from snakekit.runtime.metrics import Metrics
from snakekit.runtime.private import create_private_app

MILLISECONDS = {0.001, 0.002, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5}
CARD = {"name", "net", "encoder", "precision", "step", "weights"}
# Name without prefix and ending: type, labels, edges that must be among the buckets.
NAMES: dict[str, tuple[str, set[str], set[float]]] = {
    "request_seconds": ("histogram", {"endpoint"}, MILLISECONDS),
    "move_seconds": ("histogram", set(), MILLISECONDS),
    "policy_seconds": ("histogram", set(), MILLISECONDS),
    "policy_queue_seconds": ("histogram", set(), MILLISECONDS),
    "policy_batch_size": ("histogram", set(), {1, 2, 4, 8}),
    "equilibria": ("counter", {"stage"}, set()),
    "equilibrium_gap": ("histogram", set(), {0.001, 0.01, 0.1}),
    "oracle_rounds": ("histogram", set(), {1, 2, 4, 8, 16}),
    "oracle_added": ("counter", set(), set()),
    "search_seconds": ("histogram", set(), MILLISECONDS),
    "search_depth": ("histogram", set(), {1, 2, 4, 8, 16}),
    "search_nodes": ("counter", set(), set()),
    "decisions": ("counter", {"reason"}, set()),
    "fallbacks": ("counter", {"stage", "cause"}, set()),
    "deadline_misses": ("counter", set(), set()),
    "engine_timeouts": ("counter", set(), set()),
    "network_overhead_seconds": ("histogram", set(), MILLISECONDS),
    "games_active": ("gauge", set(), set()),
    "games": ("counter", {"result"}, set()),
    "requests_rejected": ("counter", {"cause"}, set()),
    "model_info": ("gauge", CARD, set()),
    "backend_info": ("gauge", {"requested", "actual", "precision"}, set()),
    "ready": ("gauge", set(), set()),
    "loop_lag_seconds": ("histogram", set(), MILLISECONDS),
    "recorded_games": ("counter", set(), set()),
    "records_dropped": ("counter", {"cause"}, set()),
    "records_failed": ("counter", set(), set()),
    "record_bytes": ("gauge", set(), set()),
    "reloads": ("counter", {"result"}, set()),
}
LABELS = set().union(*(labels for _, labels, _ in NAMES.values()), {"le"})
PROCESS = {
    "process_cpu_seconds",
    "process_resident_memory_bytes",
    "process_open_fds",
    "process_start_time_seconds",
    "python_gc_collections",
    "python_info",
}


@pytest.fixture
async def families(client: Any, send: Any, request_json: Any) -> dict[str, Metric]:
    """What a server shows after two moves of one game."""
    for path in ("/start", "/move", "/move", "/end"):
        await send(client, path, request_json)
    server = TestServer(create_private_app(client.engine), host="127.0.0.1")
    async with TestClient(server) as scraper:
        async with scraper.get("/metrics") as response:
            assert response.status == 200
            assert response.headers["Content-Type"].startswith("text/plain")
            text = await response.text()
        for other in ("/", "/watch", "/move"):
            async with scraper.get(other) as response:
                assert response.status == 404
    for private in ("totally-unique-game-id", "Snake a"):
        assert private not in text
    return {family.name: family for family in text_string_to_metric_families(text)}


@pytest.mark.parametrize("name", NAMES)
async def test_type_labels_and_edges(families: dict[str, Metric], name: str) -> None:
    kind, labels, edges = NAMES[name]
    family = families["snakekit_" + name]
    assert family.type == kind
    assert family.documentation.endswith(".")
    assert family.samples
    found = {frozenset(sample.labels) - {"le"} for sample in family.samples}
    assert found == {frozenset(labels)}
    buckets = {float(s.labels["le"]) for s in family.samples if "le" in s.labels}
    assert buckets >= edges
    assert bool(buckets) == (kind == "histogram")


async def test_no_other_label_is_used_and_figures_of_the_process_are_there(
    families: dict[str, Metric],
) -> None:
    for name, family in families.items():
        if name.startswith("snakekit_"):
            assert all(set(sample.labels) <= LABELS for sample in family.samples), name
    assert set(families) >= PROCESS
    moves = families["snakekit_move_seconds"].samples
    assert next(sample.value for sample in moves if sample.name.endswith("_count")) == 2


def test_every_child_is_there_from_the_start() -> None:
    text = Metrics().render().decode()
    for line in (
        'snakekit_decisions_total{reason="reflex"} 0.0',
        'snakekit_fallbacks_total{cause="not_finite",stage="policy"} 0.0',
        'snakekit_requests_rejected_total{cause="invalid"} 0.0',
        'snakekit_games_total{result="won"} 0.0',
        'snakekit_records_dropped_total{cause="queue_full"} 0.0',
        "snakekit_deadline_misses_total 0.0",
    ):
        assert line in text


async def test_metrics_are_not_on_the_game_port(client: Any) -> None:
    for path in ("/metrics", "/watch"):
        async with client.get(path) as response:
            assert response.status == 404
