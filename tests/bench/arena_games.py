"""Made-up games for tests of what is computed from games."""

import itertools
from collections.abc import Sequence

import numpy as np

from snakekit.bench.arena.bout import BoutRecord
from snakekit.bench.arena.schedule import Job, schedule

NAMES = ["a", "b", "c", "d", "e"]


def record(job: Job, places: Sequence[int]) -> BoutRecord:
    return BoutRecord(
        game=job.game,
        block=job.block,
        rotation=job.rotation,
        seed=job.block,
        seats=list(job.seats),
        places=list(places),
        died=[0 if place == 1 else 100 - place for place in places],
        causes=["" if place == 1 else "wall-collision" for place in places],
        lengths=[3] * len(places),
        turns=100,
    )


def games(
    names: Sequence[str],
    elo: Sequence[float],
    *,
    size: int,
    count: int,
    seed: int,
) -> list[BoutRecord]:
    """Games whose order of places is drawn by Plackett-Luce."""
    rng = np.random.default_rng(seed)
    strength = dict(zip(names, elo, strict=True))
    found = []
    for job in schedule(names, size, count, seed):
        noise = rng.gumbel(size=size) * 400 / np.log(10)
        order = np.argsort([-strength[n] - x for n, x in zip(job.seats, noise, strict=True)])
        places = np.empty(size, int)
        places[order] = np.arange(1, size + 1)
        found.append(record(job, places.tolist()))
    return found


def duels(scores: dict[tuple[str, str], int], names: Sequence[str], each: int) -> list[BoutRecord]:
    """`each` duels of every pair, of which the first of the pair wins `scores[pair]`."""
    found = []
    for block, (a, b) in enumerate(itertools.combinations(names, 2)):
        for n in range(each):
            places = [1, 2] if n < scores[a, b] else [2, 1]
            found.append(record(Job(len(found), block * each + n, 0, (a, b)), places))
    return found
