"""Everything that decides what `snakekit train ppo` does."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from snakekit.trainer.league import LeagueRules, check_builtins
from snakekit.trainer.model import CANONICAL, kind_of
from snakekit.trainer.scenario import PATTERN, Scenario, parse_all

Count = Annotated[int, Meta(ge=1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Positive = Annotated[float, Meta(gt=0)]
Text = Annotated[str, Meta(pattern=f"^{PATTERN}$")]

MAY_CHANGE = (
    "iterations",
    "minutes",
    "checkpoint_seconds",
    "keep",
    "measure_every",
    "measure_games",
    "measure_opponents",
    "env_threads",
    "torch_threads",
    "ray_workers",
    "ray_address",
    "learners",
)
"""What a resumed run may have otherwise than before; everything else decides what it learns."""


class PpoConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options of `snakekit train ppo`; names after Schulman et al., arXiv 1707.06347."""

    name: Annotated[
        str, Meta(pattern="^[a-z0-9-]+$", description="name of the run and the model")
    ] = "ppo"
    seed: Annotated[int, Meta(ge=0, lt=2**31, description="of weights, games and batches")] = 0

    net: Annotated[Literal["article", "compact"], Meta(description="architecture")] = "compact"
    channels: Annotated[int, Meta(ge=1, le=512, description="of the compact net")] = 32
    blocks: Annotated[int, Meta(ge=1, le=64, description="of the compact net")] = 2
    hidden: Annotated[int, Meta(ge=1, le=4096, description="of the compact net's readout")] = 64
    scenarios: Annotated[
        tuple[Text, ...], Meta(description="games, WIDTHxHEIGHTxSNAKES[/ruleset][:weight]")
    ] = ("11x11x4",)
    max_turns: Annotated[int, Meta(ge=1, description="a game is cut off there")] = 1000

    iterations: Annotated[int, Meta(ge=1, description="rounds of acting and learning")] = 1000
    minutes: Annotated[float, Meta(ge=0, description="stop after, 0: never")] = 0.0
    envs: Annotated[int, Meta(ge=1, le=65536, description="games side by side")] = 64
    steps: Annotated[int, Meta(ge=1, description="turns of each game an iteration")] = 64
    epochs: Annotated[int, Meta(ge=1, description="times that each batch is learned")] = 3
    minibatches: Annotated[int, Meta(ge=1, description="updates an epoch")] = 16
    micro_batch: Annotated[
        int, Meta(ge=1, description="most decisions in memory at once; no other effect")
    ] = 512
    gamma: Annotated[Share, Meta(description="discount a turn")] = 0.999
    gae_lambda: Annotated[Share, Meta(description="of the advantage estimate")] = 0.95
    clip: Annotated[Positive, Meta(description="of the probability ratio")] = 0.2
    value_clip: Annotated[float, Meta(ge=0, description="of the value's change, 0: none")] = 0.0
    value_weight: Annotated[float, Meta(ge=0, description="of the value's loss")] = 0.5
    entropy: Annotated[float, Meta(ge=0, description="weight of the entropy at first")] = 0.01
    entropy_final: Annotated[float, Meta(ge=0, description="the same at the end")] = 0.01
    grad_norm: Annotated[Positive, Meta(description="gradients are clipped to it")] = 0.5
    lr: Annotated[float, Meta(gt=0, le=1, description="learning rate at first")] = 1e-3
    lr_final: Annotated[float, Meta(ge=0, le=1, description="the same at the end")] = 1e-4
    schedule: Annotated[
        Literal["constant", "linear", "cosine"], Meta(description="from the first to the last")
    ] = "linear"
    adam_eps: Annotated[Positive, Meta(description="of Adam")] = 1e-5
    target_kl: Annotated[float, Meta(ge=0, description="ends the epochs above it, 0: never")] = 0.0
    normalize: Annotated[
        Literal["batch", "minibatch", "none"], Meta(description="advantages, over what")
    ] = "batch"

    mask_moves: Annotated[bool, Meta(description="never play certain death if avoidable")] = True
    symmetry: Annotated[
        Literal["none", "random", "canonical"],
        Meta(description="orientation that a decision is seen in: as it is, any, or facing up"),
    ] = "random"
    draw_reward: Annotated[float, Meta(ge=-1, le=1, description="of a draw")] = -1.0
    kill_bonus: Annotated[
        float, Meta(ge=0, le=1, description="for each snake killed head to head (aggressive)")
    ] = 0.0
    eat_cost: Annotated[float, Meta(ge=0, le=1, description="for eating (short)")] = 0.0

    selfplay_share: Annotated[Share, Meta(description="games with the learner in all seats")] = 0.8
    learner_seats: Annotated[int, Meta(ge=1, le=8, description="its seats in other games")] = 1
    best_share: Annotated[Share, Meta(description="opponents that are the current best")] = 0.8
    league_size: Annotated[int, Meta(ge=1, description="most recent bests drawn from")] = 16
    builtins: Annotated[
        tuple[str, ...],
        Meta(description="other opponents: random, greedy, search1..8, or frozen agents"),
    ] = ()
    builtin_share: Annotated[Share, Meta(description="opponents that are built-in")] = 0.0
    opponent_best_move: Annotated[
        bool, Meta(description="earlier bests play arg max, otherwise they sample")
    ] = False
    gate_every: Annotated[int, Meta(ge=0, description="iterations between gates, 0: none")] = 50
    gate_games: Annotated[int, Meta(ge=1, description="of a gate, in whole blocks")] = 3000
    gate_level: Annotated[
        Positive,
        Meta(description="wins per fair share to be promoted: 1.2 is 30 % of four-player games"),
    ] = 1.2

    measure_every: Annotated[
        int, Meta(ge=0, description="iterations between games of the bare policy, 0: none")
    ] = 0
    measure_games: Annotated[int, Meta(ge=2, description="against each opponent")] = 100
    measure_opponents: Annotated[tuple[str, ...], Meta(description="built-in players")] = (
        "random",
        "greedy",
    )

    device: Annotated[
        str, Meta(pattern=r"^(cpu|cuda(:\d+)?)$", description="cpu, cuda or cuda:N")
    ] = "cpu"
    precision: Annotated[Literal["fp32", "bf16"], Meta(description="of the net's arithmetic")] = (
        "fp32"
    )
    compile: Annotated[bool, Meta(description="torch.compile, on cuda only")] = False
    overlap: Annotated[
        bool, Meta(description="act with the weights of one iteration before, while learning")
    ] = False
    env_threads: Annotated[int, Meta(ge=1, le=256, description="threads of the games")] = 1
    torch_threads: Annotated[int, Meta(ge=0, le=256, description="of torch, 0: a core each")] = 0
    ray_workers: Annotated[int, Meta(ge=0, le=4096, description="Ray actors that play")] = 0
    ray_address: Annotated[
        str, Meta(pattern="^$|:", description="HOST:PORT of a Ray cluster, empty: start one here")
    ] = ""
    learners: Annotated[int, Meta(ge=1, le=256, description="Ray Train workers that learn")] = 1
    checkpoint_seconds: Annotated[float, Meta(ge=0, description="time between checkpoints")] = 120.0
    keep: Annotated[int, Meta(ge=1, description="checkpoints kept")] = 3

    def __post_init__(self) -> None:
        """Check what no single field shows; raises ValueError."""
        parse_all(self.scenarios)
        check_builtins(self.builtins)
        check_builtins(self.measure_opponents)
        if self.builtin_share > 0 and not self.builtins:
            raise ValueError("builtin_share: above 0 needs at least one of builtins")
        if self.envs < max(1, self.ray_workers):
            raise ValueError("envs: expected at least one for each of ray_workers")

    @property
    def games(self) -> tuple[Scenario, ...]:
        """The kinds of games."""
        return parse_all(self.scenarios)

    @property
    def league(self) -> LeagueRules:
        """How opponents are drawn."""
        return LeagueRules(
            best_share=self.best_share,
            size=self.league_size,
            builtins=self.builtins,
            builtin_share=self.builtin_share,
            selfplay_share=self.selfplay_share,
            learner_seats=self.learner_seats,
        )

    def net_options(self) -> dict[str, int]:
        """Return the options that the chosen net knows."""
        options: dict[str, int] = {n: getattr(self, n) for n in kind_of(self.net).options}
        if self.symmetry == "canonical":
            options[CANONICAL] = 1
        return options
