"""Moves by equilibrium: the game of one turn, of two, or over plans, on a model's outcomes.

All seats' candidate moves are tried jointly, the model judges every successor in one batch, and
regret matching finds what each seat would play if all knew it. Where joint moves are too many a
double oracle adds those that matter. With time left either each successor is replaced by the
equilibrium of its own turn, or the game over plans of a few turns is solved; what is done by the
deadline counts.
"""

import math
import random
import time
from typing import Literal, NamedTuple

import numpy as np

from snakekit import core
from snakekit.runtime.backends import Backend
from snakekit.runtime.contract import DRAW_WORTH, ModelCard
from snakekit.runtime.feed import Evaluation, Expected, Stage
from snakekit.runtime.oracle import DoubleOracle, Floats, OracleRules, Rows, search_together
from snakekit.runtime.plans import (
    CHUNK,
    CROWDED,
    KEPT,
    PlanGame,
    first_moves,
    kept_actions,
    propose,
    slots_of,
    starts,
)

SLACK = 1.3
"""More is begun if so many times its expected duration is left."""
_TINY = 1e-9

Plans = Literal["off", "none", "uniform", "local"]


class Lookahead(NamedTuple):
    """What an equilibrium looks at."""

    plies: int = 1
    """Most turns, 1 or 2."""
    plans: Plans = "off"
    """Off, or where the plans come from: `none` is the policy's own alone."""
    plan_turns: int = 3
    """Length of a plan."""
    candidates: int = 8
    """Plans that the policy draws."""
    rounds: int = 16
    """Looks of the double oracle."""
    iterations: int = 256
    """Of regret matching."""
    draw_worth: float = DRAW_WORTH
    """Of an equal part of a draw; below 1 draws are avoided."""


class Solution(NamedTuple):
    """An equilibrium; lists by slot, the living seats in order."""

    policy: list[list[float]]
    """Four probabilities each."""
    utility: list[float]
    """Chance to win plus an equal part of a draw times its worth."""
    draw: float
    """Chance of a draw."""
    stage: Stage

    @property
    def plies(self) -> int:
        """Turns looked ahead."""
        return self.stage.plies

    @property
    def leaves(self) -> int:
        """Boards that the model judged."""
        return self.stage.leaves

    @property
    def gap(self) -> float:
        """NashConv of the game that was solved."""
        return self.stage.gap


class OutOfTimeError(RuntimeError):
    """The deadline came before even the model's bare policy was there."""


class _Late(Exception):
    """The deadline came within a batch."""


class Equilibrium:
    """Solves boards with one model for all seats. Not for several threads at once."""

    def __init__(
        self, backend: Backend, card: ModelCard, look: Lookahead | None = None, *, plies: int = 1
    ) -> None:
        """Use a model that answers for all seats.

        Args:
            backend: runs it.
            card: the model's.
            look: what to look at; if not given, `plies` turns.
            plies: most turns to look ahead, 1 or 2.

        Raises:
            ValueError: the model answers for one seat.
        """
        self._slots = slots_of(card)
        self._backend = backend
        self._look = look if look is not None else Lookahead(plies=plies)
        self._row_s = 0.0
        self._begun, self._deadline, self._leaves = 0.0, math.inf, 0

    def bare(self, state: core.State) -> Solution:
        """Return the model's own policy and outcome for a board, nothing looked ahead."""
        self._start(math.inf)
        return self._bare(state)

    def solve(self, state: core.State, deadline: float = math.inf) -> Solution:
        """Return the equilibrium of a board's next turn, or more if there is time.

        With one living snake, or without time for all successors, it is the model's bare policy.

        Args:
            state: at most as many living snakes as the model has slots.
            deadline: `time.perf_counter()` by which it has to be done.

        Raises:
            StateError: more snakes.
            OutOfTimeError: not even a bare policy was possible by the deadline.
        """
        self._start(deadline)
        if len(state.living()) < 2:
            return self._bare(state)
        stage = core.StageGames([state], slots=self._slots, kept=KEPT)
        try:
            solution = self._first(state, stage)
        except _Late:
            raise OutOfTimeError("equilibrium: no time for any successor") from None
        try:
            if solution.stage.name != "turn":
                return solution
            if self._look.plans != "off":
                return self._planned(state) or solution
            return self._deeper(state, stage) or solution
        except _Late:
            return solution

    def _start(self, deadline: float) -> None:
        self._begun, self._deadline, self._leaves = time.perf_counter(), deadline, 0

    def _may_ask(self, rows: int) -> bool:
        return time.perf_counter() + SLACK * self._row_s * rows < self._deadline

    def _infer(self, rows: Rows) -> tuple[Floats, Floats]:
        """Ask the model in batches that a cache can hold; raises _Late between two of them."""
        if not len(rows):
            policy = np.zeros((0, self._slots, len(core.MOVES)), np.float32)
            return policy, np.zeros((0, self._slots + 1), np.float32)
        policies, outcomes = [], []
        begun = time.perf_counter()
        for i in range(0, len(rows), CHUNK):
            if i and time.perf_counter() > self._deadline:
                raise _Late
            policy, outcome = self._backend.infer(rows[i : i + CHUNK])
            policies.append(policy)
            outcomes.append(outcome)
            done = min(i + CHUNK, len(rows))
            self._row_s = (time.perf_counter() - begun) / done
        self._leaves += len(rows)
        return np.concatenate(policies), np.concatenate(outcomes)

    def _outcomes(self, rows: Rows) -> Floats:
        return self._infer(rows)[1]

    def _stage(self, name: str, plies: int, gap: float, rounds: int = 0, added: int = 0) -> Stage:
        seconds = time.perf_counter() - self._begun
        return Stage(name, plies, self._leaves, float(gap), rounds, added, seconds)

    def _bare(self, state: core.State) -> Solution:
        policy, outcome = self._infer(core.encode_all([state], slots=self._slots))
        stage = self._stage("policy", 0, 0.0)
        return bare_solution(state, policy[0], outcome[0], stage, self._look.draw_worth)

    def _first(self, state: core.State, stage: core.StageGames) -> Solution:
        """Solve one turn: exactly, by the oracle, or by the bare policy where time is short."""
        if stage.cut[0]:
            return self._crowded(state)
        if not self._may_ask(stage.leaves):
            return self._bare(state)
        found = self._solved(stage, self._outcomes(stage.encode()))
        return self._read(state, found, "turn", 1)

    def _solved(
        self, stage: core.StageGames, outcomes: Floats, *, logits: bool = True
    ) -> tuple[Floats, Floats, Floats, Floats]:
        look = self._look
        return stage.solve(
            outcomes, iterations=look.iterations, logits=logits, draw_worth=look.draw_worth
        )

    def _read(
        self, state: core.State, found: tuple[Floats, ...], name: str, plies: int
    ) -> Solution:
        policy, outcome, utility, gap = (part[0] for part in found)
        living = len(state.living())
        return Solution(
            policy[:living].tolist(),
            utility[:living].tolist(),
            float(outcome[-1]),
            self._stage(name, plies, float(gap)),
        )

    def _deeper(self, state: core.State, stage: core.StageGames) -> Solution | None:
        """Solve the turn after each successor, and this one on their values."""
        if self._look.plies < 2 or not stage.leaves:
            return None
        deeper = stage.deepen()
        if not self._may_ask(deeper.leaves):
            return None
        inner = self._solved(deeper, self._outcomes(deeper.encode()))
        return self._read(state, self._solved(stage, inner[1], logits=False), "turns", 2)

    def _crowded(self, state: core.State) -> Solution:
        """Solve a turn of too many joint moves, beginning with those that the policy likes."""
        policy = self._infer(core.encode_all([state], slots=self._slots))[0]
        stage = core.StageGames([state], slots=self._slots, kept=KEPT, priors=policy)
        rows = zip(policy[0], stage.candidates[0], strict=True)
        oracle = DoubleOracle(
            PlanGame(state, self._slots, 1, draw_worth=self._look.draw_worth),
            kept_actions(rows),
            CROWDED,
        )
        return self._searched(state, oracle, "crowd") or self._bare(state)

    def _planned(self, state: core.State) -> Solution | None:
        look = self._look
        generator = self._generator(state)
        walk = core.PlanWalk(state, count=look.candidates, turns=look.plan_turns, slots=self._slots)
        if not propose([walk], lambda rows: self._infer(rows)[0], [generator], self._may_ask):
            return None
        rules = OracleRules(
            pool="local" if look.plans == "off" else look.plans,
            rounds=look.rounds,
            gain=0.01,
            iterations=look.iterations,
        )
        game = PlanGame(state, self._slots, look.plan_turns, draw_worth=look.draw_worth)
        return self._searched(state, DoubleOracle(game, starts(walk.plans, rules), rules), "plans")

    def _generator(self, state: core.State) -> np.random.Generator:
        # The same board gets the same answer, if it gets the same time.
        return np.random.default_rng(state.hash() % 2**63)

    def _searched(self, state: core.State, oracle: DoubleOracle, name: str) -> Solution | None:
        """Let the oracle look for as long as there is time; None if it found no equilibrium."""
        try:
            search_together([oracle], self._outcomes, [self._generator(state)], self._may_ask)
        except _Late:
            if not oracle.ready:
                raise
        if not oracle.ready:
            return None
        found = oracle.found()
        turns = 1 if name == "crowd" else self._look.plan_turns
        return Solution(
            first_moves(found, len(core.MOVES)).tolist(),
            found.value.tolist(),
            float(found.outcome[-1]),
            self._stage(name, turns, found.gap, found.rounds, found.added),
        )


def _softmax(logits: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    weights = np.exp(logits.astype(np.float64) - logits.max())
    return np.asarray(weights / weights.sum())


def bare_solution(
    state: core.State, policy: Floats, outcome: Floats, stage: Stage, draw_worth: float
) -> Solution:
    """Return what a model's answer for a board, `[slots, 4]` and `[slots + 1]`, says by itself."""
    living = len(state.living())
    chances = _softmax(outcome[[*range(living), -1]])
    utility = chances[:-1] + draw_worth * chances[-1] / living
    moves = [_softmax(row).tolist() for row in policy[:living]]
    return Solution(moves, utility.tolist(), float(chances[-1]), stage)


def own_logits(
    solution: Solution, state: core.State, seat: int, temperature: float, noise: random.Random
) -> Evaluation:
    """Return one seat's part of a solution, in the form of a policy's answer.

    With a temperature above 0 the highest logit is a draw from the policy with exponent
    1 / temperature: Gumbel noise is added to the logarithms.

    Args:
        solution: what was found.
        state: for this board.
        seat: a living seat.
        temperature: 0 for the likeliest move, 1 for the equilibrium's own mixture.
        noise: of the draw.
    """
    slot = state.living().index(seat)
    logits = [math.log(max(p, _TINY)) for p in solution.policy[slot]]
    if temperature > 0:
        draws = [-math.log(max(noise.expovariate(1.0), _TINY)) for _ in logits]
        # A move without probability stays behind all others.
        logits = [
            x / temperature + draw if x > math.log(2 * _TINY) else x * 1e3
            for x, draw in zip(logits, draws, strict=True)
        ]
    parts = zip(state.living(), solution.policy, solution.utility, strict=True)
    return Evaluation(
        logits, 2 * solution.utility[slot] - 1, solution.stage, [Expected(*part) for part in parts]
    )
