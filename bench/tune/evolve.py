"""The search for weights: CMA-ES (Hansen 2016, arXiv 1604.00772) on noisy results of games.

The method is the package `cma`. Its state is not stored: given the seed it is a function of the
scores told to it, so a resumed run tells it the scores in its log again.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from snakekit.bench.tune.space import Space, Vector

Score = Callable[[int, dict[str, int]], float]
"""Points of weights, 0 to 1, in the games of a generation."""


def strategy(space: Space, *, sigma: float, population: int, seed: int) -> Any:
    """Return a fresh CMA-ES at the origin of `space`."""
    with warnings.catch_warnings():
        # It looks for matplotlib, which nothing here needs.
        warnings.simplefilter("ignore")
        import cma
    options = {"popsize": population, "seed": seed + 1, "verbose": -9}
    return cma.CMAEvolutionStrategy(np.zeros(space.size), sigma, options)


def evolve(
    space: Space, found: Any, score: Score, known: Sequence[Sequence[float]]
) -> Iterator[tuple[list[float], Vector]]:
    """Yield the scores of each generation's candidates and the mean after it, without end.

    Args:
        space: where to look.
        found: the strategy.
        score: plays the games of one candidate.
        known: scores of the first generations, from an earlier run.
    """
    generation = 0
    while True:
        points = found.ask()
        if generation < len(known):
            scores = list(known[generation])
        else:
            scores = [score(generation, space.weights(point)) for point in points]
        found.tell(points, [-s for s in scores])
        yield scores, np.asarray(found.mean)
        generation += 1
