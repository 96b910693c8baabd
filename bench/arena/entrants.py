"""Who takes part in an arena: what a player's text means, and the models behind it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

from snakekit.bench.players import PlayerError, parse_search
from snakekit.bench.search_plan import SearchPlan
from snakekit.runtime.equilibrium import Lookahead
from snakekit.runtime.oracle import Pool

Kind = Literal["random", "greedy", "search", "policy", "equilibrium", "plans", "hybrid", "http"]

ALL_SEAT_KINDS = ("equilibrium", "plans")
"""Players that need a model which answers for all seats."""
MAX_ENTRANTS = 64
_NAMED = re.compile(r"([^=:/]+)=(.+)", re.DOTALL)
_SHARE = re.compile(r"0|1|0?\.\d+|1\.0+")
_HEATED = re.compile(r"(.*)@(\d+(?:\.\d+)?)", re.DOTALL)
_PLANNED = re.compile(r"(.*):(none|uniform|local)(?:,turns=([1-9]|1[0-6]))?", re.DOTALL)
_EXPECTED = (
    "expected a URL, random, greedy, search:MS, search:depth=N, search:nodes=N, policy:MODEL, "
    "equilibrium:MODEL[,plies=2][,draw=WORTH][,override=MS|depth=N|nodes=N], "
    "plans:MODEL:none|uniform|local or hybrid:MODEL:MS"
)


@dataclass(frozen=True)
class Entrant:
    """One player, the same through all games."""

    name: str
    spec: str
    kind: Kind
    model: str = ""
    """File or checkpoint folder; empty means the shipped model."""
    plan: SearchPlan | None = None
    """Of search and hybrid, and of equilibria that a search's proofs override."""
    temperature: float | None = None
    """Of policies and equilibria: None takes the arena's, 0 is arg max."""
    look: Lookahead | None = None
    """Of equilibria and plans."""
    url: str = ""

    @property
    def has_model(self) -> bool:
        """Whether it needs a network's answer."""
        return self.kind in ("policy", *ALL_SEAT_KINDS, "hybrid")


def parse_entrant(text: str) -> Entrant:
    """Return the player that `[NAME=]SPEC` describes; no file is opened.

    Raises:
        PlayerError: no such kind of player, or its argument is wrong.
    """
    named = _NAMED.fullmatch(text)
    name, spec = (named[1], named[2]) if named else ("", text)
    if spec.startswith(("http://", "https://")):
        host = spec.split("//", 1)[1].rstrip("/")
        if not host or any(c.isspace() for c in host):
            raise PlayerError(f"player {text}: a URL needs a host, as in http://127.0.0.1:8000")
        return Entrant(name or host, spec, "http", url=spec.rstrip("/"))
    kind, colon, argument = spec.partition(":")
    name = name or spec
    if spec in ("random", "greedy"):
        return Entrant(name, spec, "random" if spec == "random" else "greedy")
    if kind == "search" and colon:
        return Entrant(name, spec, "search", plan=parse_search(argument, spec))
    if kind == "policy" or (kind == "equilibrium" and colon):
        heated = _HEATED.fullmatch(argument)
        model, heat = (heated[1], float(heated[2])) if heated else (argument, None)
        if kind == "policy":
            return Entrant(name, spec, "policy", model=model, temperature=heat)
        return _equilibrium(Entrant(name, spec, "equilibrium", temperature=heat), model)
    if kind == "plans" and colon:
        return _plans(Entrant(name, spec, "plans"), argument)
    if kind == "hybrid" and colon:
        model, colon, budget = argument.rpartition(":")
        return Entrant(name, spec, "hybrid", model=model, plan=parse_search(budget, spec))
    raise PlayerError(f"player {text!r}: {_EXPECTED}")


def _equilibrium(entrant: Entrant, argument: str) -> Entrant:
    model, *options = argument.split(",")
    look, plan = Lookahead(), None
    for option in options:
        key, _, value = option.partition("=")
        if key == "plies" and value in ("1", "2"):
            look = look._replace(plies=int(value))
        elif key == "draw" and _SHARE.fullmatch(value):
            look = look._replace(draw_worth=float(value))
        elif key == "override" and value:
            plan = parse_search(value, entrant.spec)
        else:
            raise PlayerError(
                f"player {entrant.spec}: expected plies=1, plies=2, draw=0..1 or "
                f"override=SEARCH after a comma, found {option!r}"
            )
    return replace(entrant, model=model, look=look, plan=plan)


def _plans(entrant: Entrant, argument: str) -> Entrant:
    found = _PLANNED.fullmatch(argument)
    if found is None:
        raise PlayerError(
            f"player {entrant.spec}: expected plans:MODEL:none, :uniform or :local, with "
            f",turns=N after it or not, found {argument!r}"
        )
    turns = int(found[3] or Lookahead().plan_turns)
    return replace(
        entrant, model=found[1], look=Lookahead(plans=cast(Pool, found[2]), plan_turns=turns)
    )


def parse_entrants(texts: Sequence[str]) -> list[Entrant]:
    """Return the players with distinct names: `#2`, `#3` is added to repeated ones.

    Raises:
        PlayerError: as `parse_entrant`, or fewer than 2 or more than `MAX_ENTRANTS`.
    """
    if not 2 <= len(texts) <= MAX_ENTRANTS:
        raise PlayerError(f"an arena has 2 to {MAX_ENTRANTS} players, found {len(texts)}")
    entrants: list[Entrant] = []
    taken: set[str] = set()
    for text in texts:
        entrant = parse_entrant(text)
        name, count = entrant.name, 1
        while name in taken:
            count += 1
            name = f"{entrant.name}#{count}"
        taken.add(name)
        entrants.append(replace(entrant, name=name))
    return entrants


def run_entrants(folder: Path) -> list[str]:
    """Return a player's text for every checkpoint of a training run, the earliest first.

    Raises:
        PlayerError: not a run folder, or fewer than two checkpoints in it.
    """
    places = [folder / "checkpoints", folder]
    found = next(
        (hits for p in places if (hits := sorted(p.glob("step-*/state.json")))), list[Path]()
    )
    if len(found) < 2:
        raise PlayerError(
            f"run {folder}: expected at least 2 checkpoints in it, found {len(found)}"
        )
    texts = []
    for path in found:
        step = path.parent.name.removeprefix("step-").lstrip("0") or "0"
        texts.append(f"step-{step}=policy:{path.parent}")
    return texts
