"""What a PPO run shows: figures of an iteration, alarms and plots."""

from collections import Counter

from snakekit import core
from snakekit.trainer.alarms import Falling, Limit, NotFinite, Rule
from snakekit.trainer.ppo.config import PpoConfig
from snakekit.trainer.report import Chart
from snakekit.trainer.scenario import Scenario

SHOWN = (
    ("decisions_per_s", "decisions/s", ",.0f"),
    ("pool_won", "won against pool", ".1%"),
    ("entropy", "entropy", ".3f"),
    ("kl", "KL", ".4f"),
    ("clip_fraction", "clipped", ".1%"),
    ("explained_variance", "explained", ".2f"),
    ("lifetime", "turns alive", ".1f"),
    ("drawn", "draws", ".1%"),
    ("death/wall-collision", "wall", ".1%"),
    ("death/snake-self-collision", "self", ".1%"),
    ("death/snake-collision", "body", ".1%"),
    ("death/head-collision", "head", ".1%"),
    ("death/out-of-health", "hunger", ".1%"),
    ("act_share", "time acting", ".0%"),
    ("env_share", "time in games", ".1%"),
)


def happened(counts: Counter[str]) -> dict[str, float]:
    """Return the figures of what `rollout.py` counted; shares are of seats that ended."""
    ended = max(counts["ended"], 1)
    own, pool = max(counts["own_ended"], 1), max(counts["pool_ended"], 1)
    figures = {
        "decisions": float(counts["decisions"]),
        "seats_ended": float(counts["ended"]),
        "seats_cut": float(counts["cut"]),
        "drawn": (counts["own_drawn"] + counts["pool_drawn"]) / ended,
        "eaten_per_turn": counts["eaten"] / max(counts["decisions"], 1),
        "kills_per_end": counts["kills"] / ended,
        **{
            f"death/{cause}": counts[f"cause/{cause}"] / ended
            for cause in core.CAUSES
            if cause and not cause.startswith("hazard")
        },
    }
    if counts["ended"]:
        figures["lifetime"] = counts["lifetime"] / ended
    if counts["own_ended"]:
        figures["own_drawn"] = counts["own_drawn"] / own
    if counts["pool_ended"]:
        figures["pool_won"] = counts["pool_won"] / pool
        figures["pool_drawn"] = counts["pool_drawn"] / pool
    return figures


def rules() -> list[Rule]:
    """Return what a run is watched for."""
    return [
        NotFinite(),
        Limit("entropy", "entropy collapsed to {} nats", below=0.02, patience=5),
        Limit("drawn", "{} of all ends are draws: collapse into mutual deaths?", above=0.5),
        Limit("kl", "the policy moves by {} nats an iteration: lower lr or epochs", above=0.2),
        Limit("explained_variance", "the value explains {} of the returns", below=-0.5),
        Falling("lifetime", "turns alive fell to {} from {}"),
    ]


def measured(config: PpoConfig) -> list[tuple[str, Scenario, str, str]]:
    """Return what the bare policy is measured in: (key, game, opponent, label) of each figure."""
    games = config.games
    return [
        (
            f"measure/{name}" + (f"/{game}" if len(games) > 1 else ""),
            game,
            name,
            f"{name}, {game}",
        )
        for game in games
        for name in config.measure_opponents
    ]


def charts(config: PpoConfig) -> list[Chart]:
    """Return the plots of the report."""
    return [
        Chart(
            "Bare policy against built-in players",
            "share won",
            tuple((key, label) for key, _, _, label in measured(config)),
        ),
        Chart("Gate: wins per fair share", "level", (("gate_level", "level"),), zero=False),
        Chart(
            "Games against the pool",
            "share",
            (("pool_won", "won"), ("pool_drawn", "drawn"), ("own_drawn", "drawn in self-play")),
        ),
        Chart("Turns alive", "turns", (("lifetime", "turns"),)),
        Chart(
            "Causes of death",
            "share of ends",
            tuple((key, name) for key, name, _ in SHOWN if key.startswith("death/")),
        ),
        Chart("Entropy", "nats", (("entropy", "entropy"),)),
        Chart("Policy change", "nats, share", (("kl", "KL"), ("clip_fraction", "clipped"))),
        Chart("Explained variance", "share", (("explained_variance", "share"),)),
        Chart("Value loss", "squared error / 2", (("value_loss", "value"),)),
        Chart("Gradient norm before clipping", "norm", (("grad_norm", "norm"),)),
        Chart("Speed", "decisions/s", (("decisions_per_s", "decisions/s"),)),
        Chart("Learning rate", "rate", (("lr", "rate"),)),
    ]
