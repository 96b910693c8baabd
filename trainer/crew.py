"""What the workers of every method with a league have in common: they play gates, and end."""

from collections.abc import Callable, Sequence
from typing import Protocol

from snakekit.trainer.gate import Gate, GateJob, OnGames, nothing
from snakekit.trainer.league import League, Weights


class Crew(Protocol):
    """A fixed number of workers that play gates."""

    count: int

    def gate(
        self,
        jobs: Sequence[GateJob],
        candidate: Weights,
        league: League,
        needed: float,
        stop: Callable[[], bool],
        progress: OnGames = nothing,
    ) -> Gate:
        """Play the candidate against all that the league draws from, the current best last."""

    def close(self) -> None:
        """Let go of processes and memory."""
