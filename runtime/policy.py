"""A model as a player: observations in, masked best move out. For offline play and measuring."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from snakekit import core
from snakekit.runtime.backends import Backend, BackendOptions, load_backend
from snakekit.runtime.contract import ModelCard
from snakekit.runtime.equilibrium import Equilibrium


class Policy:
    """Evaluates boards with one backend. Not for use from several threads at once."""

    def __init__(self, backend: Backend, card: ModelCard) -> None:
        self.backend = backend
        self.card = card

    @classmethod
    def load(
        cls, model: Path | str | None = None, *, backend: str = "cpu", threads: int = 1
    ) -> "Policy":
        """Open a model file (None: the shipped one).

        Raises:
            BackendError: see `load_backend`.
        """
        options = BackendOptions(threads=threads)
        return cls(*load_backend(backend, Path(model) if model else None, options=options))

    def evaluate(
        self, state: core.State, seats: Sequence[int]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return logits `[len(seats), 4]` and values `[len(seats)]` (-1..1, per own seat)."""
        return self.backend.infer(state.encode(self.card.encoder, seats))

    def best(self, state: core.State, seat: int, *, equilibrium: bool = False) -> int:
        """Return the move 0..3 with the highest logit among the safe moves.

        Without a safe move the legal ones count; numbers that are not finite give the reflex move.
        With `equilibrium` a model for all seats is asked for the likeliest move of one turn's
        equilibrium instead of its own policy.

        Raises:
            StateError: more living snakes than such a model has slots.
        """
        if self.card.slots:
            solver = Equilibrium(self.backend, self.card)
            solution = solver.solve(state) if equilibrium else solver.bare(state)
            logits = np.array(solution.policy[state.living().index(seat)], np.float32)
        else:
            logits = self.evaluate(state, [seat])[0][0]
        if not np.isfinite(logits).all():
            return core.reflex_move(state, seat)
        mask = state.safe_mask(seat) or state.legal_mask(seat) or 15
        return max((m for m in range(4) if mask >> m & 1), key=lambda m: float(logits[m]))

    def close(self) -> None:
        """Free the model."""
        self.backend.close()
