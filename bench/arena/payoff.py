"""Who beats whom, and how far from an order that is: the evidence against strategy collapse.

Pair counts. In every game each pair of players has an outcome: the better place wins, equal
places are half a win for both. With w_ij wins of i over j, the payoff is the log-odds

    A_ij = ln((w_ij + 1/2) / (w_ji + 1/2)),   A_ji = -A_ij.

The half keeps it finite. If strength was one number a player (Elo, Bradley-Terry), A_ij would be
r_i - r_j.

Cyclic share. The Hodge decomposition (Balduzzi et al., "Re-evaluating evaluation", 2018) splits

    A = grad(r) + C,   grad(r)_ij = r_i - r_j,   r = argmin of sum over played pairs |A - grad(r)|^2

into the best transitive part and a cyclic part C, which are orthogonal. With every pair played,
r_i is the mean of row i. The measure is

    cyclicity = |C|^2 / |A|^2,

0 for a pure order, 1 for rock, paper, scissors. Since chance alone leaves a cyclic part, it is
compared with what the same number of games would give if the order was pure: outcomes are drawn
from the odds of grad(r), and the 95th percentile of their cyclicity is the limit of noise.

Intransitive triples. i beats j, j beats k and k beats i, each with more than half of the points;
they are certain if all three shares have Wilson intervals above one half.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snakekit.bench.arena.bout import BoutRecord
from snakekit.bench.tally import wilson

Floats = NDArray[np.float64]
_DRAWS = 400


@dataclass(frozen=True)
class Payoff:
    """Pairwise wins `[n, n]` (ties are half a win each) among `names`."""

    names: tuple[str, ...]
    wins: Floats

    @classmethod
    def from_records(cls, records: Sequence[BoutRecord], names: Sequence[str]) -> "Payoff":
        """Count every pair of every game."""
        number = {name: index for index, name in enumerate(names)}
        wins = np.zeros((len(names), len(names)))
        for record in records:
            seats = zip(record.seats, record.places, strict=True)
            for (a, place_a), (b, place_b) in itertools.combinations(seats, 2):
                i, j = number[a], number[b]
                share = 0.5 if place_a == place_b else float(place_a < place_b)
                wins[i, j] += share
                wins[j, i] += 1 - share
        return cls(tuple(names), wins)

    @property
    def games(self) -> Floats:
        """Games of each pair `[n, n]`."""
        return self.wins + self.wins.T

    @property
    def scores(self) -> Floats:
        """Share of points of row against column `[n, n]`, NaN where none was played."""
        with np.errstate(invalid="ignore"):
            scores: Floats = self.wins / self.games
        return scores

    def log_odds(self) -> Floats:
        """Return A; 0 for pairs that never met."""
        odds: Floats = np.log((self.wins + 0.5) / (self.wins.T + 0.5))
        return odds


@dataclass(frozen=True)
class Cycles:
    """How far from transitive a payoff is."""

    cyclicity: float
    """Share of the squared payoff that no order explains, 0..1."""
    noise: float
    """What 95 % of purely ordered players would stay below with as many games."""
    triples: int
    """Triples that met, all three pairs."""
    intransitive: int
    certain: int
    """Intransitive ones that chance hardly explains."""
    examples: list[tuple[str, str, str]]
    """Intransitive triples, the clearest first; each beats the next, the last the first."""

    @property
    def significant(self) -> bool:
        """Whether the cyclic part is more than noise."""
        return self.cyclicity > self.noise


def decompose(payoff: Floats, played: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return (r, C) of the antisymmetric `payoff` over the `played` pairs; r has mean 0."""
    count = len(payoff)
    rows, cols = np.nonzero(np.triu(played, 1))
    design = np.zeros((len(rows), count))
    design[np.arange(len(rows)), rows] = 1
    design[np.arange(len(rows)), cols] = -1
    r: Floats = np.linalg.lstsq(design, payoff[rows, cols], rcond=None)[0].astype(np.float64)
    r = r - r.mean()
    cyclic: Floats = np.where(played, payoff - (r[:, None] - r[None, :]), 0.0)
    return r, cyclic


def cyclicity(payoff: Floats, played: NDArray[np.bool_]) -> float:
    """Return |C|^2 / |A|^2, and 0 where nobody is better than anybody."""
    total = float((payoff[played] ** 2).sum())
    if total == 0:
        return 0.0
    return float((decompose(payoff, played)[1] ** 2).sum()) / total


def measure(payoff: Payoff, *, seed: int = 0) -> Cycles:
    """Measure the cycles in `payoff`; `seed` is of the noise's draws."""
    games, odds = payoff.games, payoff.log_odds()
    played = games > 0
    r, _ = decompose(odds, played)
    rng = np.random.default_rng(seed)
    chance = 1 / (1 + np.exp(r[None, :] - r[:, None]))
    upper = np.triu(games.round().astype(np.int64), 1)
    drawn = []
    for _ in range(_DRAWS):
        wins = rng.binomial(upper, chance).astype(float)
        wins += np.tril((upper - wins).T, -1)
        drawn.append(cyclicity(Payoff(payoff.names, wins).log_odds(), played))
    loops = _intransitive(payoff)
    return Cycles(
        cyclicity=cyclicity(odds, played),
        noise=float(np.quantile(drawn, 0.95)),
        triples=sum(
            bool(played[i, j] and played[j, k] and played[i, k])
            for i, j, k in itertools.combinations(range(len(odds)), 3)
        ),
        intransitive=len(loops),
        certain=sum(certain for _, certain, _ in loops),
        examples=[names for _, _, names in loops],
    )


def _intransitive(payoff: Payoff) -> list[tuple[float, bool, tuple[str, str, str]]]:
    """Return (least margin, certain, names) of each intransitive triple, the clearest first."""
    scores, games = payoff.scores, payoff.games
    found = []
    for i, j, k in itertools.combinations(range(len(scores)), 3):
        for loop in ((i, j, k), (i, k, j)):
            edges = [(loop[n], loop[(n + 1) % 3]) for n in range(3)]
            # NaN, for a pair that never met, is not above one half either.
            if not all(scores[edge] > 0.5 for edge in edges):
                continue
            certain = all(
                wilson(int(payoff.wins[edge]), int(games[edge]))[0] > 0.5 for edge in edges
            )
            margin = min(float(scores[edge]) for edge in edges)
            a, b, c = (payoff.names[n] for n in loop)
            found.append((margin, certain, (a, b, c)))
    return sorted(found, key=lambda loop: (not loop[1], -loop[0], loop[2]))
