"""Moves by equilibrium: the game of one turn, or of two, on the outcomes a model expects.

All seats' candidate moves are tried jointly, the model judges every successor in one batch, and
regret matching finds what each seat would play if all knew it. With time left each successor is
itself replaced by the equilibrium of its own turn.
"""

import asyncio
import math
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snakekit import core
from snakekit.runtime.backends import Backend
from snakekit.runtime.batcher import BatcherError, BatchReport, Evaluation
from snakekit.runtime.contract import ModelCard

CHUNK = 64
"""Boards in one inference: more leave the cache of a CPU and are no faster each."""
SLACK = 1.3
"""A second turn is begun if so many times its expected duration is left."""
CLOSE_S = 2.0
_TINY = 1e-9


class Solution(NamedTuple):
    """An equilibrium; lists by slot, the living seats in order."""

    policy: list[list[float]]
    """Four probabilities each."""
    utility: list[float]
    """Chance to win plus an equal part of a draw; they sum to one."""
    draw: float
    """Chance of a draw."""
    gap: float
    """NashConv of the game that was solved."""
    plies: int
    """Turns looked ahead, 1 or 2."""
    leaves: int
    """Boards that the model judged."""


class Equilibrium:
    """Solves boards with one model for all seats. Not for several threads at once."""

    def __init__(
        self, backend: Backend, card: ModelCard, *, iterations: int = 256, plies: int = 1
    ) -> None:
        """Use a model that answers for all seats.

        Args:
            backend: runs it.
            card: the model's.
            iterations: of regret matching.
            plies: most turns to look ahead, 1 or 2.

        Raises:
            ValueError: the model answers for one seat.
        """
        if not card.slots:
            raise ValueError(f"model {card.name}: answers for one seat, not for all")
        self._backend, self._slots = backend, card.slots
        self._iterations, self._plies = iterations, plies
        self._row_s = 0.0

    def bare(self, state: core.State) -> Solution:
        """Return the model's own policy and outcome for a board, nothing looked ahead."""
        policy, outcome = self._backend.infer(core.encode_all([state], slots=self._slots))
        living = len(state.living())
        chances = _softmax(outcome[0, [*range(living), self._slots]])
        utility = chances[:-1] + chances[-1] / living
        moves = [_softmax(row).tolist() for row in policy[0, :living]]
        return Solution(moves, utility.tolist(), float(chances[-1]), 0.0, 0, 1)

    def solve(self, state: core.State, deadline: float = math.inf) -> Solution:
        """Return the equilibrium of a board's next turn.

        Args:
            state: at least two living snakes, at most as many as the model has slots.
            deadline: `time.perf_counter()` by which a second turn has to be done.

        Raises:
            StateError: fewer or more snakes.
        """
        stage = core.StageGames([state], slots=self._slots)
        outcomes = self._outcomes(stage.encode())
        found = stage.solve(outcomes, iterations=self._iterations)
        plies, leaves = 1, stage.leaves
        if self._plies > 1 and stage.leaves:
            deeper = stage.deepen()
            if time.perf_counter() + SLACK * self._row_s * deeper.leaves < deadline:
                inner = deeper.solve(self._outcomes(deeper.encode()), iterations=self._iterations)
                found = stage.solve(inner[1], logits=False, iterations=self._iterations)
                plies, leaves = 2, stage.leaves + deeper.leaves
        policy, outcome, utility, gap = (part[0] for part in found)
        living = len(state.living())
        return Solution(
            policy[:living].tolist(),
            utility[:living].tolist(),
            float(outcome[-1]),
            float(gap),
            plies,
            leaves,
        )

    def _outcomes(self, obs: NDArray[np.uint8]) -> NDArray[np.float32]:
        if not len(obs):
            return np.zeros((0, self._slots + 1), np.float32)
        begun = time.perf_counter()
        parts = [self._backend.infer(obs[i : i + CHUNK])[1] for i in range(0, len(obs), CHUNK)]
        self._row_s = (time.perf_counter() - begun) / len(obs)
        return np.concatenate(parts)


def _softmax(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    weights = np.exp(logits.astype(np.float64) - logits.max())
    return np.asarray(weights / weights.sum())


def own_logits(
    solution: Solution, state: core.State, seat: int, temperature: float, noise: random.Random
) -> Evaluation:
    """Return one seat's part of a solution, in the form of a policy's answer.

    With a temperature above 0 the highest logit is a draw from the policy with exponent
    1 / temperature: Gumbel noise is added to the logarithms.

    Args:
        solution: what was found.
        state: for this board.
        seat: a living seat.
        temperature: 0 for the likeliest move, 1 for the equilibrium's own mixture.
        noise: of the draw.
    """
    slot = state.living().index(seat)
    logits = [math.log(max(p, _TINY)) for p in solution.policy[slot]]
    if temperature > 0:
        draws = [-math.log(max(noise.expovariate(1.0), _TINY)) for _ in logits]
        # A move without probability stays behind all others.
        logits = [
            x / temperature + draw if x > math.log(2 * _TINY) else x * 1e3
            for x, draw in zip(logits, draws, strict=True)
        ]
    return Evaluation(logits, 2 * solution.utility[slot] - 1)


class _Job(NamedTuple):
    state: core.State
    seat: int
    deadline: float
    future: "asyncio.Future[Evaluation]"
    at: float


class EquilibriumWorker:
    """A thread that solves one board after the other; used like a `Batcher`, on one event loop."""

    def __init__(
        self,
        solver: Equilibrium,
        *,
        bare: bool,
        temperature: float,
        limit: int,
        on_batch: Callable[[BatchReport], None] | None = None,
    ) -> None:
        """Start the thread.

        Args:
            solver: the model; this thread's alone from now on.
            bare: answer by the model's own policy instead of an equilibrium.
            temperature: see `own_logits`.
            limit: boards that may wait.
            on_batch: called on the event loop after each board; the size is that of its leaves.
        """
        self._solver, self._bare = solver, bare
        self._temperature, self._noise = temperature, random.Random()
        self._limit, self._on_batch = limit, on_batch
        self._loop = asyncio.get_running_loop()
        self._queue: deque[_Job] = deque()
        self._wake = threading.Condition()
        self._closed = False
        self._started: float | None = None
        self._thread = threading.Thread(target=self._work, name="equilibrium", daemon=True)
        self._thread.start()

    def submit(self, state: core.State, seat: int, deadline: float) -> "asyncio.Future[Evaluation]":
        """Queue a board for a seat; cancel the future to drop it.

        Raises:
            BatcherError: full or closed.
        """
        future: asyncio.Future[Evaluation] = self._loop.create_future()
        with self._wake:
            if self._closed:
                raise BatcherError("the worker is closed")
            if len(self._queue) >= self._limit:
                self._queue = deque(job for job in self._queue if not job.future.done())
            if len(self._queue) >= self._limit:
                raise BatcherError(f"{self._limit} boards wait already")
            self._queue.append(_Job(state, seat, deadline, future, time.perf_counter()))
            self._wake.notify()
        return future

    @property
    def running_s(self) -> float:
        """How long the board in work takes by now; 0 without one."""
        started = self._started
        return 0.0 if started is None else time.perf_counter() - started

    async def close(self, *, drain: bool = False) -> None:
        """Take no more boards and stop after the one in work. Safe to call twice.

        What still waits is cancelled, or with `drain` solved first.
        """
        waiting: deque[_Job] = deque()
        with self._wake:
            self._closed = True
            if not drain:
                waiting, self._queue = self._queue, waiting
            self._wake.notify()
        for job in waiting:
            job.future.cancel()
        await asyncio.to_thread(self._thread.join, CLOSE_S)

    def _take(self) -> _Job | None:
        with self._wake:
            while True:
                while self._queue:
                    job = self._queue.popleft()
                    if not job.future.done():
                        return job
                if self._closed:
                    return None
                self._wake.wait()

    def _work(self) -> None:
        while (job := self._take()) is not None:
            self._started = started = time.perf_counter()
            result: Evaluation | None = None
            error: Exception | None = None
            leaves = 1
            try:
                # More boards than one share the time, so that the last one gets some as well.
                share = (job.deadline - started) / (1 + len(self._queue))
                solution = (
                    self._solver.bare(job.state)
                    if self._bare
                    else self._solver.solve(job.state, started + share)
                )
                leaves = max(solution.leaves, 1)
                result = own_logits(solution, job.state, job.seat, self._temperature, self._noise)
            except Exception as caught:
                error = caught
            self._started = None
            report = BatchReport(leaves, time.perf_counter() - started, [started - job.at])
            try:
                self._loop.call_soon_threadsafe(self._deliver, job, result, error, report)
            except RuntimeError:  # the loop has been closed, nobody waits any more
                return

    def _deliver(
        self, job: _Job, result: Evaluation | None, error: Exception | None, report: BatchReport
    ) -> None:
        if not job.future.done():
            if error is not None:
                job.future.set_exception(error)
            elif result is not None:
                job.future.set_result(result)
        if self._on_batch is not None:
            self._on_batch(report)
