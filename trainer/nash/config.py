"""Options of `snakekit train nash`."""

import dataclasses
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from snakekit.runtime.contract import DRAW_WORTH
from snakekit.trainer.agents import parse_agent
from snakekit.trainer.nash.planning import PlanRecipe
from snakekit.trainer.scenario import PATTERN, parse_all

Text = Annotated[str, Meta(pattern=f"^{PATTERN}$")]
Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=1)]

MAY_CHANGE = ("checkpoint_seconds", "keep", "ray_workers", "ray_address")
"""What a resumed run may have otherwise than before; everything else decides what it learns."""


class NashConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that decides what `snakekit train nash` does."""

    name: Annotated[
        str, Meta(pattern="^[a-z0-9-]+$", description="name of the run and the model")
    ] = "nash"
    seed: Annotated[int, Meta(ge=0, lt=2**31, description="of weights, games and batches")] = 0
    scenarios: Annotated[
        tuple[Text, ...], Meta(description="kinds of games, WIDTHxHEIGHTxSNAKES[/ruleset][:weight]")
    ] = ("11x11x2",)
    channels: Annotated[int, Meta(ge=4, le=256, description="width of the trunk")] = 16
    blocks: Annotated[int, Meta(ge=1, le=32, description="depth of the trunk")] = 2
    hidden: Annotated[int, Meta(ge=8, le=1024, description="width of the readout")] = 48
    attention: Annotated[
        int, Meta(ge=0, le=16, description="heads of a transformer trunk; 0: convolutions")
    ] = 0
    separate: Annotated[bool, Meta(description="policy and outcome have a trunk each")] = False
    steps: Annotated[int, Meta(ge=1, description="parameter updates in all")] = 20000
    batch: Annotated[int, Meta(ge=8, le=65536, description="positions an update")] = 256
    lr: Annotated[float, Meta(gt=0, le=1, description="highest learning rate")] = 1e-3
    warmup: Annotated[int, Meta(ge=0, description="updates until the rate is at its height")] = 100
    weight_decay: Annotated[float, Meta(ge=0, le=1, description="AdamW's")] = 1e-5
    policy_weight: Annotated[float, Meta(ge=0, description="of the policy's loss")] = 1.0
    grad_norm: Annotated[float, Meta(gt=0, description="gradients are clipped to it")] = 1.0
    replay: Annotated[int, Meta(ge=1000, description="positions kept, all boards together")] = (
        100000
    )
    reuse: Annotated[float, Meta(gt=0, le=64, description="positions trained for each played")] = 4
    games: Annotated[int, Meta(ge=1, le=4096, description="games side by side of each kind")] = 64
    turns: Annotated[int, Meta(ge=1, description="turns played in a round")] = 32
    max_turns: Annotated[int, Meta(ge=1, description="a game's limit of turns")] = 500
    iterations: Annotated[int, Meta(ge=1, le=100_000, description="of regret matching")] = 256
    explore: Annotated[Share, Meta(description="chance of a random move, a seat and turn")] = 0.1
    opening_explore: Annotated[Share, Meta(description="the same in a game's first turns")] = 0.3
    opening_turns: Annotated[int, Meta(ge=0, description="how many turns those are")] = 8
    draw_worth: Annotated[
        Share,
        Meta(
            description="worth of an equal part of a draw; 1: duels are zero-sum, and snakes that "
            "know nothing yet run into each other"
        ),
    ] = DRAW_WORTH
    trust: Annotated[
        Share, Meta(description="lambda: share of what followed in the value's target")
    ] = 0.85
    discount: Annotated[
        float, Meta(gt=0, le=1, description="of each turn towards an even chance for all")
    ] = 0.997
    average: Annotated[
        float, Meta(ge=0, lt=1, description="share that the mean of the weights keeps an update")
    ] = 0.998
    plans: Annotated[
        Literal["off", "none", "uniform", "local"],
        Meta(
            description="double oracle over plans on some positions: off, or where new plans come "
            "from; none: only the policy's own"
        ),
    ] = "off"
    plan_share: Annotated[Share, Meta(description="share of the positions")] = 0.1
    plan_turns: Annotated[int, Meta(ge=1, le=16, description="length of a plan")] = 3
    plan_candidates: Annotated[int, Meta(ge=2, le=64, description="plans drawn at first")] = 6
    plan_rounds: Annotated[int, Meta(ge=0, le=1000, description="looks for a better plan")] = 14
    plan_pool: Annotated[int, Meta(ge=1, le=10_000, description="plans tried in a look")] = 12
    plan_gain: Annotated[
        float, Meta(ge=0, le=1, description="a new plan must pay so much more")
    ] = 0.04
    plan_values: Annotated[
        bool, Meta(description="the value learns the outcome over plans, not of one turn")
    ] = True
    pretrain: Annotated[
        int, Meta(ge=0, description="rounds at first with outcomes as targets (lambda 1)")
    ] = 0
    imitate: Annotated[
        int, Meta(ge=0, description="rounds at first that the alpha-beta search plays")
    ] = 0
    imitate_nodes: Annotated[int, Meta(ge=1, description="positions a move of that search")] = 300
    pretrain_turns: Annotated[int, Meta(ge=1, description="turns played in those rounds")] = 200
    gate_every: Annotated[int, Meta(ge=0, description="updates between gates; 0: none")] = 5000
    gate_games: Annotated[int, Meta(ge=2, description="games of a gate")] = 128
    gate_level: Annotated[
        float, Meta(ge=0, description="wins per fair share that a new best needs")
    ] = 1.1
    against: Annotated[
        str, Meta(description="a frozen agent to exploit, as of `train exploit`; none: self-play")
    ] = ""
    ray_workers: Annotated[
        int, Meta(ge=0, le=4096, description="Ray actors that play, 0: this process")
    ] = 0
    ray_address: Annotated[
        str, Meta(pattern="^$|:", description="HOST:PORT of a Ray cluster, empty: start one here")
    ] = ""
    checkpoint_seconds: Annotated[float, Meta(ge=0, description="time between checkpoints")] = 300.0
    keep: Annotated[int, Meta(ge=1, description="checkpoints kept")] = 2

    def __post_init__(self) -> None:
        """Check what no single field shows; raises ValueError."""
        parse_all(self.scenarios)
        if self.against:
            parse_agent(self.against)
        if self.against and self.plans != "off":
            raise ValueError("plans: expected off against a frozen agent")
        if self.against and self.imitate:
            raise ValueError("imitate: expected 0 against a frozen agent")
        if self.games < self.ray_workers:
            raise ValueError("games: expected at least one for each of ray_workers")
        if self.attention and self.channels % self.attention:
            raise ValueError(
                f"attention: expected a divisor of channels {self.channels}, found {self.attention}"
            )

    @property
    def slots(self) -> int:
        """Most snakes of a game."""
        return max(s.snakes for s in parse_all(self.scenarios))

    def plan_recipe(self) -> PlanRecipe | None:
        """Return how games over plans are solved, or None."""
        if self.plans == "off":
            return None
        usual = PlanRecipe()
        rules = dataclasses.replace(
            usual.rules,
            pool=self.plans,
            rounds=self.plan_rounds,
            size=self.plan_pool,
            gain=self.plan_gain,
        )
        return PlanRecipe(
            self.plan_share, self.plan_turns, self.plan_candidates, self.plan_values, rules
        )

    def net_options(self) -> dict[str, int]:
        """Return the options of the all-seat net."""
        return {
            "slots": self.slots,
            "channels": self.channels,
            "blocks": self.blocks,
            "hidden": self.hidden,
            "attention": self.attention,
            "separate": int(self.separate),
        }
