"""Double oracle in training: on some states the game over plans of several turns is solved.

What it finds becomes the target there: the first moves of the equilibrium over plans for the
policy, which is how new actions reach the proposals, and its outcome for the value.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple

import numpy as np
from numpy.typing import NDArray

from snakekit.runtime.oracle import DoubleOracle, OracleRules, Plays, Rows, search_together
from snakekit.runtime.plans import CROWDED, first_moves, kept_actions, propose, starts
from snakekit.trainer.nash.game import (
    Action,
    Evaluate,
    Floats,
    SimultaneousGame,
    Solved,
    State,
    Table,
    utilities,
)

Policies = Callable[[NDArray[np.uint8]], Floats]
"""Maps features to policy logits `[N, slots, actions]`."""
FREE = -1
WINDOW = 2
"""Most turns of a plan that a local modification changes."""


@dataclass(frozen=True)
class PlanRecipe:
    """Which games over plans are solved, and how hard."""

    share: float = 0.1
    """Share of the states."""
    turns: int = 3
    """Length of a plan."""
    candidates: int = 6
    """Plans drawn from the policy."""
    values: bool = True
    """The equilibrium's outcome is the value's target; else that of the game of one turn stays."""
    rules: OracleRules = dataclasses.field(
        default_factory=lambda: OracleRules(
            rounds=14, size=12, bases=4, opponents=4, drawn=True, gain=0.04, most=144
        )
    )


class PlanFigures(NamedTuple):
    """What the games over plans of one turn came to, added up."""

    games: int
    added: int
    rounds: int
    leaves: int
    gap: float
    moved: float
    """Probability of first moves that the equilibrium of one turn had not made."""


NO_FIGURES = PlanFigures(0, 0, 0, 0, 0.0, 0.0)


class PlanTeacher:
    """Solves games for a table's states by double oracle, many in common batches.

    Games that were cut for their number of joint actions are solved again as games of one turn in
    which the oracle adds the actions that matter; a share of the others as games over plans.
    """

    def __init__(self, recipe: PlanRecipe | None, evaluate: Evaluate, policies: Policies) -> None:
        """Judge by `evaluate` and propose by `policies`; without a recipe there are no plans."""
        self.recipe, self._evaluate, self.priors = recipe, evaluate, policies

    def teach(
        self, table: Table, solved: Solved, generator: np.random.Generator
    ) -> tuple[Solved, PlanFigures]:
        """Return `solved` with what the oracle finds for some of the states, and figures."""
        cut = table.cut()
        planned: list[int] = []
        if self.recipe is not None:
            wanted = generator.random(table.games) < self.recipe.share
            planned = np.flatnonzero(wanted & ~cut).tolist()
        crowded = np.flatnonzero(cut).tolist()
        chosen = planned + crowded
        if not chosen:
            return solved, NO_FIGURES
        seeds = generator.integers(2**63, size=len(chosen)).tolist()
        generators = [np.random.default_rng(seed) for seed in seeds]
        oracles = self._planned(table, planned, generators)
        oracles += [self._crowded(table, solved, g) for g in crowded]
        search_together(oracles, self._evaluate, generators)
        return self._taken_over(solved, chosen, oracles, cut)

    def _planned(
        self, table: Table, games: Sequence[int], generators: Sequence[np.random.Generator]
    ) -> list[DoubleOracle]:
        recipe = self.recipe
        if recipe is None:
            return []
        walks = [table.walk(g, recipe.turns, recipe.candidates) for g in games]
        propose(walks, self.priors, generators[: len(walks)])
        return [
            DoubleOracle(
                table.plans(g, recipe.turns), starts(walk.plans, recipe.rules), recipe.rules
            )
            for g, walk in zip(games, walks, strict=True)
        ]

    def _crowded(self, table: Table, solved: Solved, number: int) -> DoubleOracle:
        """Begin from what was kept of a cut game."""
        rows = zip(solved.policy[number], solved.allowed[number], strict=True)
        return DoubleOracle(table.plans(number, 1), kept_actions(rows), CROWDED)

    def _taken_over(
        self,
        solved: Solved,
        chosen: Sequence[int],
        oracles: Sequence[DoubleOracle],
        cut: NDArray[np.bool_],
    ) -> tuple[Solved, PlanFigures]:
        policy, allowed = solved.policy.copy(), solved.allowed.copy()
        outcome, gap = solved.outcome.copy(), solved.gap.copy()
        moved = 0.0
        every = [oracle.found() for oracle in oracles]
        for g, found in zip(chosen, every, strict=True):
            moves = first_moves(found, policy.shape[2])
            seats = len(moves)
            moved += float(np.abs(moves - policy[g, :seats]).sum() / (2 * seats))
            policy[g, :seats] = moves
            allowed[g, :seats] |= moves > 0
            if cut[g] or (self.recipe is not None and self.recipe.values):
                outcome[g] = 0
                outcome[g, [*range(seats), -1]] = found.outcome
                gap[g] = found.gap
        figures = PlanFigures(
            len(every),
            sum(f.added for f in every),
            sum(f.rounds for f in every),
            sum(f.leaves for f in every),
            sum(f.gap for f in every),
            moved,
        )
        return Solved(policy, allowed, outcome, gap, solved.seats), figures


def shown(figures: Sequence[PlanFigures]) -> dict[str, float]:
    """Return means over all games over plans, by the names of a training's figures."""
    total = [sum(column) for column in zip(NO_FIGURES, *figures, strict=True)]
    games = max(total[0], 1)
    names = ("plan_games", "plans_added", "plan_rounds", "plan_leaves", "plan_gap", "plan_moved")
    return {
        name: float(x if name == "plan_games" else x / games)
        for name, x in zip(names, total, strict=True)
    }


class GamePlans(Generic[State, Action]):
    """Plans of any `SimultaneousGame` from one state; see `Payoffs`. An action is its place."""

    def __init__(self, game: SimultaneousGame[State, Action], root: State, turns: int) -> None:
        """Play `turns` turns from `root`; chance does not act in between."""
        self.game, self.root, self.turns = game, root, turns
        self.living = list(game.living(root))
        self.seats = len(self.living)
        self._lines: list[tuple[int, Floats | None]] = []
        self._seen: dict[bytes, State] = {b"": root}
        """States by the joint actions so far."""

    def _after(self, line: Plays, turns: int) -> State:
        """Return the state after the first turns of a joint plan, or where the game ended."""
        key = line[:, :turns].tobytes()
        if key not in self._seen:
            before = self._after(line, turns - 1)
            over = self.game.outcome(before) is not None
            self._seen[key] = before if over else self._step(before, line[:, turns - 1])
        return self._seen[key]

    def expand(self, joint: Plays) -> Rows:
        """See `Payoffs`."""
        leaves: list[State] = []
        self._lines = []
        for line in joint:
            state = self._after(line, self.turns)
            end = self.game.outcome(state)
            self._lines.append((-1 if end is not None else len(leaves), end))
            leaves += [state] if end is None else []
        rows = self.game.features(leaves or [self.root])
        return rows[: len(leaves)]

    def values(self, outcomes: Floats) -> tuple[Floats, Floats]:
        """See `Payoffs`."""
        weights = np.exp(outcomes - outcomes.max(1, keepdims=True, initial=-1e9))
        chances = weights / weights.sum(1, keepdims=True)
        found = np.stack([chances[leaf] if end is None else end for leaf, end in self._lines])
        return found, utilities(found, self.seats)

    def sample(self, seat: int, count: int, generator: np.random.Generator) -> Plays:
        """See `Payoffs`: random candidates."""
        free = np.full((count, self.turns), FREE, np.int32)
        expected = np.full((self.seats, self.turns), FREE, np.int32)
        return self._completed(seat, free, expected, generator)

    def modify(
        self, seat: int, plays: Plays, expected: Plays, generator: np.random.Generator
    ) -> Plays:
        """See `Payoffs`: one or two turns' actions give way to near ones, the rest is repaired."""
        changed = plays.copy()
        for row in changed:
            width = 1 + int(generator.integers(min(WINDOW, self.turns)))
            first = int(generator.integers(self.turns - width + 1))
            state, joint = self.root, expected.copy()
            joint[seat] = row
            for turn in range(first + width):
                if self.game.outcome(state) is not None:
                    break
                if turn >= first:
                    own = self._action(state, self.living[seat], int(row[turn]))
                    near = self.game.modify(state, self.living[seat], own, generator)
                    row[turn] = joint[seat, turn] = self.game.place(near)
                state = self._step(state, joint[:, turn])
        return self._completed(seat, changed, expected, generator)

    def _completed(
        self, seat: int, plays: Plays, expected: Plays, generator: np.random.Generator
    ) -> Plays:
        """Replace what is free or no candidate by random candidates."""
        out = plays.copy()
        for row in out:
            state = self.root
            for turn in range(self.turns):
                if self.game.outcome(state) is not None:
                    row[turn:] = FREE
                    break
                own = [self.game.place(a) for a in self.game.candidates(state, self.living[seat])]
                if int(row[turn]) not in own:
                    row[turn] = own[int(generator.integers(len(own)))]
                joint = expected[:, turn].copy()
                joint[seat] = row[turn]
                state = self._step(state, joint)
        return out

    def _action(self, state: State, seat: int, place: int) -> Action:
        """Return the candidate that is nearest to a plan's: itself, or the first one."""
        own = self.game.candidates(state, seat)
        return next((a for a in own if self.game.place(a) == place), own[0])

    def _step(self, state: State, places: NDArray[np.int32]) -> State:
        wanted = dict(zip(self.living, places.tolist(), strict=True))
        acting = self.game.living(state)
        return self.game.step(state, [self._action(state, s, wanted[s]) for s in acting])


class GameWalk(Generic[State, Action]):
    """Plans drawn turn by turn from a policy, for any `SimultaneousGame`; see `Walk`."""

    def __init__(
        self, game: SimultaneousGame[State, Action], root: State, count: int, turns: int
    ) -> None:
        """Draw `count` plans of `turns` turns from `root`."""
        self.game, self.turns = game, turns
        self.living = list(game.living(root))
        self._states = [root] * count
        self._turn = 0
        self.plans: Plays = np.full((len(self.living), count, turns), FREE, np.int32)

    def _going(self) -> list[int]:
        if self._turn == self.turns:
            return []
        return [i for i, s in enumerate(self._states) if self.game.outcome(s) is None]

    @property
    def open(self) -> int:
        """See `Walk`."""
        return len(self._going())

    def encode(self) -> Rows:
        """See `Walk`."""
        return self.game.features([self._states[i] for i in self._going()])

    def step(self, logits: Floats, seed: int) -> None:
        """See `Walk`."""
        generator = np.random.default_rng(seed)
        for row, i in enumerate(self._going()):
            state, joint = self._states[i], []
            for slot, seat in enumerate(self.game.living(state)):
                own = self.game.candidates(state, seat)
                places = [self.game.place(a) for a in own]
                weights = np.exp(logits[row, slot, places] - logits[row, slot, places].max())
                edges = weights.cumsum(dtype=np.float64)
                point = generator.random() * edges[-1]
                drawn = min(int(np.searchsorted(edges, point, side="right")), len(own) - 1)
                joint.append(own[drawn])
                self.plans[self.living.index(seat), i, self._turn] = places[drawn]
            self._states[i] = self.game.step(state, joint)
        self._turn += 1
