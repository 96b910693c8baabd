"""What decides a game, as options that several commands have."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from snakekit.bench.match import GameRules
from snakekit.core import Settings, State

Size = Annotated[int, Meta(ge=3, le=25)]
MapName = Literal[
    "standard",
    "empty",
    "royale",
    "arcade_maze",
    "healing_pools",
    "hz_castle_wall",
    "hz_castle_wall_lg",
    "hz_castle_wall_xl",
    "hz_columns",
    "hz_expand_box",
    "hz_expand_scatter",
    "hz_grow_box",
    "hz_hazard_pits",
    "hz_inner_wall",
    "hz_islands_bridges",
    "hz_islands_bridges_lg",
    "hz_rings",
    "hz_rivers_bridges",
    "hz_rivers_bridges_lg",
    "hz_rivers_bridges_xl",
    "hz_scatter",
    "hz_spiral",
    "sinkholes",
    "snail_mode",
    "solo_maze",
]


class GameOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The board, the rules and the clock of a game."""

    seed: Annotated[int, Meta(ge=0, description="start of all random numbers")] = 1
    timeout_ms: Annotated[
        int, Meta(ge=1, le=60_000, description="longest time for one request, ms")
    ] = 500
    width: Annotated[Size, Meta(description="columns of the board")] = 11
    height: Annotated[Size, Meta(description="rows of the board")] = 11
    ruleset: Annotated[
        Literal["standard", "solo", "royale", "constrictor", "wrapped", "wrapped_constrictor"],
        Meta(description="rules to play by"),
    ] = "standard"
    map: Annotated[
        MapName,
        Meta(description="official map; empty never spawns food, usual for constrictor"),
    ] = "standard"
    food_spawn_chance: Annotated[
        int, Meta(ge=0, le=100, description="chance of new food each turn, %")
    ] = 15
    minimum_food: Annotated[int, Meta(ge=0, le=625, description="food always on the board")] = 1
    hazard_damage: Annotated[
        int, Meta(ge=-1000, le=1000, description="health lost per layer of hazard")
    ] = 14
    shrink_every: Annotated[
        int, Meta(ge=0, le=30_000, description="turns between changes of royale and such maps")
    ] = 25

    def rules(self, snakes: int, *, max_turns: int, pace_ms: int = 0) -> GameRules:
        """Return the rules of games of so many snakes.

        Raises:
            StateError: the board or map has no room for them.
        """
        settings = Settings(
            ruleset=self.ruleset,
            solo=snakes == 1 or self.ruleset == "solo",
            food_spawn_chance=self.food_spawn_chance,
            minimum_food=self.minimum_food,
            hazard_damage=self.hazard_damage,
            shrink_every=self.shrink_every,
            map=self.map,
        )
        # A board without room for the snakes shows here, before any server is troubled.
        State.new_game(self.width, self.height, [str(i) for i in range(snakes)], 0, settings)
        return GameRules(
            width=self.width,
            height=self.height,
            ruleset=self.ruleset,
            map=self.map,
            settings=settings,
            timeout_ms=self.timeout_ms,
            max_turns=max_turns,
            pace_ms=pace_ms,
        )
