"""A match run in the form of every measurement: figures for each player, and records."""

from typing import Any

from snakekit.bench.players import Player
from snakekit.bench.protocol import Json, Kind
from snakekit.bench.report import Result
from snakekit.bench.series import SeriesResult
from snakekit.bench.tally import Outcome, Tally
from snakekit.trainer.stats import wilson


def match_results(
    players: list[Player], result: SeriesResult, params: dict[str, Any]
) -> list[Result]:
    """Return the figures `play.<player>.<what>` of every player; latencies in milliseconds."""
    results: list[Result] = []
    for player, tally in zip(players, result.tallies, strict=True):
        prefix = f"play.{player.name}"
        own = params | {"player": player.spec}
        if tally.games and not tally.outcomes[Outcome.FINISHED]:
            share = tally.outcomes[Outcome.WIN] / tally.games
            results.append(
                Result(
                    name=f"{prefix}.win_rate",
                    value=share,
                    unit="share",
                    better="higher",
                    samples=tally.games,
                    params=own,
                )
            )
        figures = [
            ("latency_p50_ms", tally.latency(0.50), "ms"),
            ("latency_p90_ms", tally.latency(0.90), "ms"),
            ("latency_p99_ms", tally.latency(0.99), "ms"),
            ("latency_max_ms", tally.latency(1.00), "ms"),
            ("timeouts", tally.kinds[Kind.TIMEOUT], "moves"),
            ("faults", tally.faults, "moves"),
        ]
        for name, value, unit in figures:
            results.append(
                Result(
                    name=f"{prefix}.{name}",
                    value=float(value),
                    unit=unit,
                    better="lower",
                    samples=tally.moves,
                    params=own,
                )
            )
    return results


def player_record(player: Player, tally: Tally) -> Json:
    """Return all counts of one player."""
    won, games = tally.outcomes[Outcome.WIN], tally.games
    return {
        "name": player.name,
        "spec": player.spec,
        "version": player.version,
        "games": games,
        "wins": won,
        "losses": tally.outcomes[Outcome.LOSS],
        "draws": tally.outcomes[Outcome.DRAW],
        "win_rate_95": list(wilson(won, games)),
        "mean_turns": tally.turns / games if games else None,
        "mean_length": tally.final_lengths / games if games else None,
        "deaths": dict(tally.deaths),
        "moves": tally.moves,
        "timeouts": tally.kinds[Kind.TIMEOUT],
        "http_errors": tally.kinds[Kind.HTTP_ERROR],
        "bad_answers": tally.kinds[Kind.BAD_ANSWER],
        "illegal_words": tally.kinds[Kind.ILLEGAL_WORD],
        "illegal_moves": tally.illegal_moves,
    }


def game_records(result: SeriesResult) -> list[Json]:
    """Return one line for each game, in the order of their numbers."""
    return [
        {
            "game": game.index,
            "id": game.game_id,
            "turns": game.turns,
            "winner": game.winner,
            "outcomes": game.outcomes,
            "seats": game.seats,
            "aborted": game.aborted,
            "file": game.file,
        }
        for game in sorted(result.games, key=lambda game: game.index)
    ]
