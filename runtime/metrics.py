"""Prometheus metrics of one server, with every child bound once so that a move only observes.

No label ever holds the name or id of a game, snake or user.
"""

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

from snakekit.runtime.backends.base import BackendInfo
from snakekit.runtime.contract import ModelCard
from snakekit.runtime.decide import Reason
from snakekit.runtime.feed import Stage

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.002, 0.003, 0.004, 0.005, 0.0075),
    *(0.01, 0.015, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 1.0, 2.5),
)
ENDPOINTS = ("index", "start", "move", "end", "healthz", "readyz", "other")
STAGES = ("policy", "search", "server")
CAUSES = ("deadline", "error", "not_finite", "not_ready", "busy", "hung", "no_state", "no_time")
REJECTED = (
    *("not_json", "too_deep", "invalid", "too_large", "timeout", "http"),
    *("busy", "closing", "rate", "connections"),
)
EQUILIBRIA = ("policy", "turn", "crowd", "turns", "plans")
RELOADS = ("done", "refused")
DROPPED = ("queue_full", "no_writer")
RESULTS = ("won", "lost", "draw", "unfinished")


class Metrics:
    """All metrics of one server, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._add_requests()
        self._add_moves()
        self._add_policy()
        self._add_equilibria()
        self._add_search()
        self._add_records()

    def _add_requests(self) -> None:
        requests = Histogram(
            "snakekit_request_seconds",
            "Time from a request's headers to its answer.",
            ["endpoint"],
            registry=self.registry,
            buckets=SECONDS,
        )
        self.request_seconds = {name: requests.labels(name) for name in ENDPOINTS}
        self.rejected = self._counters(
            "requests_rejected_total", "Requests refused.", "cause", REJECTED
        )
        self.loop_lag_seconds = self._histogram(
            "loop_lag_seconds", "How much later than asked the event loop wakes up."
        )

    def _add_moves(self) -> None:
        self.move_seconds = self._histogram(
            "move_seconds", "Time from a move's arrival to its answer."
        )
        self.network_overhead_seconds = self._histogram(
            "network_overhead_seconds", "Latency measured by the engine less the own time."
        )
        self.deadline_misses = self._counter(
            "deadline_misses_total", "Answers later than the timeout less the network overhead."
        )
        self.engine_timeouts = self._counter(
            "engine_timeouts_total", "Answers that the engine reported as too late."
        )
        decisions = self._labelled("decisions_total", "Moves by reason.", ("reason",))
        self.decisions = {reason: decisions.labels(reason.value) for reason in Reason}
        fallbacks = self._labelled(
            "fallbacks_total", "A part of a move that was not to be had.", ("stage", "cause")
        )
        self.fallbacks = {
            (stage, cause): fallbacks.labels(stage, cause) for stage in STAGES for cause in CAUSES
        }
        self.games_active = self._gauge("games_active", "Games seen and not ended.")
        self.games = self._counters(
            "games_total", "Ended games by result, per seat.", "result", RESULTS
        )

    def _add_policy(self) -> None:
        self.policy_seconds = self._histogram("policy_seconds", "Time of one inference call.")
        self.policy_queue_seconds = self._histogram(
            "policy_queue_seconds", "Time that a position waits for its inference call."
        )
        self.policy_batch_size = self._histogram(
            "policy_batch_size", "Positions in one inference call.", (1, 2, 4, 8, 16, 32, 64)
        )
        self.ready = self._gauge("ready", "1 when the model is warmed up.")
        self.reloads = self._counters("reloads_total", "Reloads of the model.", "result", RELOADS)
        self.checked_positions = self._counter(
            "check_positions_total", "Positions that two backends were compared on."
        )
        self.check_disagreements = self._counter(
            "check_disagreements_total", "Positions that two backends answered differently."
        )
        self._model = self._info("model", "name", "net", "encoder", "precision", "step", "weights")
        self._backend = self._info("backend", "requested", "actual", "precision")

    def _add_equilibria(self) -> None:
        self.equilibria = self._counters(
            "equilibria_total", "Equilibria by the game that was solved.", "stage", EQUILIBRIA
        )
        self.equilibrium_gap = self._histogram(
            "equilibrium_gap",
            "What best responses would gain in the game that was solved.",
            (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
        )
        self.oracle_rounds = self._histogram(
            "oracle_rounds", "Looks for a better action in one move.", (0, 1, 2, 4, 8, 16, 32)
        )
        self.oracle_added = self._counter("oracle_added_total", "Better actions that were found.")

    def _add_search(self) -> None:
        self.search_seconds = self._histogram("search_seconds", "Time of one search.")
        self.search_depth = self._histogram(
            "search_depth", "Full turns completed.", (1, 2, 3, 4, 6, 8, 10, 12, 16, 24, 32, 64)
        )
        self.search_nodes = self._counter("search_nodes_total", "Positions searched.")

    def _add_records(self) -> None:
        self.recorded_games = self._counter("recorded_games_total", "Games finished on disk.")
        self.records_failed = self._counter(
            "records_failed_total", "Records that the disk did not take."
        )
        self.records_dropped = self._counters(
            "records_dropped_total", "Requests not recorded.", "cause", DROPPED
        )
        self.record_bytes = self._gauge("record_bytes", "Size of all records.")

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...] = SECONDS) -> Histogram:
        return Histogram("snakekit_" + name, text, registry=self.registry, buckets=buckets)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge("snakekit_" + name, text, registry=self.registry)

    def _info(self, what: str, *labels: str) -> Gauge:
        return Gauge(
            f"snakekit_{what}_info", f"The {what}, always 1.", labels, registry=self.registry
        )

    def _counter(self, name: str, text: str) -> Counter:
        return Counter("snakekit_" + name, text, registry=self.registry)

    def _labelled(self, name: str, text: str, labels: tuple[str, ...]) -> Counter:
        return Counter("snakekit_" + name, text, labels, registry=self.registry)

    def _counters(
        self, name: str, text: str, label: str, values: tuple[str, ...]
    ) -> dict[str, Counter]:
        """Return one counter for each value of a label, all there from the start."""
        counter = self._labelled(name, text, (label,))
        return {value: counter.labels(value) for value in values}

    def fallback(self, stage: str, cause: str) -> None:
        """Count one fallback; `stage` and `cause` are of `STAGES` and `CAUSES`."""
        self.fallbacks[stage, cause].inc()

    def solved(self, stage: Stage) -> None:
        """Count one equilibrium, or the bare policy in its place."""
        self.equilibria[stage.name].inc()
        if stage.plies:
            self.equilibrium_gap.observe(stage.gap)
        if stage.name in ("crowd", "plans"):
            self.oracle_rounds.observe(stage.rounds)
            self.oracle_added.inc(stage.added)

    def compared(self, positions: int, disagreements: int) -> None:
        """Count what the backend `check` compared; callable from any thread."""
        self.checked_positions.inc(positions)
        self.check_disagreements.inc(disagreements)

    def describe_model(self, card: ModelCard, info: BackendInfo) -> None:
        """Publish which model and backend run now."""
        self._model.clear()
        self._model.labels(
            card.name,
            card.net,
            str(card.encoder),
            card.precision,
            str(card.step),
            card.weights_sha256[:12],
        ).set(1)
        self._backend.clear()
        self._backend.labels(info.requested, info.actual, info.precision).set(1)

    def render(self) -> bytes:
        """Return the text exposition."""
        return generate_latest(self.registry)
