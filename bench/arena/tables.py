"""An arena's result as tables for the terminal."""

import math

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from snakekit.bench.arena.summary import Summary
from snakekit.bench.table import player_table

_MAX_COLUMNS = 10


def ratings_table(found: Summary) -> Table:
    """Return ratings and results, the strongest first."""
    columns = ["Elo", "95 %", "games", "won", "draw", "lost", "points", "turns", "length"]
    table = player_table("Ratings; won, drawn and lost in %", columns)
    for index in found.ranking:
        rating, tally = found.ratings[index], found.tallies[index]
        table.add_row(
            Text(rating.name),
            f"{rating.elo:+.0f}",
            f"{rating.low:+.0f}..{rating.high:+.0f}",
            str(tally.games),
            *(f"{100 * tally.mean(n):.0f}" for n in (tally.wins, tally.draws, tally.losses)),
            f"{tally.mean(tally.points):.3f}",
            f"{tally.mean(tally.survived):.0f}",
            f"{tally.mean(tally.lengths):.1f}",
        )
    return table


def deaths_table(found: Summary) -> Table:
    """Return how often each player died of what, and faults over HTTP if there were any."""
    causes = sorted({cause for tally in found.tallies for cause in tally.deaths})
    faults = any(tally.faults for tally in found.tallies)
    columns = [cause.replace("snake-", "").replace("-", "\n") for cause in causes]
    table = player_table("Deaths", [*columns, "alive", *(["faulty\nmoves"] if faults else [])])
    for index in found.ranking:
        tally = found.tallies[index]
        alive = tally.games - sum(tally.deaths.values())
        cells = [*(tally.deaths[cause] for cause in causes), alive]
        table.add_row(Text(tally.name), *map(str, cells + ([tally.faults] if faults else [])))
    return table


def payoff_table(found: Summary) -> Table:
    """Return the share of points of the row's player against the column's."""
    order = found.ranking[:_MAX_COLUMNS]
    table = player_table("Points of row against column, %", [str(n + 1) for n in range(len(order))])
    scores = found.payoff.scores
    for rank, row in enumerate(order):
        cells = ["·" if row == col else _percent(float(scores[row, col])) for col in order]
        table.add_row(Text(f"{rank + 1} {found.names[row]}"), *cells)
    return table


def _percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{100 * share:.0f}"


def notes(found: Summary) -> list[str]:
    """Return sentences on the arena as a whole."""
    zero = f"{found.anchor} has 0" if found.anchor else "the mean is 0"
    lines = [
        f"{found.games} games in {found.blocks} blocks, {found.draws} drawn, {found.cut} cut off "
        f"by the limit of turns, {found.mean_turns:.0f} turns in the mean; Elo: {zero}"
    ]
    cycles = found.cycles
    if cycles.triples:
        word = "more than" if cycles.significant else "within"
        lines.append(
            f"cycles: {100 * cycles.cyclicity:.1f} % of the payoff is cyclic, {word} noise "
            f"(p = {cycles.p_value:.3f}); {cycles.intransitive} of {cycles.triples} triples "
            f"are intransitive, {cycles.certain} of them beyond doubt"
        )
        lines += [f"cycle: {a} > {b} > {c} > {a}" for a, b, c in cycles.examples[:3]]
    count = len(found.names)
    unmet = (int((found.payoff.games == 0).sum()) - count) // 2
    if unmet:
        lines.append(f"{unmet} of {count * (count - 1) // 2} pairs never met: play more --games")
    if found.blocks < 20:
        lines.append("few blocks: the intervals are rough, and likely too narrow")
    if found.sprt is not None:
        s = found.sprt
        lines.append(
            f"SPRT {s.elo0:g} against {s.elo1:g} Elo: {s.verdict} after {s.blocks} pairs of games, "
            f"LLR {s.llr:+.2f} of ±{s.bound:.2f}, pairs by points 0 to 2: "
            + " ".join(map(str, s.counts))
        )
    return lines


def show(found: Summary) -> RenderableType:
    """Return all tables and notes."""
    parts: list[RenderableType] = [ratings_table(found), deaths_table(found)]
    if len(found.names) > 2:
        parts.append(payoff_table(found))
    if len(found.names) > _MAX_COLUMNS:
        parts.append(Text(f"the best {_MAX_COLUMNS} only; the page has all", "dim"))
    parts += [Text(line) for line in notes(found)]
    return Group(*parts)
