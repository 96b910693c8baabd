"""Double oracle: on a game whose whole payoff table is known, and on plans of snakes."""

import itertools
from typing import Any

import msgspec
import numpy as np
import pytest

from snakekit import core
from snakekit.core import Settings, Snake, State
from snakekit.runtime.backends.base import BackendInfo
from snakekit.runtime.backends.random_play import random_card
from snakekit.runtime.contract import ALL_SEATS, DRAW_WORTH
from snakekit.runtime.equilibrium import Equilibrium, Lookahead
from snakekit.runtime.oracle import DoubleOracle, Found, OracleRules, search_together
from snakekit.runtime.plans import PlanGame, propose

CHOICES = 4


class Digits:
    """Actions are six digits, 4,096 in all, or fewer.

    What they are worth depends on neighbouring digits of both sides.

    One digit changes little, so good actions have good neighbours, as in real games.
    """

    seats = 2

    def __init__(self, seed: int, size: int = 6) -> None:
        self.size = size
        rng = np.random.default_rng(seed)
        self.meet = rng.normal(size=(self.size, CHOICES, CHOICES))
        self.own = rng.normal(size=(2, self.size - 1, CHOICES, CHOICES))
        self.all = np.array(list(itertools.product(range(CHOICES), repeat=self.size)), np.int8)

    def expand(self, joint: np.ndarray) -> np.ndarray:
        self.tried = joint
        return np.zeros((0, 1, 1, 1), np.uint8)

    def values(self, outcomes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        utility = self.utility(self.tried)
        return np.concatenate((utility, np.zeros((len(utility), 1))), 1), utility

    def utility(self, joint: np.ndarray) -> np.ndarray:
        a, b = joint[:, 0].astype(int), joint[:, 1].astype(int)
        worth = sum(self.meet[i, a[:, i], b[:, i]] for i in range(self.size))
        for i in range(self.size - 1):
            worth = worth + self.own[0, i, a[:, i], a[:, i + 1]]
            worth = worth - self.own[1, i, b[:, i], b[:, i + 1]]
        chance = 1 / (1 + np.exp(-worth / 3))
        return np.stack((chance, 1 - chance), 1).astype(np.float32)

    def sample(self, seat: int, count: int, generator: np.random.Generator) -> np.ndarray:
        return generator.integers(0, CHOICES, (count, self.size)).astype(np.int8)

    def modify(
        self, seat: int, plays: np.ndarray, expected: np.ndarray, generator: np.random.Generator
    ) -> np.ndarray:
        out = plays.copy()
        for _ in range(2):
            at = generator.integers(0, self.size, len(out))
            out[np.arange(len(out)), at] = generator.integers(0, CHOICES, len(out))
        return out

    def exploitability(self, found: Found) -> float:
        """What best responses among all actions would gain, added up."""
        total = 0.0
        for seat in range(2):
            other = 1 - seat
            plays, chances = found.actions[other], found.policy[other]
            joint = np.zeros((len(self.all), len(plays), 2, self.size), np.int8)
            joint[:, :, seat], joint[:, :, other] = self.all[:, None], plays[None]
            worth = self.utility(joint.reshape(-1, 2, self.size))[:, seat]
            total += float((worth.reshape(len(self.all), -1) @ chances).max())
        return total - 1.0


def solved(seed: int, pool: str, *, length: int = 6, **more: Any) -> tuple[float, Found]:
    game = Digits(seed, length)
    generator = np.random.default_rng(seed)
    start = [game.sample(s, 8, generator) for s in range(2)]
    options = {"rounds": 24, "size": 24, "gain": 0.005, **more}
    rules = OracleRules(pool=pool, **options)  # type: ignore[arg-type]
    found = searched(DoubleOracle(game, start, rules), generator)
    return game.exploitability(found), found


def searched(oracle: DoubleOracle, generator: np.random.Generator) -> Found:
    search_together([oracle], lambda rows: np.zeros((len(rows), 3), np.float32), [generator])
    return oracle.found()


def test_local_changes_beat_random_ones_and_both_beat_none():
    gaps = {p: [solved(seed, p)[0] for seed in range(8)] for p in ("none", "uniform", "local")}
    mean = {pool: float(np.mean(values)) for pool, values in gaps.items()}
    assert mean["local"] < mean["uniform"] < mean["none"]
    assert mean["local"] < mean["none"] / 3


def test_enough_rounds_reach_the_whole_games_value():
    game = Digits(3, 4)
    joint = np.stack(
        [np.repeat(game.all, len(game.all), 0), np.tile(game.all, (len(game.all), 1))], 1
    )
    matrix = game.utility(joint)[:, 0].reshape(len(game.all), -1)
    # The exact value is between what both sides can make sure of.
    gap, found = solved(3, "local", length=4, rounds=60, size=100, bases=20, opponents=64)
    sure = (found.policy[0] @ game_rows(game, found, matrix)).min()
    assert gap < 0.03
    assert sure == pytest.approx(float(found.value[0]), abs=0.03)
    assert found.added > 4


def game_rows(game: Digits, found: Found, matrix: np.ndarray) -> np.ndarray:
    places = [int(np.flatnonzero((game.all == a).all(1))[0]) for a in found.actions[0]]
    return matrix[places]


def test_it_repeats_counts_and_stops():
    first, again = solved(5, "local"), solved(5, "local")
    assert first[0] == again[0]
    assert first[1].evaluations == again[1].evaluations
    none = solved(5, "none")[1]
    assert none.added == 0
    assert none.evaluations == len(none.actions[0]) * len(none.actions[1])
    # With every action among the candidates nothing can be found, and each seat looks once.
    game = Digits(1, 4)
    every = [game.all[:16], game.all[:16]]
    oracle = DoubleOracle(game, every, OracleRules(gain=2.0, rounds=50))
    found = searched(oracle, np.random.default_rng(0))
    assert (found.added, found.rounds) == (0, 4)
    assert found.evaluations <= 16 * 16 + 4 * 32 * 6


CARD = msgspec.structs.replace(
    random_card(), encoder=ALL_SEATS, planes=core.all_seat_planes(4), net_options={"slots": 4}
)


class Roomy:
    """Likes boards where the own area is large; all moves alike."""

    pads = False

    def infer(self, batch: Any) -> Any:
        blocks = batch[:, core.ALL_SEAT_COMMON :].reshape(
            len(batch), 4, core.ALL_SEAT_BLOCK, *batch.shape[2:]
        )
        area = blocks[:, :, 6].sum((2, 3)) / 10.0
        outcome = np.concatenate((area, np.zeros((len(batch), 1))), 1).astype(np.float32)
        return np.zeros((len(batch), 4, 4), np.float32), outcome

    def describe(self) -> BackendInfo:
        return BackendInfo(requested="roomy", actual="roomy", precision="none")

    def close(self) -> None:
        pass


def board(snakes: int) -> State:
    bodies = [[(1, 3), (1, 2), (1, 1)], [(5, 3), (5, 4), (5, 5)], [(3, 6), (2, 6), (1, 6)]]
    return State(7, 7, [Snake(str(i), 90, b) for i, b in enumerate(bodies[:snakes])])


def test_plans_are_legal_and_change_little():
    game = PlanGame(board(2), 4, 5)
    generator = np.random.default_rng(0)
    plans = game.sample(0, 40, generator)
    expected = np.full((2, 5), -1, np.int32)
    changed = game.modify(0, plans, expected, generator)
    assert (changed != plans).any(1).mean() > 0.3
    assert (changed != plans).sum(1).mean() < 3
    for plan in (*plans, *changed):
        alone = State(7, 7, [board(2).snakes()[0]], settings=Settings(ruleset="solo"))
        for move in plan:
            assert alone.safe_mask(0) >> int(move) & 1
            alone.step([int(move)])


def planning(pool: str = "local", turns: int = 4) -> Equilibrium:
    look = Lookahead(plans=pool, plan_turns=turns)  # type: ignore[arg-type]
    return Equilibrium(Roomy(), CARD, look)


@pytest.mark.parametrize("snakes", [2, 3])
def test_plans_answer_for_all_living_seats(snakes):
    state = board(snakes)
    answer = planning(turns=3).solve(state)
    np.testing.assert_allclose(np.sum(answer.policy, 1), 1, atol=1e-5)
    for seat, chances in enumerate(answer.policy):
        assert all(state.safe_mask(seat) >> m & 1 for m in np.flatnonzero(np.array(chances) > 1e-6))
    again = planning(turns=3).solve(state)
    assert answer.policy == again.policy
    assert 1 - sum(answer.utility) == pytest.approx((1 - DRAW_WORTH) * answer.draw, abs=1e-4)
    assert (answer.stage.name, answer.plies) == ("plans", 3)
    assert answer.stage.rounds > 0
    assert planning("none").solve(state).stage.rounds == 0


def test_a_kill_two_turns_away_is_planned():
    """The hunted one is in a corridor; the longer one can close it with its second move."""
    hunted = Snake("a", 90, [(0, 0), (1, 0), (2, 0), (3, 0)])
    hunter = Snake("b", 90, [(1, 3), (1, 4), (1, 5), (2, 5), (3, 5)])
    state = State(7, 7, [hunted, hunter])
    assert planning().solve(state).utility[1] > 0.9


def test_proposals_follow_the_policy():
    def up_if_possible(obs: np.ndarray) -> np.ndarray:
        policy = np.zeros((len(obs), 4, 4), np.float32)
        policy[:, :, 0] = 20
        return policy

    walk = core.PlanWalk(board(2), count=5, turns=3, slots=4)
    assert propose([walk], up_if_possible, [np.random.default_rng(0)])
    assert (walk.plans[0] == 0).all()  # three free squares above
    assert walk.plans[1][:, 0].tolist() != [0] * 5  # its own neck is above
    assert not propose(
        [core.PlanWalk(board(2), count=5, turns=3, slots=4)],
        up_if_possible,
        [np.random.default_rng(0)],
        lambda rows: False,
    )
