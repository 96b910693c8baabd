"""The result of a match run as tables for the terminal, each at most 80 columns wide."""

import math

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from snakekit.bench.players import Player
from snakekit.bench.protocol import Kind
from snakekit.bench.series import SeriesResult
from snakekit.bench.tally import Outcome, Tally
from snakekit.trainer.stats import wilson

_FAULTS = {
    Kind.TIMEOUT: "time-outs",
    Kind.HTTP_ERROR: "HTTP errors",
    Kind.BAD_ANSWER: "bad answers",
    Kind.ILLEGAL_WORD: "bad words",
}
_SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}


def player_table(title: str, columns: list[str]) -> Table:
    """Return an empty table whose first column is the player, the others right-aligned."""
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    table.add_column("player", no_wrap=True, overflow="ellipsis", max_width=17)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _milliseconds(value: float) -> str:
    if math.isnan(value):
        return "-"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def _fault(value: int) -> Text:
    return Text(str(value), "bold red" if value else "")


def _result_cells(tally: Tally) -> list[str]:
    games, won = tally.games, tally.outcomes[Outcome.WIN]
    counts = [games, won, tally.outcomes[Outcome.LOSS], tally.outcomes[Outcome.DRAW]]
    if games == 0 or tally.outcomes[Outcome.FINISHED]:
        rates = ["-", "-"]
    else:
        low, high = wilson(won, games)
        rates = [f"{100 * won / games:.1f} %", f"{100 * low:.0f}..{100 * high:.0f} %"]
    totals = (tally.turns, tally.final_lengths)
    means = [f"{total / games:.1f}" if games else "-" for total in totals]
    return [*(str(count) for count in counts), *rates, *means]


def results_table(players: list[Player], result: SeriesResult) -> Table:
    """Return who won how often; turns and final length are means over the games."""
    columns = ["games", "won", "lost", "drawn", "win rate", "95 %", "turns", "length"]
    table = player_table("Results", columns)
    for player, tally in zip(players, result.tallies, strict=True):
        table.add_row(player.name, *_result_cells(tally))
    return table


def deaths_table(players: list[Player], result: SeriesResult) -> Table:
    """Return how often each player died of what."""
    causes = sorted({cause for tally in result.tallies for cause in tally.deaths})
    table = player_table("Deaths", [cause.replace("-", "\n") for cause in causes])
    for player, tally in zip(players, result.tallies, strict=True):
        table.add_row(player.name, *(str(tally.deaths[cause]) for cause in causes))
    return table


def answers_table(players: list[Player], result: SeriesResult) -> Table:
    """Return how many moves were asked for and what was wrong with the answers."""
    names = [name.replace(" ", "\n") for name in _FAULTS.values()]
    table = player_table("Moves", ["moves", *names, "illegal\nmoves"])
    for player, tally in zip(players, result.tallies, strict=True):
        faults = (_fault(tally.kinds[kind]) for kind in _FAULTS)
        table.add_row(player.name, str(tally.moves), *faults, _fault(tally.illegal_moves))
    return table


def latency_table(players: list[Player], result: SeriesResult) -> Table:
    """Return how long the answers took; for built-in players, their own thinking time."""
    table = player_table("Latency, ms", [*_SHARES, "measured"])
    for player, tally in zip(players, result.tallies, strict=True):
        values = (_milliseconds(tally.latency(share)) for share in _SHARES.values())
        table.add_row(player.name, *values, "over HTTP" if player.is_http else "in process")
    return table


def summary(players: list[Player], result: SeriesResult) -> RenderableType:
    """Return all tables, a line on the run as a whole and the first fault of each kind."""
    ended = sum(not game.aborted for game in result.games)
    words = "stopped after" if result.stopped else "played"
    parts: list[RenderableType] = [results_table(players, result)]
    if any(tally.deaths for tally in result.tallies):
        parts.append(deaths_table(players, result))
    parts += [answers_table(players, result), latency_table(players, result)]
    for player, tally in zip(players, result.tallies, strict=True):
        for kind, detail in tally.examples.items():
            parts.append(Text(f"{player.name}, first {kind.value}: {detail}", "red"))
    games = "1 game" if ended == 1 else f"{ended} games"
    parts.append(Text(f"{words} {games} in {result.seconds:.1f} s", "dim"))
    return Group(*parts)
