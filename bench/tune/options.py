"""Options of `snakekit bench tune`."""

import os
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

DECIDING = (
    "mode", "terms", "start", "nodes", "starts", "population", "sigma", "seed", "max_turns",
)  # fmt: skip
"""Options that change the search for weights; a resumed run must have the same."""


class TuneConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Options of `snakekit bench tune`."""

    out: Annotated[str, Meta(min_length=1, description="folder for weights, plan and log")]
    resume: Annotated[bool, Meta(description="go on with the run in --out")] = False
    mode: Annotated[Literal["duel", "four"], Meta(description="games, and which table")] = "duel"
    terms: Annotated[
        tuple[str, ...], Meta(description="terms to tune, separated by commas; by default all")
    ] = ()
    start: Annotated[str, Meta(description="file of weights to begin with and to play against")] = (
        ""
    )
    generations: Annotated[int, Meta(ge=0, le=100_000, description="steps of CMA-ES")] = 50
    population: Annotated[int, Meta(ge=4, le=200, description="candidates of a step")] = 10
    starts: Annotated[
        int, Meta(ge=1, le=100_000, description="starts for each candidate, each with all line-ups")
    ] = 30
    nodes: Annotated[int, Meta(ge=1, le=10_000_000, description="nodes of a search")] = 200
    sigma: Annotated[float, Meta(gt=0, le=10, description="size of the first steps")] = 0.2
    validate: Annotated[
        int, Meta(ge=0, le=1_000_000, description="starts of the match of new against old")
    ] = 200
    validate_nodes: Annotated[
        int, Meta(ge=1, le=10_000_000, description="nodes of a search in that match")
    ] = 1000
    max_turns: Annotated[int, Meta(ge=1, le=10_000, description="then a game is a draw")] = 600
    threads: Annotated[
        int, Meta(ge=0, le=256, description="threads; 0: one for each processor")
    ] = 0
    seed: Annotated[int, Meta(ge=0, description="start of all random numbers")] = 1
    json: Annotated[str, Meta(description="file for the figures as JSON")] = ""

    @property
    def snakes(self) -> int:
        """Snakes of a game."""
        return 2 if self.mode == "duel" else 4

    @property
    def table(self) -> str:
        """The table that is tuned."""
        return "duel" if self.mode == "duel" else "many"

    @property
    def lanes(self) -> int:
        """Threads to use."""
        return self.threads or len(os.sched_getaffinity(0))

    def deciding(self) -> dict[str, object]:
        """Return the options that decide which candidates are tried."""
        return {name: getattr(self, name) for name in DECIDING}
