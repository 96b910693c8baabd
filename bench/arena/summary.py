"""All that the games of an arena say, computed once for tables, page and file."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from snakekit.bench.arena import payoff as payoffs
from snakekit.bench.arena import ratings
from snakekit.bench.arena.bout import BoutRecord
from snakekit.bench.arena.payoff import Cycles, Payoff
from snakekit.bench.arena.ratings import Rating
from snakekit.bench.arena.sprt import SprtState


@dataclass
class Tally:
    """What one player did; `points` is the share of opponents outlived, ties half."""

    name: str
    games: int = 0
    wins: int = 0
    draws: int = 0
    turns: int = 0
    survived: int = 0
    lengths: int = 0
    faults: int = 0
    points: float = 0.0
    deaths: Counter[str] = field(default_factory=Counter)

    @property
    def losses(self) -> int:
        """Games neither won nor drawn."""
        return self.games - self.wins - self.draws

    def mean(self, total: float) -> float:
        """Return `total` per game, 0 without games."""
        return total / self.games if self.games else 0.0


def tallies(records: Sequence[BoutRecord], names: Sequence[str]) -> list[Tally]:
    """Count wins (first alone), draws (first with others), lengths and deaths of each player."""
    found = {name: Tally(name) for name in names}
    for record in records:
        firsts = record.places.count(1)
        rivals = len(record.seats) - 1
        for seat, name in enumerate(record.seats):
            tally, place = found[name], record.places[seat]
            tally.games += 1
            tally.wins += place == 1 and firsts == 1
            tally.draws += place == 1 and firsts > 1
            tally.turns += record.turns
            tally.survived += record.died[seat] or record.turns
            tally.lengths += record.lengths[seat]
            tied = record.places.count(place) - 1
            better = place - 1
            tally.points += (rivals - better - tied / 2) / rivals
            if record.causes[seat]:
                tally.deaths[record.causes[seat]] += 1
            if record.faults:
                tally.faults += record.faults[seat]
    return list(found.values())


@dataclass(frozen=True)
class Summary:
    """Everything shown of an arena; lists are in the order of the players given."""

    names: list[str]
    games: int
    blocks: int
    cut: int
    draws: int
    mean_turns: float
    tallies: list[Tally]
    ratings: list[Rating]
    payoff: Payoff
    cycles: Cycles
    opinion: dict[str, tuple[float, float]]
    anchor: str = ""
    sprt: SprtState | None = None

    @property
    def ranking(self) -> list[int]:
        """Indices of the players, the strongest first."""
        return sorted(range(len(self.names)), key=lambda i: -self.ratings[i].elo)


def summarize(
    records: Sequence[BoutRecord],
    names: Sequence[str],
    *,
    resamples: int,
    seed: int,
    anchor: str = "",
    sprt: SprtState | None = None,
) -> Summary:
    """Compute the summary of at least one game; see `ratings.rate` for the arguments."""
    payoff = Payoff.from_records(records, names)
    return Summary(
        names=list(names),
        games=len(records),
        blocks=len({record.block for record in records}),
        cut=sum(record.cut for record in records),
        draws=sum(record.places.count(1) > 1 for record in records),
        mean_turns=sum(record.turns for record in records) / len(records),
        tallies=tallies(records, names),
        ratings=ratings.rate(records, names, resamples=resamples, seed=seed, anchor=anchor),
        payoff=payoff,
        cycles=payoffs.measure(payoff, seed=seed),
        opinion=ratings.second_opinion(records, names),
        anchor=anchor,
        sprt=sprt,
    )
