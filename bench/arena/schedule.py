"""Which games an arena plays: blocks of one line-up, one start and every rotation of the seats."""

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from snakekit.bench.match import derive_seed


@dataclass(frozen=True)
class Job:
    """One game to play. The games of a block have the same start and differ only in the seats."""

    game: int
    block: int
    rotation: int
    seats: tuple[str, ...]


def lineups(names: Sequence[str], size: int, seed: int) -> Iterator[tuple[str, ...]]:
    """Yield line-ups of `size` players without end, the same for the same seed.

    Pairs come in rounds that hold every pair once. Larger line-ups are drawn so that everyone
    plays equally often, and as equally often against everyone else as can be.
    """
    rng = random.Random(derive_seed(seed, "lineups", size, *names))
    if size == 2:
        while True:
            pairs = list(itertools.combinations(names, 2))
            rng.shuffle(pairs)
            yield from pairs
    played: Counter[str] = Counter()
    met: Counter[frozenset[str]] = Counter()
    while True:
        chosen: list[str] = []
        while len(chosen) < size:
            rest = [name for name in names if name not in chosen]
            rng.shuffle(rest)
            # Whoever has played least comes first: otherwise counts could drift apart.
            least = min(played[name] for name in rest)
            chosen.append(
                min(
                    (name for name in rest if played[name] == least),
                    key=lambda name: sum(met[frozenset((name, other))] for other in chosen),
                )
            )
        played.update(chosen)
        met.update(frozenset(pair) for pair in itertools.combinations(chosen, 2))
        yield tuple(chosen)


def schedule(names: Sequence[str], size: int, games: int, seed: int) -> list[Job]:
    """Return at least `games` games in whole blocks; a longer schedule begins with a shorter one.

    Args:
        names: the players.
        size: snakes of one game, at most the number of players.
        games: rounded up to whole blocks of `size` games.
        seed: of the draw.
    """
    blocks = -(-games // size)
    jobs = []
    for block, lineup in enumerate(itertools.islice(lineups(names, size, seed), blocks)):
        for rotation in range(size):
            seats = tuple(lineup[(seat + rotation) % size] for seat in range(size))
            jobs.append(Job(block * size + rotation, block, rotation, seats))
    return jobs
