"""Signs that a training run goes wrong, found in its figures."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class Rule(Protocol):
    """One thing to watch; keeps what it needs of the past."""

    def check(self, figures: Mapping[str, float]) -> str:
        """Return a sentence while something is wrong, else nothing; `figures` are the newest."""


@dataclass
class Limit:
    """`key` above or below a limit for `patience` rounds in a row."""

    key: str
    words: str
    """Says what it means; the value is put in for `{}`."""
    above: float = math.inf
    below: float = -math.inf
    patience: int = 3
    rounds: int = 0

    def check(self, figures: Mapping[str, float]) -> str:
        """See `Rule`."""
        value = figures.get(self.key)
        if value is None:
            return ""
        self.rounds = self.rounds + 1 if not self.below <= value <= self.above else 0
        return self.words.format(f"{value:.3g}") if self.rounds >= self.patience else ""


@dataclass
class Falling:
    """The running mean of `key` under `share` of the highest it has had."""

    key: str
    words: str
    """Says what it means; mean and highest mean are put in for `{}`."""
    share: float = 0.5
    memory: float = 0.9
    """Weight of the past in the running mean."""
    least: int = 20
    """Rounds before the first alarm."""
    mean: float = math.nan
    top: float = -math.inf
    rounds: int = 0

    def check(self, figures: Mapping[str, float]) -> str:
        """See `Rule`."""
        value = figures.get(self.key)
        if value is None or not math.isfinite(value):
            return ""
        self.rounds += 1
        known = math.isfinite(self.mean)
        self.mean = self.memory * self.mean + (1 - self.memory) * value if known else value
        if self.rounds < self.least:
            return ""
        self.top = max(self.top, self.mean)
        low = self.mean < self.share * self.top
        return self.words.format(f"{self.mean:.3g}", f"{self.top:.3g}") if low else ""


@dataclass
class NotFinite:
    """Any figure that is no finite number."""

    def check(self, figures: Mapping[str, float]) -> str:
        """See `Rule`."""
        odd = sorted(key for key, value in figures.items() if not math.isfinite(value))
        return f"not a finite number: {', '.join(odd)}" if odd else ""


class Alarms:
    """All rules of a run. An alarm is told when it begins, not again while it lasts."""

    def __init__(self, rules: Sequence[Rule], past: Sequence[Mapping[str, float]] = ()) -> None:
        """Watch by `rules`; `past` holds the figures of a resumed run, which raise no alarm."""
        self._rules = list(rules)
        self._active = [False] * len(self._rules)
        for figures in past:
            self.check({k: math.nan if v is None else v for k, v in figures.items()})

    def check(self, figures: Mapping[str, float]) -> list[str]:
        """Return the alarms that begin with `figures`."""
        begun = []
        for index, rule in enumerate(self._rules):
            words = rule.check(figures)
            if words and not self._active[index]:
                begun.append(words)
            self._active[index] = bool(words)
        return begun
