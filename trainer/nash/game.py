"""What a game has to offer: its rules (`SimultaneousGame`), and many games at once (`Table`).

Outcomes are probability distributions: a chance to win for each seat (or slot), then that of a
draw. A seat's utility is its chance to win plus an equal part of the draw, so utilities sum to
one. Slots are a state's living seats in order: a network sees slots, a game knows seats.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from snakekit.runtime.oracle import Payoffs
from snakekit.runtime.plans import Walk

Floats = NDArray[np.float32]
State = TypeVar("State")
Action = TypeVar("Action", bound=Hashable)

Evaluate = Callable[[NDArray[np.uint8]], Floats]
"""Maps features `[N, planes, rows, cols]` to outcome logits `[N, slots + 1]`."""


class SimultaneousGame(Protocol[State, Action]):
    """Rules of a game in which all seats act at once; states are values and never change."""

    seats: int
    actions: int
    """Places of the policy head; `place` tells an action's."""

    def start(self, generator: np.random.Generator) -> State:
        """Return a new game."""
        ...

    def living(self, state: State) -> Sequence[int]:
        """Return the seats that act, in order; at least one unless the game is over."""
        ...

    def outcome(self, state: State) -> Floats | None:
        """Return the final outcome `[seats + 1]`, or None while the game goes on."""
        ...

    def candidates(self, state: State, seat: int) -> Sequence[Action]:
        """Return the legal actions of a living seat that are worth a thought; at least one."""
        ...

    def step(self, state: State, joint: Sequence[Action]) -> State:
        """Return the state after one action of each living seat, before chance acts."""
        ...

    def chance(self, state: State, generator: np.random.Generator) -> State:
        """Return `state` after chance has acted; the same state in games without it."""
        ...

    def place(self, action: Action) -> int:
        """Return the action's place in the policy head."""
        ...

    def modify(
        self, state: State, seat: int, action: Action, generator: np.random.Generator
    ) -> Action:
        """Return a legal action that differs a little from `action`."""
        ...

    def features(self, states: Sequence[State]) -> NDArray[np.uint8]:
        """Return what a network sees: `[N, planes, rows, cols]`."""
        ...

    def pack(self, states: Sequence[State]) -> NDArray[np.int64]:
        """Return states as rows of numbers `[N, size]`, to be saved."""
        ...

    def unpack(self, rows: NDArray[np.int64]) -> list[State]:
        """Return the states of such rows; raises ValueError for rows of another game."""
        ...


@dataclass(frozen=True)
class Solved:
    """Equilibria of the games of one turn; arrays by game."""

    policy: Floats
    """`[games, slots, actions]`."""
    allowed: NDArray[np.bool_]
    """`[games, slots, actions]`: the candidates."""
    outcome: Floats
    """`[games, slots + 1]`, expected under the policies."""
    gap: Floats
    """`[games]`, NashConv: what best responses would gain, added up."""
    seats: NDArray[np.int8]
    """`[games, slots]`: the seat in each slot, -1 for none."""
    kept: NDArray[np.bool_] | None = None
    """`[games, slots]`: keeps a policy of its own, so never explores; None where nobody does."""


@dataclass(frozen=True)
class Ends:
    """What a turn ended; a game that ended has started anew."""

    over: NDArray[np.bool_]
    """`[games]`: decided."""
    cut: NDArray[np.bool_]
    """`[games]`: given up at the limit of turns."""
    outcome: Floats
    """`[games, seats + 1]` of those that are over."""
    deaths: Mapping[str, int] = field(default_factory=dict)
    """How many seats died of what, in games that know it."""


class Table(Protocol):
    """Games of one kind played side by side by a trainer. Each turn: expand, solve, play."""

    games: int
    seats: int
    slots: int
    actions: int
    shape: tuple[int, int, int]
    """Planes, rows and columns of features."""

    def features(self) -> NDArray[np.uint8]:
        """Return the games' present states: `[games, planes, rows, cols]`."""
        ...

    def turns(self) -> NDArray[np.int64]:
        """Return how many turns each game has lasted, `[games]`."""
        ...

    def expand(self, priors: Floats | None = None) -> NDArray[np.uint8]:
        """Return the features of all open successors: `[leaves, planes, rows, cols]`.

        Games of too many joint actions are cut to a few, the likeliest by `priors`, policy logits
        `[games, slots, actions]`.
        """
        ...

    def cut(self) -> NDArray[np.bool_]:
        """Return which games the last `expand` cut, `[games]`."""
        ...

    def solve(self, outcomes: Floats, iterations: int) -> Solved:
        """Return the equilibria for the leaves' outcome logits `[leaves, slots + 1]`."""
        ...

    def play(self, actions: NDArray[np.intp]) -> Ends:
        """Play one turn by `actions` `[games, slots]`."""
        ...

    def plans(self, number: int, turns: int) -> Payoffs:
        """Return the game over plans of `turns` turns from one game's present state."""
        ...

    def walk(self, number: int, turns: int, count: int) -> Walk:
        """Return `count` such plans that are to be drawn from a policy."""
        ...

    def pack(self) -> dict[str, NDArray[Any]]:
        """Return all that is needed to go on from here, as named arrays."""
        ...

    def unpack(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Put what `pack` returned back; raises ValueError for another kind of game."""
        ...


def utilities(outcome: Floats, living: int) -> Floats:
    """Return utilities `[..., slots]` of outcomes `[..., slots + 1]` with `living` slots."""
    part = outcome[..., -1:] / np.float32(living)
    found = outcome[..., :-1].copy()
    found[..., :living] += part
    return found
