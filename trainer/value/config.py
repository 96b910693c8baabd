"""Options of `snakekit train value`."""

from typing import Annotated

import msgspec
from msgspec import Meta

MAY_CHANGE = ("games", "threads", "epochs", "batch", "lr", "scale", "trust")
"""Options that a resumed run may be given anew: none of them decides what a position is."""


class ValueConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that decides what `snakekit train value` makes."""

    teacher: Annotated[
        str,
        Meta(
            min_length=1,
            description="what the labelling searches judge by: shipped, weights, or a file that "
            "this command wrote",
        ),
    ] = "shipped"
    seed: Annotated[int, Meta(ge=0, lt=2**31, description="of games, weights and batches")] = 0
    games: Annotated[int, Meta(ge=20, description="games sampled")] = 6000
    width: Annotated[int, Meta(ge=5, le=25, description="of their boards")] = 11
    height: Annotated[int, Meta(ge=5, le=25, description="of their boards")] = 11
    play_nodes: Annotated[int, Meta(ge=1, description="positions a move of the players")] = 400
    label_nodes: Annotated[int, Meta(ge=1, description="positions a label")] = 5000
    random_percent: Annotated[
        int, Meta(ge=0, le=100, description="moves of the games drawn at random")
    ] = 5
    share: Annotated[int, Meta(ge=1, le=1000, description="turns of a thousand sampled")] = 333
    wander: Annotated[
        int, Meta(ge=0, le=20, description="most random turns from a game to a position")
    ] = 4
    threads: Annotated[int, Meta(ge=1, le=256, description="that sample")] = 2
    epochs: Annotated[int, Meta(ge=1, le=1000, description="passes over the positions")] = 6
    batch: Annotated[int, Meta(ge=16, le=65536, description="positions an update")] = 2048
    lr: Annotated[float, Meta(gt=0, le=1, description="highest learning rate")] = 8e-3
    scale: Annotated[
        float, Meta(gt=0, le=10_000, description="points at which the chance to win is 73 %")
    ] = 600.0
    trust: Annotated[
        float,
        Meta(ge=0, le=1, description="share of the label where the game's result is known too"),
    ] = 0.8
