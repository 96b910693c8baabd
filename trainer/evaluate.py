"""How strong a net is: games against built-in players, by arg max over safe moves."""

from dataclasses import dataclass

import numpy as np

from snakekit.trainer.contest import BUILTIN, Chooser, Policy, best_move, contest
from snakekit.trainer.scenario import Scenario
from snakekit.trainer.stats import wilson


@dataclass(frozen=True)
class Score:
    """Results of one player, one game each."""

    wins: int
    losses: int
    draws: int
    unfinished: int
    """Games cut off at the turn limit; they count as draws."""
    turns: float
    """Mean length of the finished games in turns."""

    @property
    def games(self) -> int:
        """Number of games."""
        return self.wins + self.losses + self.draws + self.unfinished

    @property
    def points(self) -> float:
        """Share of wins plus half the draws, 0..1."""
        return (self.wins + 0.5 * (self.draws + self.unfinished)) / max(self.games, 1)

    def interval(self) -> tuple[float, float]:
        """Return the 95 % Wilson interval of the share of wins."""
        return wilson(self.wins, self.games)


def measure(
    policy: Policy,
    encoder: int,
    scenario: Scenario,
    opponent: str,
    *,
    games: int,
    seed: int,
    max_turns: int = 2000,
) -> Score:
    """Return the score of a bare policy, see `measure_player`."""
    player = best_move(policy, encoder)
    return measure_player(player, scenario, opponent, games=games, seed=seed, max_turns=max_turns)


def measure_player(
    player: Chooser,
    scenario: Scenario,
    opponent: str,
    *,
    games: int,
    seed: int,
    max_turns: int = 2000,
) -> Score:
    """Play `games` games of `player` in one seat against `opponent` in all others.

    Seats are balanced: game `g` has the player in seat `g % snakes`. Each game ends for the
    count when the player's own result is known.

    Raises:
        ValueError: an unknown opponent.
    """
    if opponent not in BUILTIN:
        raise ValueError(f"unknown opponent {opponent!r}; known: {', '.join(BUILTIN)}")
    lineup = np.ones((games, scenario.snakes), np.intp)
    lineup[np.arange(games), np.arange(games) % scenario.snakes] = 0
    found = contest((player, BUILTIN[opponent]), lineup, scenario, seed=seed, max_turns=max_turns)
    counts = {value: int((found.results == value).sum()) for value in (1, -1, 2, 0)}
    decided = found.turns[found.results != 0]
    return Score(
        wins=counts[1],
        losses=counts[-1],
        draws=counts[2],
        unfinished=counts[0],
        turns=float(decided.mean()) if len(decided) else 0.0,
    )
