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

0 for a pure order, 1 for rock, paper, scissors, and anything at all among equals, where chance is
the whole of A. It says nothing about significance.

Significance. A pure order is the Bradley-Terry model. With p_ij its most likely chances, Pearson's

    X^2 = sum over played pairs (w_ij - n_ij p_ij)^2 / (n_ij p_ij (1 - p_ij))

is what the order leaves unexplained. The p-value is the share of pure orders that leave as much,
the larger of two: with independent outcomes drawn from p_ij, and with blocks of games drawn anew
with replacement about their own mean, since games of one block, pairs of one game, and draws are
not independent outcomes.

Intransitive triples. i beats j, j beats k and k beats i, each with more than half of the points;
they are certain if all three shares have Wilson intervals above one half.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snakekit.bench.arena.bout import BoutRecord
from snakekit.trainer.stats import wilson

Floats = NDArray[np.float64]
_DRAWS = 1000


@dataclass(frozen=True)
class Payoff:
    """Pairwise wins `[n, n]` (ties are half a win each) among `names`."""

    names: tuple[str, ...]
    wins: Floats
    block_wins: Floats
    """The same for every block of games `[blocks, n, n]`."""

    @classmethod
    def from_records(cls, records: Sequence[BoutRecord], names: Sequence[str]) -> "Payoff":
        """Count every pair of every game."""
        number = {name: index for index, name in enumerate(names)}
        row = {block: index for index, block in enumerate(sorted({r.block for r in records}))}
        wins = np.zeros((len(row), len(names), len(names)))
        for record in records:
            block = wins[row[record.block]]
            seats = zip(record.seats, record.places, strict=True)
            for (a, place_a), (b, place_b) in itertools.combinations(seats, 2):
                i, j = number[a], number[b]
                share = 0.5 if place_a == place_b else float(place_a < place_b)
                block[i, j] += share
                block[j, i] += 1 - share
        return cls(tuple(names), wins.sum(0), wins)

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
    p_value: float
    """Chance that players of a pure order look as cyclic in as many games."""
    triples: int
    """Triples that met, all three pairs."""
    intransitive: int
    certain: int
    """Intransitive ones that chance hardly explains."""
    examples: list[tuple[str, str, str]]
    """Intransitive triples, the clearest first; each beats the next, the last the first."""

    @property
    def significant(self) -> bool:
        """Whether the cyclic part is more than noise, at 5 %."""
        return self.p_value < 0.05


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


def bradley_terry(wins: Floats, design: Floats) -> Floats:
    """Return the most likely chance of every played pair, `wins` `[pairs, 2]`, by Newton's method.

    A weak normal prior keeps somebody finite who always wins.
    """
    prior = 1e-3 * np.eye(design.shape[1])
    r = np.zeros(design.shape[1])
    games = wins.sum(1)
    for _ in range(50):
        chance = 1 / (1 + np.exp(-(design @ r)))
        slope = design.T @ (wins[:, 0] - games * chance) - prior @ r
        weight = games * chance * (1 - chance)
        step = np.linalg.solve(design.T @ (weight[:, None] * design) + prior, slope)
        r += np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-9:
            break
    fitted: Floats = 1 / (1 + np.exp(-(design @ r)))
    return fitted


def cycle_p_value(payoff: Payoff, *, seed: int) -> float:
    """Return the chance of X^2 at least as large under a pure order; 1 if an order fits always."""
    rows, cols = np.nonzero(np.triu(payoff.games > 0, 1))
    design = np.zeros((len(rows), len(payoff.names)))
    pairs = np.arange(len(rows))
    design[pairs, rows], design[pairs, cols] = 1, -1
    if np.linalg.matrix_rank(design) == len(rows):
        return 1.0
    games = payoff.games[rows, cols]
    wins = payoff.wins[rows, cols]
    chance = bradley_terry(np.stack([wins, games - wins], 1), design)
    spread = np.sqrt(games * chance * (1 - chance))
    # What a refit of the order would take away from a small disturbance.
    weighted = spread[:, None] * design
    unexplained = np.eye(len(rows)) - weighted @ np.linalg.pinv(weighted)
    found = float((((wins - games * chance) / spread) ** 2).sum())

    rng = np.random.default_rng(seed)
    drawn = rng.binomial(games.round().astype(np.int64), chance, (_DRAWS, len(rows)))
    independent = (drawn - games * chance) / spread
    blocks = payoff.block_wins[:, rows, cols]
    surplus = blocks - (blocks + payoff.block_wins[:, cols, rows]) * chance
    count = len(blocks)
    times = rng.multinomial(count, np.full(count, 1 / count), _DRAWS)
    blockwise = (times - 1) @ surplus / spread
    return max(
        (1 + int((((noise @ unexplained) ** 2).sum(1) >= found).sum())) / (1 + _DRAWS)
        for noise in (independent, blockwise)
    )


def measure(payoff: Payoff, *, seed: int = 0) -> Cycles:
    """Measure the cycles in `payoff`; `seed` is of the draws for the p-value."""
    odds = payoff.log_odds()
    played = payoff.games > 0
    loops = _intransitive(payoff)
    return Cycles(
        cyclicity=cyclicity(odds, played),
        p_value=cycle_p_value(payoff, seed=seed),
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
