"""Ratings in Elo from placements, with intervals.

The model is Plackett-Luce: from the players still in question the next best is player i with
probability exp(r_i) over the sum of all; for two players this is Bradley-Terry, that is Elo with
400 / ln 10 points for each unit of r. Tied players (a draw, or deaths in the same turn) count as
the mean over all orders of them, so a draw between two is half a win and half a loss.

The ratings are the maximum of the likelihood, found by `scipy.optimize`, and do not depend on
the order of the games. A normal prior with a standard deviation of 1000 Elo keeps someone who
always wins finite; with real data it moves nothing.

Intervals are the outer ones of two: the percentiles of a bootstrap over blocks (the games of one
start with all seats rotated stand or fall together), and the curvature of the likelihood, since a
bootstrap knows no uncertainty of someone who never lost.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snakekit.bench.arena.bout import BoutRecord

ELO = 400 / math.log(10)
PRIOR_SD_ELO = 1000.0
_Z95 = 1.959963984540054
Floats = NDArray[np.float64]
Subset = tuple[int, ...]


@dataclass(frozen=True)
class Rating:
    """Elo of one player and its 95 % interval."""

    name: str
    elo: float
    low: float
    high: float
    games: int

    @property
    def half_width(self) -> float:
        """Half of the interval."""
        return (self.high - self.low) / 2


def choices(players: Sequence[int], places: Sequence[int]) -> Iterator[tuple[Subset, float]]:
    """Yield every set that a next best was chosen from, and how often (ties: in the mean).

    With `places` 1, 2, 2 the sets are everyone once, the tied two once, and each of them alone
    half a time.
    """
    order = sorted(zip(places, players, strict=True))
    groups = [[p for _, p in group] for _, group in itertools.groupby(order, lambda pair: pair[0])]
    for index, group in enumerate(groups):
        rest = [p for worse in groups[index + 1 :] for p in worse]
        for size in range(1, len(group) + 1):
            weight = 1 / math.comb(len(group), size)
            for part in itertools.combinations(group, size):
                yield tuple(sorted((*part, *rest))), weight


class Likelihood:
    """The games of every block as counts, so that any weighting of blocks is fitted quickly."""

    def __init__(self, records: Sequence[BoutRecord], names: Sequence[str]) -> None:
        """Count `records` among the players `names`."""
        number = {name: index for index, name in enumerate(names)}
        per_block: dict[int, Counter[Subset]] = {}
        games: dict[int, Counter[int]] = {}
        for record in records:
            players = [number[name] for name in record.seats]
            sets = per_block.setdefault(record.block, Counter())
            for subset, weight in choices(players, record.places):
                sets[subset] += weight  # type: ignore[assignment]
            games.setdefault(record.block, Counter()).update(players)
        subsets = sorted(set().union(*per_block.values())) if per_block else []
        column = {subset: index for index, subset in enumerate(subsets)}
        self.blocks = len(per_block)
        self._members = np.zeros((len(subsets), len(names)))
        for subset, row in column.items():
            self._members[row, subset] = 1
        self._sets = np.zeros((self.blocks, len(subsets)))
        self._games = np.zeros((self.blocks, len(names)))
        for row, block in enumerate(sorted(per_block)):
            for subset, weight in per_block[block].items():
                self._sets[row, column[subset]] = weight
            for player, count in games[block].items():
                self._games[row, player] = count

    @property
    def games(self) -> list[int]:
        """Games of each player."""
        return [int(n) for n in self._games.sum(0)]

    def fit(self, weights: Floats | None = None, start: Floats | None = None) -> Floats:
        """Return the most likely ratings in nats, with mean 0, for `weights` of the blocks."""
        # Only those who rate need the package, not those who ask for help.
        from scipy import optimize

        weights = np.ones(self.blocks) if weights is None else weights
        won, sets = weights @ self._games, weights @ self._sets
        start = np.zeros(self._games.shape[1]) if start is None else start
        found = optimize.minimize(
            lambda r: self._loss(r, won, sets)[0],
            start,
            jac=lambda r: self._loss(r, won, sets)[1],
            hess=lambda r: self._curvature(r, sets),
            method="trust-exact",
            options={"gtol": 1e-6},
        )
        ratings: Floats = found.x - found.x.mean()
        return ratings

    def _chosen(self, r: Floats) -> tuple[Floats, Floats]:
        shares = self._members * np.exp(r - r.max())
        total = shares.sum(1)
        return shares / total[:, None], np.log(total) + r.max()

    def _loss(self, r: Floats, won: Floats, sets: Floats) -> tuple[float, Floats]:
        prior = (ELO / PRIOR_SD_ELO) ** 2
        shares, logs = self._chosen(r)
        value = float(sets @ logs - won @ r + prior * (r @ r) / 2)
        return value, sets @ shares - won + prior * r

    def _curvature(self, r: Floats, sets: Floats) -> Floats:
        shares, _ = self._chosen(r)
        prior = (ELO / PRIOR_SD_ELO) ** 2
        inner: Floats = np.diag(sets @ shares + prior) - (shares.T * sets) @ shares
        return inner

    def deviations(self, r: Floats, anchor: int | None) -> Floats:
        """Return standard deviations by the curvature at `r`, relative to the anchor, in nats."""
        covariance = np.linalg.inv(self._curvature(r, self._sets.sum(0)))
        count = len(r)
        base = np.full(count, 1 / count) if anchor is None else np.eye(count)[anchor]
        shift = np.eye(count) - base[None, :]
        spread: Floats = np.sqrt(np.maximum(np.diag(shift @ covariance @ shift.T), 0))
        return spread


def rate(
    records: Sequence[BoutRecord],
    names: Sequence[str],
    *,
    resamples: int = 1000,
    seed: int = 0,
    anchor: str = "",
) -> list[Rating]:
    """Return a rating for each of `names`, in their order.

    Args:
        records: finished games.
        names: all players; one without games has the whole width of the prior.
        resamples: of the bootstrap.
        seed: of the bootstrap.
        anchor: name of the player who has 0 Elo; empty: the mean is 0.
    """
    likelihood = Likelihood(records, names)
    fixed = names.index(anchor) if anchor else None

    def anchored(r: Floats) -> Floats:
        return r if fixed is None else r - r[fixed]

    best = likelihood.fit()
    spread = likelihood.deviations(best, fixed) * _Z95
    centre = anchored(best)
    low, high = centre - spread, centre + spread
    if likelihood.blocks > 1:
        rng = np.random.default_rng(seed)
        even = np.full(likelihood.blocks, 1 / likelihood.blocks)
        draws = [
            anchored(
                likelihood.fit(rng.multinomial(likelihood.blocks, even).astype(float), start=best)
            )
            for _ in range(resamples)
        ]
        quantiles = np.quantile(np.array(draws), [0.025, 0.975], axis=0)
        low, high = np.minimum(low, quantiles[0]), np.maximum(high, quantiles[1])
    return [
        Rating(name, float(c) * ELO, float(a) * ELO, float(b) * ELO, games)
        for name, c, a, b, games in zip(names, centre, low, high, likelihood.games, strict=True)
    ]


def second_opinion(
    records: Sequence[BoutRecord], names: Sequence[str]
) -> dict[str, tuple[float, float]]:
    """Return mu and sigma of each player by openskill's Plackett-Luce, games in their order.

    It is an online method: the order of the games matters and sigma is no interval of this
    arena. It serves as a check by other people's code.
    """
    from openskill.models import PlackettLuce

    model = PlackettLuce()
    known = {name: model.rating(name=name) for name in names}
    for record in sorted(records, key=lambda record: record.game):
        teams = [[known[name]] for name in record.seats]
        rated = model.rate(teams, ranks=[float(place) for place in record.places])
        for name, team in zip(record.seats, rated, strict=True):
            known[name] = team[0]
    return {name: (float(r.mu), float(r.sigma)) for name, r in known.items()}
