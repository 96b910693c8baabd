"""Players of a match: Battlesnake servers over HTTP, and players built into snakekit."""

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from snakekit.bench.palette import PALETTE
from snakekit.bench.protocol import Customization
from snakekit.bench.search_plan import PlanError, SearchPlan, parse_plan
from snakekit.core import State, greedy_move, random_move

_TURN_STRIDE = 0x9E3779B1
_NAMED = re.compile(r"([^=:/]+)=(.+)", re.DOTALL)


class PlayerError(ValueError):
    """A player that cannot be understood or used; the message is one sentence for the user."""


class Mind(Protocol):
    """A built-in player in one seat of one game; called from worker threads, one at a time."""

    def __call__(self, state: State, seat: int) -> int:
        """Return a move, 0..3, for a living seat."""


@dataclass
class Player:
    """One player of the match, the same through all games.

    Exactly one of `url` and `sit` is set: a server's address without a trailing slash, or a
    function that returns the mind for one game from a seed.
    """

    name: str
    spec: str
    url: str | None = None
    sit: Callable[[int], Mind] | None = None
    looks: Customization = field(default_factory=Customization)
    apiversion: str = ""
    version: str = ""

    @property
    def is_http(self) -> bool:
        """Whether moves are asked for over HTTP."""
        return self.url is not None


def _random(seed: int) -> Mind:
    return lambda state, seat: random_move(state, seat, seed + state.turn * _TURN_STRIDE)


def _greedy(seed: int) -> Mind:
    return lambda state, seat: greedy_move(state, seat, seed + state.turn * _TURN_STRIDE)


def parse_search(text: str, player: str) -> SearchPlan:
    """Return the plan of a search, see `parse_plan`.

    Raises:
        PlayerError: naming `player`.
    """
    try:
        return parse_plan(text)
    except PlanError as error:
        raise PlayerError(f"player {player}: {error}") from None


def _search(plan: SearchPlan) -> Callable[[int], Mind]:
    def sit(seed: int) -> Mind:
        # One table a seat and game: what an earlier game left in it would change the moves.
        searcher = plan.searcher()
        return lambda state, seat: (
            plan.search(searcher, state, seat, seed + state.turn * _TURN_STRIDE).best
        )

    return sit


def _policy_spec(text: str, *, equilibrium: bool = False) -> Callable[[int], Mind]:
    # Loading a model takes a while and needs onnxruntime: only for those who ask for one.
    from snakekit.runtime.backends import BackendError
    from snakekit.runtime.models import find_model
    from snakekit.runtime.policy import Policy

    try:
        path = find_model(text or None)
    except BackendError:
        raise PlayerError(f"player policy:{text}: there is no such model file") from None
    try:
        policy = Policy.load(path)
    except BackendError as error:
        raise PlayerError(f"player policy:{text}: {error}") from None
    if equilibrium and not policy.card.slots:
        raise PlayerError(f"player equilibrium:{text}: the model answers for one seat, not for all")
    lock = threading.Lock()

    def mind(state: State, seat: int) -> int:
        # One model serves all seats and games of this player, and takes one caller at a time.
        with lock:
            return policy.best(state, seat, equilibrium=equilibrium)

    return lambda seed: mind


def parse_player(text: str) -> Player:
    """Return the player that `[NAME=]SPEC` describes.

    SPEC is a URL, `random`, `greedy`, `search:MS`, `search:depth=N`, `search:nodes=N` (all with
    options behind commas if wanted, as in `search:50,mixing=off`, see `parse_plan`),
    `policy:MODEL` (`policy` alone means the shipped model)
    or `equilibrium:MODEL`, for a model that answers for all seats.

    Raises:
        PlayerError: no such kind of player, or its argument is wrong.
    """
    named = _NAMED.fullmatch(text)
    name, spec = (named[1], named[2]) if named else ("", text)
    if spec.startswith(("http://", "https://")):
        host = spec.split("//", 1)[1].rstrip("/")
        if not host or any(c.isspace() for c in host):
            raise PlayerError(f"player {text}: a URL needs a host, as in http://127.0.0.1:8000")
        return Player(name or host, spec, url=spec.rstrip("/"))
    kind, colon, argument = spec.partition(":")
    if kind == "search" and colon:
        sit = _search(parse_search(argument, spec))
    elif kind == "policy":
        sit = _policy_spec(argument)
    elif kind == "equilibrium" and colon:
        sit = _policy_spec(argument, equilibrium=True)
    elif spec == "random":
        sit = _random
    elif spec == "greedy":
        sit = _greedy
    else:
        raise PlayerError(
            f"player {text!r}: expected a URL, random, greedy, search:MS, search:depth=N, "
            "search:nodes=N, policy:MODEL or equilibrium:MODEL"
        )
    return Player(name or spec, spec, sit=sit)


def parse_players(texts: list[str]) -> list[Player]:
    """Return 1 to 8 players with distinct names (`#2`, `#3` is added to repeated ones) and colours.

    Raises:
        PlayerError: as `parse_player`, or too few or too many.
    """
    if not 1 <= len(texts) <= 8:
        raise PlayerError(f"a game has 1 to 8 players, found {len(texts)}")
    players: list[Player] = []
    taken: set[str] = set()
    for index, text in enumerate(texts):
        player = parse_player(text)
        base, count = player.name, 1
        while player.name in taken:
            count += 1
            player.name = f"{base}#{count}"
        taken.add(player.name)
        player.looks = Customization(color=PALETTE[index])
        players.append(player)
    return players


def think(mind: Mind, state: State, seat: int) -> tuple[int, float]:
    """Return the mind's move and the seconds it took; runs in a worker thread."""
    begun = time.perf_counter()
    move = mind(state, seat)
    return move, time.perf_counter() - begun
