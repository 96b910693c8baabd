"""What a match run counts for each player, and the statistics shown of it."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from snakekit.bench.protocol import Answer, Kind


class Outcome(Enum):
    """What one game was for one player. `FINISHED` is a solo game, which nobody wins."""

    WIN = "win"
    LOSS = "loss"
    DRAW = "draw"
    FINISHED = "finished"


@dataclass
class Tally:
    """Counts of one player over all games; latencies in milliseconds."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    deaths: Counter[str] = field(default_factory=Counter)
    kinds: Counter[Kind] = field(default_factory=Counter)
    illegal_moves: int = 0
    turns: int = 0
    final_lengths: int = 0
    latencies_ms: list[float] = field(default_factory=list)
    examples: dict[Kind, str] = field(default_factory=dict)

    @property
    def games(self) -> int:
        """Games that ended."""
        return sum(self.outcomes.values())

    @property
    def moves(self) -> int:
        """Moves asked for, answered or not."""
        return sum(self.kinds.values())

    @property
    def faults(self) -> int:
        """Moves that were not answered properly, plus legal words that were illegal moves."""
        return self.moves - self.kinds[Kind.OK] + self.illegal_moves

    def count_answer(self, answer: Answer, *, illegal_move: bool) -> None:
        """Add one answer; `illegal_move` says that it left the board or entered the own neck."""
        self.kinds[answer.kind] += 1
        self.illegal_moves += illegal_move
        self.latencies_ms.append(answer.latency_ms)
        if answer.kind is not Kind.OK:
            self.examples.setdefault(answer.kind, answer.detail)

    def count_game(self, outcome: Outcome, *, cause: str, turns: int, length: int) -> None:
        """Add a finished game: `cause` of death ("" if alive), its turns, the final length."""
        self.outcomes[outcome] += 1
        self.turns += turns
        self.final_lengths += length
        if cause:
            self.deaths[cause] += 1

    def add(self, other: "Tally") -> None:
        """Add all that `other` counted."""
        self.outcomes.update(other.outcomes)
        self.deaths.update(other.deaths)
        self.kinds.update(other.kinds)
        self.illegal_moves += other.illegal_moves
        self.turns += other.turns
        self.final_lengths += other.final_lengths
        self.latencies_ms += other.latencies_ms
        self.examples = other.examples | self.examples

    def latency(self, share: float) -> float:
        """Return the latency that `share` of the moves do not exceed, in milliseconds."""
        return percentile(self.latencies_ms, share)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` (0..1) of `values` do not exceed.

    NaN when there are no values.
    """
    if not values:
        return math.nan
    rank = max(1, math.ceil(share * len(values) - 1e-9))
    return sorted(values)[rank - 1]
