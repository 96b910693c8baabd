"""The gate of a league: a candidate becomes the best if it wins often enough against earlier ones.

Games come in blocks of one start, one line-up and every rotation of the seats, so that neither
luck of the start nor of the seat decides. The measure is the candidate's wins per fair share,
`level`: 1 is what an equal player has in games of any size, 1.2 the post mortem's 30 % of
four-player games. Its interval is a bootstrap over blocks.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snakekit.trainer.contest import Chooser, contest
from snakekit.trainer.generate import Cancelled
from snakekit.trainer.scenario import Scenario
from snakekit.trainer.stats import block_interval

BLOCKS_A_JOB = 64

OnGames = Callable[[int, int], None]
"""Hears how many games of how many have been played."""


def nothing(done: int, total: int) -> None:
    """Hear nothing; a `OnGames`."""


@dataclass(frozen=True)
class GateJob:
    """Blocks of games that are played together; a pure function of this and the players."""

    scenario: Scenario
    seed: int
    rivals: NDArray[np.intp]
    """`[blocks, snakes - 1]`, indices of the other players, counted from 0."""
    max_turns: int

    @property
    def games(self) -> int:
        """Games to play."""
        return len(self.rivals) * self.scenario.snakes


@dataclass(frozen=True)
class Gate:
    """What the candidate did."""

    games: int
    wins: int
    draws: int
    level: float
    """Wins per fair share, 1 for an equal player."""
    low: float
    high: float
    """95 % interval of `level`."""
    needed: float
    turns: float
    """Mean length of the decided games, until the candidate's own end."""

    @property
    def passed(self) -> bool:
        """Whether the candidate is promoted."""
        return self.level > self.needed

    def __str__(self) -> str:
        """Return one line for people."""
        return (
            f"won {self.wins} of {self.games} ({self.wins / max(self.games, 1):.1%}), "
            f"level {self.level:.3f} ({self.low:.3f} to {self.high:.3f}), needed {self.needed:g}"
        )


def draw_rivals(
    count: int, blocks: int, snakes: int, generator: np.random.Generator
) -> NDArray[np.intp]:
    """Return the rivals of each block, `[blocks, snakes - 1]` indices 0..count - 1.

    The last index, the best so far, always plays; the rest are drawn from the others without
    repetition as long as there are enough of them.
    """
    rivals = np.full((blocks, snakes - 1), count - 1, np.intp)
    for row in rivals:
        order = generator.permutation(max(count - 1, 1)) if count > 1 else np.zeros(1, np.intp)
        row[1:] = np.resize(order, snakes - 2)
    return rivals


def gate_jobs(
    scenarios: Sequence[Scenario], games: int, rivals: int, *, seed: int, max_turns: int
) -> list[GateJob]:
    """Return jobs of at least `games` games, by the scenarios' weights, in whole blocks.

    Args:
        scenarios: kinds of games.
        games: how many at least.
        rivals: number of earlier bests, the present one last.
        seed: of the draw and of the games.
        max_turns: limit of a game.
    """
    total = sum(s.weight for s in scenarios)
    jobs = []
    for index, scenario in enumerate(scenarios):
        generator = np.random.default_rng([seed, 11, index])
        blocks = int(np.ceil(games * scenario.weight / total / scenario.snakes))
        drawn = draw_rivals(rivals, blocks, scenario.snakes, generator)
        for start in range(0, blocks, BLOCKS_A_JOB):
            part = drawn[start : start + BLOCKS_A_JOB]
            jobs.append(GateJob(scenario, int(generator.integers(2**31)), part, max_turns))
    return jobs


def play_job(
    job: GateJob, candidate: Chooser, rivals: Sequence[Chooser]
) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """Play a job; return the candidate's results and lengths, `[blocks, rotations]` each.

    Results are 1 won, -1 lost, 2 drawn, 0 cut off.
    """
    results, turns = [], []
    seats = np.column_stack([np.zeros(len(job.rivals), np.intp), job.rivals + 1])
    for rotation in range(job.scenario.snakes):
        found = contest(
            (candidate, *rivals),
            np.roll(seats, rotation, axis=1),
            job.scenario,
            seed=job.seed,
            max_turns=job.max_turns,
        )
        results.append(found.results)
        turns.append(found.turns)
    return np.stack(results, 1), np.stack(turns, 1)


class Counted:
    """Tells a `OnGames` of the jobs that are done, by their numbers in any order."""

    def __init__(self, jobs: Sequence[GateJob], progress: OnGames) -> None:
        """Begin with none."""
        self._games = [job.games for job in jobs]
        self._done, self._progress = 0, progress
        progress(0, sum(self._games))

    def __call__(self, index: int) -> None:
        """Count job `index`."""
        self._done += self._games[index]
        self._progress(self._done, sum(self._games))


def judge(
    jobs: Sequence[GateJob],
    played: Iterable[tuple[NDArray[np.int8], NDArray[np.int64]]],
    needed: float,
) -> Gate:
    """Return the verdict over all jobs; `played` has what `play_job` returned for each."""
    levels, blocks, lengths = [], [], []
    games = wins = draws = count = 0
    for job, (results, turns) in zip(jobs, played, strict=True):
        won = (results == 1).astype(np.float64) * job.scenario.snakes
        levels.append(won.ravel())
        blocks.append(count + np.repeat(np.arange(len(won)), job.scenario.snakes))
        lengths.append(turns[results != 0])
        count += len(won)
        games += won.size
        wins += int((results == 1).sum())
        draws += int((results == 2).sum())
    level, every = np.concatenate(levels), np.concatenate(lengths)
    low, high = block_interval(level, np.concatenate(blocks))
    return Gate(
        games=games,
        wins=wins,
        draws=draws,
        level=float(level.mean()),
        low=low,
        high=high,
        needed=needed,
        turns=float(every.mean()) if len(every) else 0.0,
    )


def run_gate(
    jobs: Sequence[GateJob],
    candidate: Chooser,
    rivals: Sequence[Chooser],
    needed: float,
    *,
    stop: Callable[[], bool] = lambda: False,
    progress: OnGames = nothing,
) -> Gate:
    """Play all jobs here, one after the other.

    Raises:
        Cancelled: `stop()`, asked before each job, was true.
    """
    played, count = [], Counted(jobs, progress)
    for index, job in enumerate(jobs):
        if stop():
            raise Cancelled
        played.append(play_job(job, candidate, rivals))
        count(index)
    return judge(jobs, played, needed)
