"""From a request to a move: one `Engine` per server, without any HTTP in it.

All clock times are `time.perf_counter()` seconds.
"""

import asyncio
import logging
import math
import time
from functools import partial
from typing import Any, NamedTuple

from snakekit import core
from snakekit.runtime.api import Position, Request, position
from snakekit.runtime.backends import BackendError, BackendInfo
from snakekit.runtime.config import ServerConfig
from snakekit.runtime.contract import ModelCard
from snakekit.runtime.cores import cores
from snakekit.runtime.deadline import TimeBudget
from snakekit.runtime.decide import SINGLE, Decision, Reason, decide, softmax
from snakekit.runtime.feed import BatcherError, BatchReport, Evaluation
from snakekit.runtime.games import GameStore, Seat
from snakekit.runtime.loaded import LoadedModel
from snakekit.runtime.metrics import Metrics
from snakekit.runtime.searching import SearchError, SearchJob, SearchPool

log = logging.getLogger("snakekit.move")

ANSWER_S = 0.001
"""Kept back from a deadline for deciding and writing the answer."""
ANSWER_EACH_S = 0.0005
"""Kept back for each other move that runs, since all might end at the same time."""
ANSWER_SHARE = 0.25
"""The latter never takes more than this share of a budget."""
LEAST_S = 0.003
"""With less time than this left neither policy nor search is asked."""


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
        self.policy_asked = config.mode != "search"
        self.search_asked = config.mode != "policy"
        self.reloading = False
        self._closing = False
        self._opened = False
        self._model: LoadedModel | None = None
        self._pool: SearchPool | None = None
        self._moving = 0
        self.moved_at = -math.inf
        """When the newest move came."""
        self.metrics.ready.set_function(lambda: float(self.ready))

    @property
    def ready(self) -> bool:
        """Whether everything is loaded and works, and new games are welcome."""
        hung = self._model is not None and self._model.hung
        return self._opened and not self._closing and not hung

    @property
    def closing(self) -> bool:
        """Whether new games are to be refused; moves of running games are still answered."""
        return self._closing

    @property
    def card(self) -> ModelCard | None:
        """The card of the model in use."""
        return self._model.card if self._model is not None else None

    @property
    def backend_info(self) -> BackendInfo | None:
        """What runs the model in use."""
        return self._model.info if self._model is not None else None

    async def open(self) -> None:
        """Start the search threads, load the model, warm it up, and become ready.

        Moves are answered already while this runs, without what is missing yet.

        Raises:
            BackendError: the model or backend cannot be used, or no memory is left for the search.
        """
        config = self.config
        if self.search_asked:
            self._pool = SearchPool(
                config.search_workers or max(1, cores() // config.search_threads),
                table_mb=config.table_mb,
                limit=config.queue_limit,
                max_depth=config.max_depth,
                proof=config.proof,
                threads=config.search_threads,
                sample=config.mixed == "sample",
            )
        if self.policy_asked:
            self._use(await LoadedModel.load(config, self._on_batch, self.metrics.compared))
        if self._pool is not None:
            try:
                await self._pool.ready()
            except SearchError as error:
                raise BackendError(str(error)) from None
        self._opened = True

    async def reload(self) -> float:
        """Load the model again, put it in the old one's place, and return the seconds it took.

        The old one answers until the new one is warm, and then what it was already asked.

        Raises:
            BackendError: the new one cannot be used, and the old one goes on.
        """
        if not self.policy_asked:
            raise BackendError("reload: mode search has no model")
        if self.reloading or not self._opened:
            raise BackendError("reload: the server is loading a model already")
        self.reloading = True
        started = time.perf_counter()
        try:
            loaded = await LoadedModel.load(self.config, self._on_batch, self.metrics.compared)
        except BackendError:
            self.metrics.reloads["refused"].inc()
            raise
        finally:
            self.reloading = False
        old = self._model
        self._use(loaded)
        self.metrics.reloads["done"].inc()
        if old is not None:
            await old.close(drain=True)
        return time.perf_counter() - started

    def _use(self, model: LoadedModel) -> None:
        self._model = model
        self.metrics.describe_model(model.card, model.info)

    async def close(self) -> None:
        """Stop the threads. Safe to call twice."""
        self._opened = False
        pool, self._pool = self._pool, None
        model, self._model = self._model, None
        if pool is not None:
            await pool.close()
        if model is not None:
            await model.close()

    def refuse_new_games(self) -> None:
        """Begin to stop: not ready any more, no new games."""
        self._closing = True

    def is_new(self, request: Request) -> bool:
        """Return whether a `/move` is the first of a game."""
        return request.turn == 0 and not self.games.knows(request.game.id, request.you.id)

    def playing(self, now: float, quiet_s: float) -> bool:
        """Return whether a game is remembered and a move came within the last `quiet_s`."""
        return len(self.games) > 0 and now - self.moved_at < quiet_s

    def described(self) -> dict[str, str | int]:
        """Return facts about the model and backend for the log."""
        mode: dict[str, str | int] = {"mode": self.config.mode}
        return mode | (self._model.described() if self._model is not None else {"model": "none"})

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
        self.moved_at = arrival
        seat = self.games.seat(request.game.id, request.you.id, arrival)
        budget_ms = self._learn(request, seat)
        budget_ms -= min(self._moving * ANSWER_EACH_S * 1000, ANSWER_SHARE * budget_ms)
        self._moving += 1
        try:
            choice = await self._choose(place, request.game.id, arrival + budget_ms / 1000)
        except Exception:
            log.exception("move failed, playing the reflex move")
            self.metrics.fallback("server", "error")
            choice = Choice(Decision(_reflex(place), Reason.REFLEX, None))
        finally:
            self._moving -= 1
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

    async def _choose(self, place: Position | None, game: str, deadline: float) -> Choice:
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
        policy = self._ask_policy(place, deadline) if self.policy_asked else None
        job = self._ask_search(place, game, deadline) if self.search_asked else None
        try:
            waiting: list[asyncio.Future[Any]] = [policy] if policy is not None else []
            if job is not None:
                waiting.append(job.future)
                if policy is not None:
                    policy.add_done_callback(partial(_tell, job))
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

    def _ask_policy(self, place: Position, deadline: float) -> "asyncio.Future[Evaluation] | None":
        model = self._model
        if model is None or model.hung:
            self.metrics.fallback("policy", "not_ready" if model is None else "hung")
            return None
        try:
            return model.submit(place, deadline - ANSWER_S)
        except BatcherError:
            self.metrics.fallback("policy", "busy")
            return None

    def _ask_search(self, place: Position, game: str, deadline: float) -> SearchJob | None:
        if self._pool is None:
            self.metrics.fallback("search", "not_ready")
            return None
        try:
            return self._pool.start(
                place.state,
                place.seat,
                game=game,
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
        if report.stage is not None:
            self.metrics.solved(report.stage)
        for seconds in report.queued_seconds:
            self.metrics.policy_queue_seconds.observe(seconds)


def _tell(job: SearchJob, policy: "asyncio.Future[Evaluation]") -> None:
    """Give a search the policy's answer, which usually comes long before the search ends."""
    if policy.cancelled() or policy.exception() is not None or job.future.done():
        return
    logits = policy.result().logits
    if all(map(math.isfinite, logits)):
        job.prefer(softmax(logits))


def _reflex(place: Position | None) -> int:
    """Return the reflex move, or up where even that cannot be had."""
    if place is None:
        return 0
    try:
        return core.reflex_move(place.state, place.seat)
    except Exception:
        return 0
