"""From a request to a move: one `Engine` per server, without any HTTP in it.

All clock times are `time.perf_counter()` seconds.
"""

import asyncio
import logging
import math
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from snakekit import core
from snakekit.runtime.api import Position, Request, position
from snakekit.runtime.backends import Backend, BackendInfo, load_backend
from snakekit.runtime.batcher import Batcher, BatcherError, BatchReport, Evaluation
from snakekit.runtime.config import ServerConfig
from snakekit.runtime.contract import ModelCard
from snakekit.runtime.deadline import TimeBudget
from snakekit.runtime.decide import SINGLE, Decision, Reason, decide
from snakekit.runtime.games import GameStore, Seat
from snakekit.runtime.metrics import Metrics
from snakekit.runtime.searching import SearchError, SearchJob, SearchPool

log = logging.getLogger("snakekit.move")

ANSWER_S = 0.001
"""Kept back from a deadline for deciding and writing the answer."""
LEAST_S = 0.003
"""With less time than this left neither policy nor search is asked."""
WARM_UP_RUNS = 3


class Choice(NamedTuple):
    """A decision and what it was made from; None for what was not asked or came too late."""

    decision: Decision
    evaluation: Evaluation | None = None
    search: core.SearchResult | None = None


class Answer(NamedTuple):
    """A move 0..3, why, how long it took here and might have taken, and what it was made from."""

    move: int
    reason: Reason
    seconds: float
    budget_ms: float
    choice: Choice


class Engine:
    """Holds the model, the search threads and the memory of games."""

    def __init__(self, config: ServerConfig, metrics: Metrics | None = None) -> None:
        self.config = config
        self.metrics = metrics if metrics is not None else Metrics()
        self.games = GameStore(
            lambda: TimeBudget(margin_ms=config.margin_ms, first_guess_ms=config.overhead_ms),
            capacity=config.games_limit,
            ttl_s=config.game_ttl_s,
        )
        self.metrics.games_active.set_function(lambda: self.games.games)
        self.card: ModelCard | None = None
        self.backend_info: BackendInfo | None = None
        self.ready = False
        self.policy_asked = config.mode != "search"
        self.search_asked = config.mode != "policy"
        self._backend: Backend | None = None
        self._batcher: Batcher | None = None
        self._pool: SearchPool | None = None

    async def open(self) -> None:
        """Start the search threads, load the model, warm it up, and become ready.

        Moves are answered already while this runs, without what is missing yet.

        Raises:
            BackendError: the model or backend cannot be used.
        """
        config = self.config
        if self.search_asked:
            self._pool = SearchPool(
                config.search_workers,
                table_mb=config.table_mb,
                limit=config.queue_limit,
                max_depth=config.max_depth,
                proof=config.proof,
            )
        if self.policy_asked:
            backend, card = await asyncio.to_thread(self._load)
            self._backend, self.card = backend, card
            self._batcher = Batcher(
                backend.infer,
                sizes=config.batch_sizes,
                pad=backend.pads,
                wait_s=config.batch_wait_ms / 1000,
                limit=config.queue_limit,
                on_batch=self._on_batch,
            )
            self.backend_info = backend.describe()
            self.metrics.describe_model(card, self.backend_info)
        self.ready = True
        self.metrics.ready.set(1)

    def _load(self) -> tuple[Backend, ModelCard]:
        config = self.config
        path = Path(config.model) if config.model else None
        backend, card = load_backend(config.backend, path, threads=config.threads)
        for width, height in {(11, 11), *card.boards[:4]}:
            state = core.State.new_game(width, height, ["a", "b"], 0)
            row = state.encode(card.encoder, [0])
            for size in config.batch_sizes:
                for _ in range(WARM_UP_RUNS):
                    backend.infer(np.repeat(row, size, axis=0))
        return backend, card

    async def close(self) -> None:
        """Stop the threads. Safe to call twice."""
        self.ready = False
        self.metrics.ready.set(0)
        for part in (self._pool, self._batcher):
            if part is not None:
                await part.close()
        if self._backend is not None:
            self._backend.close()
        self._pool = self._batcher = self._backend = None

    def start(self, request: Request) -> None:
        """Note the start of a game; not needed, since a move notes it as well."""
        self.games.seat(request.game.id, request.you.id, time.perf_counter())

    def end(self, request: Request) -> None:
        """Count the result of a game and forget the seat."""
        if self.games.end(request.game.id, request.you.id):
            self.metrics.games[request.result].inc()

    async def move(self, request: Request, arrival: float) -> Answer:
        """Choose a move in time, whatever else fails.

        Args:
            request: a decoded `/move`.
            arrival: when it came in.

        Raises:
            RequestError: the board is impossible.
        """
        place = position(request)
        seat = self.games.seat(request.game.id, request.you.id, arrival)
        budget_ms = self._learn(request, seat)
        try:
            choice = await self._choose(place, arrival + budget_ms / 1000)
        except Exception:
            log.exception("move failed, playing the reflex move")
            self.metrics.fallback("server", "error")
            choice = Choice(Decision(_reflex(place), Reason.REFLEX, None))
        decision = choice.decision
        seconds = time.perf_counter() - arrival
        seat.budget.answered(request.turn, seconds * 1000)
        self.metrics.move_seconds.observe(seconds)
        self.metrics.decisions[decision.reason].inc()
        allowed = request.timeout_ms - seat.budget.overhead(request.timeout_ms)
        if seconds * 1000 > allowed:
            self.metrics.deadline_misses.inc()
        return Answer(decision.move, decision.reason, seconds, budget_ms, choice)

    def _learn(self, request: Request, seat: Seat) -> float:
        """Take in the reported latency and return this move's budget in ms."""
        timeout = request.timeout_ms
        before = seat.budget.samples
        if seat.budget.observe(request.turn, request.you.latency, timeout):
            self.metrics.engine_timeouts.inc()
        if seat.budget.samples != before and seat.budget.last_overhead is not None:
            self.metrics.network_overhead_seconds.observe(seat.budget.last_overhead / 1000)
        return seat.budget.budget(timeout)

    async def _choose(self, place: Position | None, deadline: float) -> Choice:
        if place is None:
            self.metrics.fallback("server", "no_state")
            return Choice(Decision(0, Reason.REFLEX, None))
        state, seat = place
        if not state.alive(seat):
            self.metrics.fallback("server", "no_state")
            return Choice(Decision(_reflex(place), Reason.REFLEX, None))
        legal, safe = state.legal_mask(seat), state.safe_mask(seat)
        reflex = core.reflex_move(state, seat)
        if safe in SINGLE:
            return Choice(decide(legal=legal, safe=safe, reflex=reflex))
        if deadline - time.perf_counter() < LEAST_S:
            self.metrics.fallback("server", "no_time")
            return Choice(Decision(reflex, Reason.REFLEX, None))
        policy = self._ask_policy(place) if self.policy_asked else None
        job = self._ask_search(place, deadline) if self.search_asked else None
        try:
            waiting: list[asyncio.Future[Any]] = [policy] if policy is not None else []
            if job is not None:
                waiting.append(job.future)
            if waiting:
                left = deadline - ANSWER_S - time.perf_counter()
                await asyncio.wait(waiting, timeout=max(left, 0.0))
            evaluation = self._policy_result(policy)
            result = self._search_result(job)
        finally:
            if policy is not None and not policy.done():
                policy.cancel()
            if job is not None and not job.future.done():
                job.cancel()
        decision = decide(
            legal=legal,
            safe=safe,
            reflex=reflex,
            logits=evaluation.logits if evaluation is not None else None,
            search=result,
            policy_asked=self.policy_asked,
            search_asked=self.search_asked,
        )
        return Choice(decision, evaluation, result)

    def _ask_policy(self, place: Position) -> "asyncio.Future[Evaluation] | None":
        if self._batcher is None or self.card is None:
            self.metrics.fallback("policy", "not_ready")
            return None
        try:
            return self._batcher.submit(place.state.encode(self.card.encoder, [place.seat])[0])
        except BatcherError:
            self.metrics.fallback("policy", "busy")
            return None

    def _ask_search(self, place: Position, deadline: float) -> SearchJob | None:
        if self._pool is None:
            self.metrics.fallback("search", "not_ready")
            return None
        try:
            return self._pool.start(
                place.state,
                place.seat,
                deadline=deadline,
                budget_s=self.config.budget_ms / 1000,
            )
        except SearchError:
            self.metrics.fallback("search", "busy")
            return None

    def _policy_result(self, future: "asyncio.Future[Evaluation] | None") -> Evaluation | None:
        if future is None:
            return None
        if not future.done():
            self.metrics.fallback("policy", "deadline")
            return None
        error = None if future.cancelled() else future.exception()
        if future.cancelled() or error is not None:
            log.warning("inference failed: %s", error)
            self.metrics.fallback("policy", "error")
            return None
        evaluation = future.result()
        if not all(math.isfinite(x) for x in evaluation.logits):
            self.metrics.fallback("policy", "not_finite")
            return None
        return evaluation

    def _search_result(self, job: SearchJob | None) -> core.SearchResult | None:
        if job is None:
            return None
        future = job.future
        if not future.done():
            self.metrics.fallback("search", "deadline")
            return None
        error = None if future.cancelled() else future.exception()
        if future.cancelled() or error is not None:
            log.warning("search failed: %s", error)
            self.metrics.fallback("search", "error")
            return None
        result = future.result()
        if result is None:
            self.metrics.fallback("search", "no_time")
            return None
        self.metrics.search_seconds.observe(result.seconds)
        self.metrics.search_depth.observe(result.depth)
        self.metrics.search_nodes.inc(result.nodes)
        return result

    def _on_batch(self, report: BatchReport) -> None:
        self.metrics.policy_seconds.observe(report.seconds)
        self.metrics.policy_batch_size.observe(report.size)
        for seconds in report.queued_seconds:
            self.metrics.policy_queue_seconds.observe(seconds)


def _reflex(place: Position | None) -> int:
    """Return the reflex move, or up where even that cannot be had."""
    if place is None:
        return 0
    try:
        return core.reflex_move(place.state, place.seat)
    except Exception:
        return 0
