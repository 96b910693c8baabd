"""What a Nash run shows: figures of a round, alarms and plots."""

from snakekit.trainer.alarms import Limit, NotFinite, Rule
from snakekit.trainer.report import Chart

SHOWN = (
    ("outcome_kl", "outcome", ".4f"),
    ("policy_kl", "policy", ".3f"),
    ("value_loss", "value", ".4f"),
    ("nash_gap", "gap", ".4f"),
    ("turns_per_game", "turns", ".0f"),
    ("draw_share", "drawn", ".1%"),
    ("positions_per_s", "pos/s", ".0f"),
    ("gate_level", "gate", ".2f"),
)
CHARTS = (
    Chart("Outcome above the targets' own entropy", "nats", (("outcome_kl", "outcome"),)),
    Chart("Policy above the targets' own entropy", "nats", (("policy_kl", "policy"),)),
    Chart("Value loss", "squared error", (("value_loss", "value"),)),
    Chart("Entropy of the equilibria", "nats", (("target_entropy", "entropy"),)),
    Chart("NashConv of the solved games", "utility", (("nash_gap", "gap"),)),
    Chart("Gate: wins per fair share", "level", (("gate_level", "level"),), zero=False),
    Chart("Length of games", "turns", (("turns_per_game", "turns"),)),
    Chart("Games drawn", "share", (("draw_share", "drawn"),)),
    Chart("Speed", "positions/s", (("positions_per_s", "positions/s"),)),
    Chart("Learning rate", "rate", (("lr", "rate"),)),
)


def rules() -> list[Rule]:
    """Return what a run is watched for."""
    return [
        NotFinite(),
        Limit("turns_per_game", "games last {} turns: collapse into mutual deaths?", below=6),
        Limit("draw_share", "{} of the games are drawn", above=0.9, patience=30),
        Limit("nash_gap", "the solved games keep a NashConv of {}", above=0.3),
    ]
