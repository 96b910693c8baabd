"""Options of `snakekit arena`, and what of them decides the games."""

import argparse
import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from snakekit.bench.arena.store import Plan
from snakekit.bench.game_options import GameOptions
from snakekit.runtime.options import OptionError

DECIDING = (
    "mode", "seed", "width", "height", "ruleset", "map", "food_spawn_chance", "minimum_food",
    "hazard_damage", "shrink_every", "max_turns", "timeout_ms", "temperature",
)  # fmt: skip
"""Options that change games; a resumed arena must have the same."""


class ArenaConfig(GameOptions, frozen=True, kw_only=True):
    """Options of `snakekit arena`."""

    mode: Annotated[
        str,
        Meta(
            pattern="^(duel|four|[2-8])$",
            description="snakes of a game: duel (all pairs in turn), four, or a number 2 to 8",
        ),
    ] = "duel"
    games: Annotated[
        int, Meta(ge=1, le=10_000_000, description="games, rounded up to all rotations of seats")
    ] = 200
    out: Annotated[
        str, Meta(description="folder for games and plan; by default runs/<time>-arena")
    ] = ""
    resume: Annotated[bool, Meta(description="go on with the arena in --out")] = False
    save_games: Annotated[
        bool, Meta(description="keep every game for replay, as the official tool writes")
    ] = False
    json: Annotated[str, Meta(description="file for the figures as JSON")] = ""
    html: Annotated[str, Meta(description="file for a page with plots, self-contained")] = ""
    anchor: Annotated[str, Meta(description="player who has 0 Elo; by default the mean")] = ""
    bootstrap: Annotated[
        int, Meta(ge=100, le=100_000, description="resamples for the intervals")
    ] = 1000
    sprt: Annotated[
        str,
        Meta(description="ELO0,ELO1: stop once it is clear which difference fits two players"),
    ] = ""
    temperature: Annotated[
        float, Meta(ge=0, le=10, description="of policies; 0 always plays the best move")
    ] = 0.0
    backend: Annotated[Literal["cpu", "cuda"], Meta(description="what runs ONNX models")] = "cpu"
    threads: Annotated[
        int, Meta(ge=0, le=256, description="threads; 0: one for each processor")
    ] = 0
    parallel: Annotated[
        int, Meta(ge=1, le=1024, description="games of models side by side in a thread")
    ] = 16
    remote: Annotated[int, Meta(ge=1, le=256, description="games over HTTP at once")] = 1
    max_turns: Annotated[
        int, Meta(ge=0, description="end a game as a draw of the living; 0 means never")
    ] = 1000

    @property
    def size(self) -> int:
        """Snakes of a game."""
        return {"duel": 2, "four": 4}.get(self.mode) or int(self.mode)

    @property
    def lanes(self) -> int:
        """Threads to use."""
        return self.threads or len(os.sched_getaffinity(0))

    def deciding(self) -> dict[str, Any]:
        """Return the options that change games."""
        return {name: getattr(self, name) for name in DECIDING}


def take_over(args: argparse.Namespace, plan: Plan) -> None:
    """Let a resumed arena have the players and options it was begun with, where none are given."""
    for name in DECIDING:
        if getattr(args, name, None) is None and name in plan.options:
            value = plan.options[name]
            setattr(args, name, str(value))
    if not args.players and not args.run_folder:
        args.players = list(plan.players)


def sprt_bounds(text: str) -> tuple[float, float]:
    """Return elo0 and elo1.

    Raises:
        OptionError: not two numbers, the first below the second.
    """
    number = r"[+-]?\d{1,3}(?:\.\d+)?"
    found = re.fullmatch(rf"({number}),({number})", text.replace(" ", ""))
    if not found or float(found[1]) >= float(found[2]):
        raise OptionError(
            "sprt (from --sprt): expected ELO0,ELO1 with the smaller first, as 0,20, "
            f"found {text!r}"
        )
    return float(found[1]), float(found[2])


def check_paths(config: ArenaConfig) -> None:
    """Refuse files that are folders before any game is played.

    Raises:
        OptionError: names the option.
    """
    for name, path in (("json", config.json), ("html", config.html)):
        if path and Path(path).is_dir():
            raise OptionError(f"{name} (from --{name}): expected a file, {path} is a folder")
    if config.out and Path(config.out).is_file():
        raise OptionError(f"out (from --out): expected a folder, {config.out} is a file")
    if config.resume and not config.out:
        raise OptionError("resume: needs the folder of an arena, give --out FOLDER")
