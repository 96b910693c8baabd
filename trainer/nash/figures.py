"""What a Nash run shows: figures of a round, alarms and plots."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from snakekit import core
from snakekit.trainer.alarms import Falling, Limit, NotFinite, Rule
from snakekit.trainer.nash.game import Ends, Floats, Solved
from snakekit.trainer.report import Chart

MIXED = 0.9
"""A policy without a move of at least this probability is mixed."""
SHOWN = (
    ("positions_per_s", "positions/s", ",.0f"),
    ("outcome_kl", "outcome", ".4f"),
    ("policy_kl", "policy", ".3f"),
    ("value_error", "value error", ".3f"),
    ("explained_variance", "explained", ".2f"),
    ("nash_gap", "NashConv", ".4f"),
    ("target_entropy", "entropy", ".3f"),
    ("mixed_share", "mixed", ".1%"),
    ("turns_per_game", "turns", ".0f"),
    ("draw_share", "draws", ".1%"),
    ("death/wall-collision", "wall", ".1%"),
    ("death/snake-self-collision", "self", ".1%"),
    ("death/snake-collision", "body", ".1%"),
    ("death/head-collision", "head", ".1%"),
    ("death/out-of-health", "hunger", ".1%"),
    ("gate_level", "gate", ".2f"),
    ("wait_seconds", "waiting, s", ".1f"),
)
CHARTS = (
    Chart(
        "Above the targets' own entropy",
        "nats",
        (("outcome_kl", "outcome"), ("policy_kl", "policy")),
    ),
    Chart("Value loss", "squared error", (("value_loss", "value"),)),
    Chart(
        "Expected chance to win against what followed",
        "absolute error, share",
        (("value_error", "error"), ("explained_variance", "explained variance")),
    ),
    Chart("NashConv of the solved games", "utility", (("nash_gap", "NashConv"),)),
    Chart("Entropy of the equilibria", "nats", (("target_entropy", "entropy"),)),
    Chart(
        "Moves",
        "share",
        (("mixed_share", "mixed equilibria"), ("explored_share", "positions with exploration")),
    ),
    Chart(
        "Gate: wins per fair share",
        "level",
        (("gate_level", "level"), ("gate_low", "95 %, low"), ("gate_high", "95 %, high")),
        zero=False,
    ),
    Chart("Length of games", "turns", (("turns_per_game", "turns"),)),
    Chart("Games drawn", "share", (("draw_share", "drawn"),)),
    Chart(
        "Causes of death",
        "share of deaths",
        tuple((key, name) for key, name, _ in SHOWN if key.startswith("death/")),
    ),
    Chart("Gradient norm before clipping", "norm", (("grad_norm", "norm"),)),
    Chart("Speed", "positions/s", (("positions_per_s", "positions/s"),)),
    Chart(
        "Time of a round",
        "s",
        (
            ("generate_seconds", "playing"),
            ("train_seconds", "learning"),
            ("wait_seconds", "waiting"),
        ),
    ),
    Chart("Learning rate", "rate", (("lr", "rate"),)),
)


def rules() -> list[Rule]:
    """Return what a run is watched for."""
    return [
        NotFinite(),
        Limit("turns_per_game", "games last {} turns: collapse into mutual deaths?", below=6),
        Falling("turns_per_game", "games shrank to {} turns from {}"),
        Limit("draw_share", "{} of the games are drawn", above=0.5, patience=10),
        Limit("nash_gap", "the solved games keep a NashConv of {}", above=0.3),
        Limit(
            "target_entropy", "the equilibria's entropy fell to {} nats", below=1e-3, patience=10
        ),
        Limit("explained_variance", "the value explains {} of the outcomes", below=-0.5),
    ]


def happened(
    solved: Sequence[Solved], ends: Sequence[Ends], explored: NDArray[np.bool_], expected: Floats
) -> dict[str, float]:
    """Return figures of some turns of every game.

    Args:
        solved: the equilibria, by turn.
        ends: what ended, by turn.
        explored: whether any seat explored `[turns, games]`.
        expected: the equilibria's outcomes by seat `[turns, games, seats + 1]`.
    """
    policy = np.concatenate([s.policy for s in solved])
    entropy = -(policy * np.log(np.maximum(policy, 1e-9))).sum(2)
    present = policy.sum(2) > 0.5
    over = np.stack([e.over for e in ends])
    drawn = np.stack([e.outcome[:, -1] for e in ends]) > 0
    finished = max(int(over.sum()), 1)
    deaths: Counter[str] = Counter()
    for end in ends:
        deaths.update(end.deaths)
    causes = [c for c in core.CAUSES if c and not c.startswith("hazard")]
    return {
        "positions": float(len(policy)),
        "games_finished": float(over.sum()),
        "cut_games": float(sum(e.cut.sum() for e in ends)),
        "turns_per_game": over.size / finished,
        "draw_share": float((drawn & over).sum() / finished),
        "nash_gap": float(np.mean([s.gap.mean() for s in solved])),
        "target_entropy": float(entropy[present].mean()),
        "mixed_share": float((policy.max(2)[present] < MIXED).mean()),
        "explored_share": float(explored.mean()),
        **_foresight(expected, ends),
        **{f"death/{c}": deaths[c] / deaths.total() for c in causes if deaths},
    }


def _foresight(expected: Floats, ends: Sequence[Ends]) -> dict[str, float]:
    """Return how well expected chances to win foretell the outcomes, of games that ended."""
    result = np.full((expected.shape[1], expected.shape[2]), np.nan, np.float32)
    final = np.empty_like(expected)
    for turn in range(len(expected) - 1, -1, -1):
        result[ends[turn].cut] = np.nan
        result = np.where(ends[turn].over[:, None], ends[turn].outcome, result)
        final[turn] = result
    known = ~np.isnan(final[..., 0])
    if not known.any():
        return {}
    wins, guess = final[known][:, :-1], expected[known][:, :-1]
    spread = float(wins.var())
    return {
        "value_error": float(np.abs(wins - guess).mean()),
        "explained_variance": 1 - float(((wins - guess) ** 2).mean()) / max(spread, 1e-9),
    }
