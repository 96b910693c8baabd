"""An arena in the form of every measurement: figures and records."""

import math
from typing import Any

from snakekit.bench.arena.entrants import Entrant
from snakekit.bench.arena.session import Played
from snakekit.bench.arena.summary import Summary, Tally
from snakekit.bench.protocol import Json
from snakekit.bench.report import Result


def kind_of(entrants: list[Entrant]) -> str:
    """Return the kind that all players have, else `mixed`; the middle of a figure's name."""
    kinds = {entrant.kind for entrant in entrants}
    return kinds.pop() if len(kinds) == 1 else "mixed"


def figures(
    found: Summary, entrants: list[Entrant], played: Played | None, params: dict[str, Any]
) -> list[Result]:
    """Return `arena.<kind>.games_per_min`, ratings, their widest interval, and the cycles."""
    results = []

    def add(name: str, value: float, unit: str, *, higher: bool, samples: int) -> None:
        better = "higher" if higher else "lower"
        results.append(
            Result(
                name=f"arena.{name}",
                value=value,
                unit=unit,
                better=better,  # type: ignore[arg-type]
                samples=samples,
                params=params,
            )
        )

    if played is not None and played.games:
        name = f"{kind_of(entrants)}.games_per_min"
        add(name, played.per_minute, "games/min", higher=True, samples=played.games)
    for rating in found.ratings:
        add(f"{rating.name}.elo", rating.elo, "Elo", higher=True, samples=rating.games)
    widest = max(rating.half_width for rating in found.ratings)
    add("interval_95", widest, "Elo", higher=False, samples=found.games)
    if found.cycles.triples:
        add("cyclicity", found.cycles.cyclicity, "share", higher=False, samples=found.games)
    return results


def records(found: Summary, entrants: list[Entrant]) -> dict[str, Any]:
    """Return everything else, for those who go on computing."""
    scores = found.payoff.scores
    return {
        "players": [_player(found, i, entrants[i]) for i in range(len(entrants))],
        "arena": {
            "games": found.games,
            "blocks": found.blocks,
            "draws": found.draws,
            "cut": found.cut,
            "mean_turns": found.mean_turns,
            "anchor": found.anchor,
        },
        "payoff": {
            "players": found.names,
            "points": [[None if math.isnan(s) else s for s in row] for row in scores.tolist()],
            "games": found.payoff.games.tolist(),
        },
        "cycles": found.cycles,
        "sprt": found.sprt,
    }


def _player(found: Summary, index: int, entrant: Entrant) -> Json:
    rating, tally = found.ratings[index], found.tallies[index]
    mu, sigma = found.opinion[rating.name]
    return {
        "name": rating.name,
        "spec": entrant.spec,
        "elo": rating.elo,
        "elo_95": [rating.low, rating.high],
        "openskill": {"mu": mu, "sigma": sigma},
        **_counts(tally),
    }


def _counts(tally: Tally) -> Json:
    return {
        "games": tally.games,
        "wins": tally.wins,
        "draws": tally.draws,
        "losses": tally.losses,
        "points": tally.mean(tally.points),
        "mean_turns_alive": tally.mean(tally.survived),
        "mean_length": tally.mean(tally.lengths),
        "deaths": dict(tally.deaths),
        "faults": tally.faults,
    }
