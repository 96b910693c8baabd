"""A model that serves: loaded, warmed up and checked, with the thread that feeds it."""

import asyncio
import contextlib
import random
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from snakekit import core
from snakekit.runtime.api import Position
from snakekit.runtime.backends import Backend, BackendError, load_backend
from snakekit.runtime.batcher import Batcher
from snakekit.runtime.config import ServerConfig
from snakekit.runtime.contract import ModelCard
from snakekit.runtime.cores import yield_to_others
from snakekit.runtime.equilibrium import Equilibrium, Lookahead, bare_solution, own_logits
from snakekit.runtime.feed import BatchReport, Evaluation, Stage
from snakekit.runtime.solving import EquilibriumWorker

WARM_UP_RUNS = 3
HUNG_S = 2.0
"""An inference that takes longer is not waited for any more; usual ones take milliseconds."""

_NO_STAGE = Stage("policy", 0, 1, 0.0, 0, 0, 0.0)


class LoadedModel:
    """One model in use; made and used on one event loop."""

    def __init__(
        self,
        backend: Backend,
        card: ModelCard,
        config: ServerConfig,
        on_batch: Callable[[BatchReport], None],
    ) -> None:
        self.card = card
        self.info = backend.describe()
        self._backend = backend
        self._budget_s = config.budget_ms / 1000
        self._temperature, self._noise = config.temperature, random.Random()
        self._draw_worth = config.draw_worth
        self._worker: Batcher | EquilibriumWorker
        if config.mode == "equilibrium":
            self._worker = EquilibriumWorker(
                Equilibrium(backend, card, lookahead(config)),
                temperature=config.temperature,
                limit=config.queue_limit,
                on_batch=on_batch,
            )
            return
        self._worker = Batcher(
            backend.infer,
            shapes=((card.slots, 4), (card.slots + 1,)) if card.slots else ((4,), ()),
            sizes=config.batch_sizes,
            pad=backend.pads,
            wait_s=config.batch_wait_ms / 1000,
            limit=config.queue_limit,
            on_batch=on_batch,
        )

    @classmethod
    async def load(
        cls,
        config: ServerConfig,
        on_batch: Callable[[BatchReport], None],
        on_compared: Callable[[int, int], None] | None = None,
    ) -> "LoadedModel":
        """Load, warm up and check in a thread that gives way to the event loop.

        `on_compared` is that of `load_backend`.

        Raises:
            BackendError: the model or backend cannot be used.
        """
        thread = ThreadPoolExecutor(1, "load", initializer=yield_to_others)
        loop = asyncio.get_running_loop()
        try:
            backend, card = await loop.run_in_executor(thread, open_checked, config, on_compared)
        finally:
            thread.shutdown(wait=False)
        return cls(backend, card, config, on_batch)

    @property
    def hung(self) -> bool:
        """Whether an inference runs for so long that it may never end."""
        return self._worker.running_s > HUNG_S

    def submit(self, place: Position, deadline: float) -> "asyncio.Future[Evaluation]":
        """Ask for a position; cancel the future to drop it.

        Until `deadline` (`time.perf_counter()`) an equilibrium may be made better.

        Raises:
            BatcherError: too many wait already.
        """
        if isinstance(self._worker, EquilibriumWorker):
            until = min(deadline, time.perf_counter() + self._budget_s)
            return self._worker.submit(place.state, place.seat, until)
        if self.card.slots:
            return self._ask_all(self._worker, place)
        return self._worker.submit(place.state.encode(self.card.encoder, [place.seat])[0])

    def _ask_all(self, worker: Batcher, place: Position) -> "asyncio.Future[Evaluation]":
        """Ask a model for all seats for its own policy."""
        state, seat = place

        def read(policy: NDArray[np.float32], outcome: NDArray[np.float32]) -> Evaluation:
            solution = bare_solution(state, policy, outcome, _NO_STAGE, self._draw_worth)
            own = own_logits(solution, state, seat, self._temperature, self._noise)
            return own._replace(stage=None)

        try:
            row = core.encode_all([state], slots=self.card.slots)[0]
        except core.StateError as error:
            failed: asyncio.Future[Evaluation] = asyncio.get_running_loop().create_future()
            failed.set_exception(error)
            return failed
        return worker.submit(row, read)

    def described(self) -> dict[str, str | int]:
        """Return facts for the log."""
        runtime = {}
        if "onnxruntime" in sys.modules:
            with contextlib.suppress(metadata.PackageNotFoundError):
                runtime = {"onnxruntime": metadata.version("onnxruntime")}
        return {
            "model": self.card.name,
            "step": self.card.step,
            "encoder": self.card.encoder,
            "backend": self.info.actual,
            "precision": self.info.precision,
            **runtime,
        }

    async def close(self, *, drain: bool = False) -> None:
        """Free the model; with `drain`, answer what waits first."""
        await self._worker.close(drain=drain)
        self._backend.close()


def lookahead(config: ServerConfig) -> Lookahead:
    """Return what an equilibrium looks at by the server's options."""
    return Lookahead(
        plies=config.plies,
        plans=config.plans,
        plan_turns=config.plan_turns,
        iterations=config.iterations,
        draw_worth=config.draw_worth,
    )


def open_checked(
    config: ServerConfig, on_compared: Callable[[int, int], None] | None = None
) -> tuple[Backend, ModelCard]:
    """Load a model and run it at every batch size it will be used with.

    Raises:
        BackendError: it cannot be used; see `_warm_up`.
    """
    path = Path(config.model) if config.model else None
    backend, card = load_backend(config.backend, path, options=config, on_compared=on_compared)
    if config.mode == "equilibrium" and not card.slots:
        backend.close()
        raise BackendError(
            f"mode equilibrium: model {card.name} answers for one seat; expected one for all "
            "seats, made by snakekit train nash"
        )
    try:
        for board in sorted({(11, 11), *card.boards[:4]}):
            _warm_up(backend, card, board, config.batch_sizes)
    except BackendError:
        backend.close()
        raise
    return backend, card


def _warm_up(
    backend: Backend, card: ModelCard, board: tuple[int, int], sizes: Sequence[int]
) -> None:
    """Run a model at every batch size on new games of one board.

    Raises:
        BackendError: it fails, or answers in another shape or with numbers that are not finite.
    """
    seats = [card.slots] if card.slots else []

    def refusal(what: str, expected: str) -> BackendError:
        return BackendError(
            f"model {card.name}: {what} for a new {board[0]}x{board[1]} game; expected {expected}, "
            "export the model again or take another backend"
        )

    try:
        state = core.State.new_game(*board, ["a", "b"], 0)
        row = (
            core.encode_all([state], slots=card.slots) if seats else state.encode(card.encoder, [0])
        )
        for size in sizes:
            for _ in range(WARM_UP_RUNS):
                policy, value = backend.infer(np.repeat(row, size, axis=0))
            if (found := list(policy.shape)) != (shape := [size, *seats, 4]):
                raise refusal(f"answers in shape {found}", f"{shape}")
            if not (np.isfinite(policy).all() and np.isfinite(value).all()):
                raise refusal("gives numbers that are not finite", "finite ones")
    except BackendError:
        raise
    except Exception as error:
        # Each runtime raises types of its own, and none of them may reach a server that plays.
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise refusal(f"fails ({reason})", "an answer") from None
