"""What the text of a search player asks for: `search:nodes=2000,mixing=off` and the like."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from snakekit.bench.weights import read_weights
from snakekit.core import LearnedValue, Searcher, SearchResult, State

_OPTIMUM = 0.25
"""Share of a search's limits that suffices for settled moves: matches are many games long."""


class PlanError(ValueError):
    """A text that cannot be understood, or a file in it that cannot be used: one sentence."""


@dataclass(frozen=True)
class SearchPlan:
    """How far a built-in search looks and how; what is 0 does not limit it."""

    budget_us: int = 0
    nodes: int = 0
    depth: int = 64
    table_mb: int = 0
    """0: what fits the limits, and small as there are many games."""
    sample: bool = False
    """Draw the move where turns were solved with mixed strategies, instead of the likeliest."""
    engine: Mapping[str, Any] = field(default_factory=dict)
    """Keywords of `Searcher.search` in place of its defaults."""
    weights: Mapping[str, int] | None = None
    """Of the evaluation, in place of the built-in ones; nothing but them judges unless `learned`
    is given."""
    learned: LearnedValue | None = None
    """Judges duels in place of the shipped value."""
    learned_hash: str = ""

    @property
    def fingerprint(self) -> str:
        """Tells weights apart, whatever file they come from; empty for the built-in ones."""
        if self.weights is None and not self.learned_hash:
            return ""
        parts = (sorted((self.weights or {}).items()), self.learned_hash)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    @property
    def size_mb(self) -> int:
        """Size of a table for one seat of one game, MiB."""
        if self.table_mb:
            return self.table_mb
        if self.budget_us:
            return min(max(self.budget_us // 10_000, 1), 16)
        return min(max(self.nodes // 20_000, 1), 16) if self.nodes else 4

    def searcher(self) -> Searcher:
        """Return a searcher for one seat of one game."""
        return Searcher(self.size_mb, weights=self.weights, learned=self.learned)

    def search(self, searcher: Searcher, state: State, seat: int, key: int) -> SearchResult:
        """Search for a living seat; `key` are random bits, the same whenever a game is repeated."""
        options = {"optimum": _OPTIMUM} | dict(self.engine)
        if self.sample:
            options["sample"] = key & 0xFFFF_FFFF_FFFF_FFFF
        return searcher.search(
            state,
            seat,
            budget_us=self.budget_us,
            max_nodes=self.nodes,
            max_depth=self.depth,
            **options,
        )


@dataclass(frozen=True)
class _Option:
    expected: str
    read: Callable[[str], Any]
    """From a value; ValueError or KeyError where it is not one."""
    place: str = ""
    """Field of a plan; otherwise a keyword of the engine with the option's name."""


def _within(low: float, high: float, scale: int = 1) -> Callable[[str], int]:
    def read(text: str) -> int:
        value = float(text) if scale > 1 else int(text)
        if not low <= value <= high:
            raise ValueError(text)
        return round(value * scale)

    return read


def _share(text: str) -> float:
    if not 0 < (value := float(text)) <= 1:
        raise ValueError(text)
    return value


def _words(*words: str) -> _Option:
    names = {word: word.replace("-", "_") for word in words}
    return _Option(" or ".join([", ".join(words[:-1]), words[-1]]), names.__getitem__)


_SWITCH = _Option("on or off", {"on": True, "off": False}.__getitem__)

_OPTIONS = {
    "ms": _Option("1 to 60000 milliseconds", _within(1, 60_000, 1000), "budget_us"),
    "depth": _Option("1 to 64 turns", _within(1, 64), "depth"),
    "nodes": _Option("1 to 999999999 positions", _within(1, 999_999_999), "nodes"),
    "threads": _Option("1 to 256", _within(1, 256)),
    "table_mb": _Option("1 to 4096", _within(1, 4096), "table_mb"),
    "optimum": _Option("a share above 0 and at most 1", _share),
    "early_stop": _SWITCH,
    "mixing": _words("off", "contested", "always"),
    "mixed_turns": _Option("1 to 8", _within(1, 8)),
    "mixed": _Option(
        "likeliest or sample", {"likeliest": False, "sample": True}.__getitem__, "sample"
    ),
    "opponents": _words("paranoid", "best-reply"),
    "max_n": _SWITCH,
    "draw_score": _Option("-2000 to 2000", _within(-2000, 2000)),
    "far_pruning": _SWITCH,
    "selective": _SWITCH,
    "proof": _words("sound", "article"),
}
"""What may stand in a text, `weights=FILE` and `value=FILE` or `value=off` besides."""
_LIMITS = ("ms", "depth", "nodes")


def parse_plan(text: str) -> SearchPlan:
    """Return what a limit and perhaps more options, separated by commas, ask for.

    A number alone is `ms=`; at least one of `ms`, `depth` and `nodes` must be given.

    Raises:
        PlanError: for anything else, or a file that cannot be used.
    """
    plan: dict[str, Any] = {}
    engine: dict[str, Any] = {}
    seen: set[str] = set()
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals and part[:1].isdigit():
            name, value = "ms", part
        if name in seen:
            raise PlanError(f"{name} is given twice")
        seen.add(name)
        if name == "weights":
            plan["weights"] = _weights(value)
            continue
        if name == "value":
            plan = _learned(value) | plan
            continue
        option, found = _option(name, value)
        if option.place:
            plan[option.place] = found
        else:
            engine[name] = found
    if not seen.intersection(_LIMITS):
        raise PlanError("expected a limit: a number of milliseconds, depth=N or nodes=N")
    return SearchPlan(engine=engine, **plan)


def _option(name: str, value: str) -> tuple[_Option, Any]:
    option = _OPTIONS.get(name)
    if option is None:
        raise PlanError(
            "expected a search as search:MS of 1 to 60000 milliseconds, search:depth=N or "
            "search:nodes=N, with options behind "
            f"commas ({', '.join([*_OPTIONS, 'weights', 'value'])}), found {name!r}"
        )
    try:
        return option, option.read(value)
    except (ValueError, KeyError):
        raise PlanError(f"{name}: expected {option.expected}, found {value!r}") from None


def _weights(path: str) -> dict[str, int]:
    if not path:
        raise PlanError("expected weights=FILE, found no file")
    try:
        return read_weights(Path(path))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise PlanError(f"{path}: {reason}") from None


def _learned(path: str) -> dict[str, Any]:
    if path == "off":
        return {"weights": {}}
    if not path:
        raise PlanError("expected value=FILE or value=off, found no file")
    try:
        data = Path(path).read_bytes()
        return {"learned": LearnedValue(data), "learned_hash": hashlib.sha256(data).hexdigest()}
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise PlanError(f"{path}: {reason}") from None
