"""Kinds of games to train and measure on, written as text such as `11x11x2` or `11x11x4@2:3`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from snakekit import core

PATTERN = r"\d+x\d+x\d+(/[a-z_]+)?(@\d+)?(:\d+(\.\d+)?)?"
"""`WIDTHxHEIGHTxSNAKES`, then `/ruleset` (standard), `@depth` (2) and `:weight` (1) if need be."""


@dataclass(frozen=True)
class Scenario:
    """One kind of game."""

    width: int
    height: int
    snakes: int
    ruleset: str = "standard"
    depth: int = 2
    """Turns that the labelling search looks ahead."""
    weight: float = 1.0
    """Share of the training games, relative to the other scenarios'."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of a board-aligned observation."""
        return self.height, self.width

    def __str__(self) -> str:
        """Return the text without depth and weight."""
        text = f"{self.width}x{self.height}x{self.snakes}"
        return text if self.ruleset == "standard" else f"{text}/{self.ruleset}"

    def settings(self) -> core.Settings:
        """Return the game settings: the engine's defaults under this ruleset."""
        return core.Settings(ruleset=self.ruleset)

    def games(self, count: int, seed: int) -> core.VectorEnv:
        """Start `count` games; observations are made by `encode` when they are wanted."""
        kind = core.Scenario(self.width, self.height, self.snakes, self.settings())
        return core.VectorEnv([kind], count=count, seed=seed, encoder=0)


def parse(text: str) -> Scenario:
    """Read one scenario.

    Raises:
        ValueError: not of the form of `PATTERN`, or a size, ruleset or weight out of range.
    """
    if not re.fullmatch(PATTERN, text):
        raise ValueError(
            f"scenario {text!r}: expected WIDTHxHEIGHTxSNAKES[/ruleset][@depth][:weight]"
        )
    rest, _, weight = text.partition(":")
    rest, _, depth = rest.partition("@")
    rest, _, ruleset = rest.partition("/")
    width, height, snakes = (int(part) for part in rest.split("x"))
    scenario = Scenario(
        width, height, snakes, ruleset or "standard", int(depth or 2), float(weight or 1)
    )
    if not (3 <= width <= 25 and 3 <= height <= 25 and 2 <= snakes <= 8):
        raise ValueError(f"scenario {text!r}: boards are 3x3 to 25x25 with 2 to 8 snakes")
    if scenario.ruleset not in core.RULESETS:
        raise ValueError(f"scenario {text!r}: ruleset is one of {', '.join(core.RULESETS)}")
    if not 1 <= scenario.depth <= 16:
        raise ValueError(f"scenario {text!r}: depth is 1 to 16")
    if scenario.weight <= 0:
        raise ValueError(f"scenario {text!r}: weight must be above 0")
    return scenario


def parse_all(texts: Sequence[str]) -> tuple[Scenario, ...]:
    """Read a list of scenarios; raises ValueError as `parse` does, or when it is empty."""
    if not texts:
        raise ValueError("scenarios: at least one is needed")
    return tuple(parse(text) for text in texts)


def draw(
    scenarios: Sequence[Scenario], count: int, generator: np.random.Generator
) -> list[Scenario]:
    """Draw `count` scenarios by weight, as evenly as whole numbers allow.

    One random offset and equal strides: every scenario appears its expected number of times,
    rounded up or down, so that short rounds do not depend on luck.
    """
    edges = np.cumsum([s.weight for s in scenarios])
    points = (np.arange(count) + generator.random()) * (edges[-1] / count)
    return [scenarios[i] for i in np.searchsorted(edges, points, side="right")]
