"""Double oracle over plans in training: the generic game, and its targets."""

import itertools

import numpy as np
import pytest

from snakekit import core
from snakekit.runtime.oracle import DoubleOracle, Found, OracleRules, search_together
from snakekit.runtime.plans import PlanGame, propose, starts
from snakekit.trainer.nash.planning import GamePlans, GameWalk, PlanRecipe, PlanTeacher
from snakekit.trainer.nash.pursuit import HUNTER, RUNNER, STEPS, Place, Pursuit, nash_values
from snakekit.trainer.nash.selfplay import Recipe, play
from snakekit.trainer.nash.snakes import SnakeTable
from snakekit.trainer.nash.table import GameTable
from snakekit.trainer.scenario import parse

GAME = Pursuit(cols=4, rows=4)
ROOT = Place((0, 0), (3, 2), 5)
TURNS = 3
VALUES = nash_values(GAME)
RECIPE = Recipe(
    turns=12, iterations=32, explore=0.1, opening_explore=0.3, opening_turns=3, trust=0.8
)


def exact(rows: np.ndarray) -> np.ndarray:
    """Outcome logits that are the exact values of the states shown."""
    chances = []
    for runner, hunter, left in zip(rows[:, 1], rows[:, 2], rows[:, 3], strict=True):
        (ry, rx), (hy, hx) = np.argwhere(runner)[0], np.argwhere(hunter)[0]
        state = Place((int(rx), int(ry)), (int(hx), int(hy)), int(left[0, 0]))
        chances.append([VALUES[state], 1 - VALUES[state], 0])
    return np.log(np.maximum(np.array(chances).reshape(-1, 3), 1e-9)).astype(np.float32)


def on_the_grid(seat: int) -> np.ndarray:
    """All plans of a seat that stay on the grid."""
    found = []
    for plan in itertools.product(range(len(STEPS)), repeat=TURNS):
        x, y = ROOT.runner if seat == RUNNER else ROOT.hunter
        for action in plan:
            x, y = x + STEPS[action][0], y + STEPS[action][1]
            if not (0 <= x < GAME.cols and 0 <= y < GAME.rows):
                break
        else:
            found.append(plan)
    return np.array(found, np.int32)


def worth(joint: np.ndarray) -> np.ndarray:
    game = GamePlans(GAME, ROOT, TURNS)
    return game.values(exact(game.expand(joint)))[1]


def solved(pool: str, seed: int) -> Found:
    """Begin with two plans a seat that the policy likes: both stay where they are."""
    generator = np.random.default_rng(seed)
    walk = GameWalk(GAME, ROOT, 4, TURNS)
    stay = np.tile(np.array([0, 0, 0, 0, 4], np.float32), (4, 2, 1))
    propose([walk], lambda rows: stay[: len(rows)], [generator])
    rules = OracleRules(pool=pool, rounds=30, size=12, gain=0.01)  # type: ignore[arg-type]
    oracle = DoubleOracle(GamePlans(GAME, ROOT, TURNS), starts(walk.plans, rules), rules)
    search_together([oracle], exact, [generator])
    return oracle.found()


def exploitability(found: Found) -> float:
    """What best responses among all plans would gain, added up."""
    total = 0.0
    for seat in (RUNNER, HUNTER):
        own, other = on_the_grid(seat), found.actions[1 - seat]
        joint = np.zeros((len(own), len(other), 2, TURNS), np.int32)
        joint[:, :, seat], joint[:, :, 1 - seat] = own[:, None], other[None]
        gains = worth(joint.reshape(-1, 2, TURNS))[:, seat].reshape(len(own), -1)
        total += float((gains @ found.policy[1 - seat]).max())
    return total - 1


def test_local_modification_finds_plans_that_the_proposals_miss():
    none, local = (np.mean([exploitability(solved(p, s)) for s in range(3)]) for p in MODES)
    assert none > 0.4
    assert local < none / 3
    found = solved("local", 0)
    assert found.added > 0
    assert found.outcome.sum() == pytest.approx(1, abs=1e-4)


MODES = ("none", "local")


def test_modified_plans_are_legal_and_near():
    game = GamePlans(GAME, ROOT, TURNS)
    generator = np.random.default_rng(0)
    plans = game.sample(RUNNER, 40, generator)
    legal = {tuple(plan) for plan in on_the_grid(RUNNER).tolist()}
    assert {tuple(plan) for plan in plans.tolist()} <= legal
    expected = np.full((2, TURNS), 4, np.int32)
    changed = game.modify(RUNNER, plans, expected, generator)
    assert {tuple(plan) for plan in changed.tolist() if -1 not in plan} <= legal
    assert 0.5 < (changed != plans).sum(1).mean() < 2.2


def test_taught_states_get_the_targets_of_plans():
    table = GameTable(GAME, 8, seed=1, max_turns=50)
    solved_once = table.solve(exact(table.expand()), 64)
    recipe = PlanRecipe(share=1.0, turns=2)
    even = np.zeros((200, 2, 5), np.float32)
    teacher = PlanTeacher(recipe, exact, lambda rows: even[: len(rows)])
    taught, figures = teacher.teach(table, solved_once, np.random.default_rng(0))
    assert figures.games == 8
    np.testing.assert_allclose(taught.policy.sum(2), 1, atol=1e-5)
    assert (taught.allowed | ~(taught.policy > 0)).all()
    # Plans of two turns on exact values come near the exact value of the state.
    np.testing.assert_allclose(taught.outcome, solved_once.outcome, atol=0.15)
    assert not np.array_equal(taught.outcome, solved_once.outcome)
    idle = PlanTeacher(None, exact, lambda rows: even[: len(rows)])
    assert idle.teach(table, solved_once, np.random.default_rng(0))[0] is solved_once


def test_cut_games_of_any_kind_are_mended_and_played():
    """Of up to five actions a seat two are tried at first; the oracle adds what pays."""
    tables = [GameTable(GAME, 12, seed=1, max_turns=50, limit=n) for n in (4, 4, 25)]
    even = np.zeros((200, 2, 5), np.float32)
    teacher = PlanTeacher(None, exact, lambda rows: even[: len(rows)])
    few, mended, every = (t.solve(exact(t.expand()), 256) for t in tables)
    assert tables[0].cut().mean() > 0.9
    assert not tables[2].cut().any()
    mended = teacher.teach(tables[1], mended, np.random.default_rng(0))[0]
    error = [np.abs(s.outcome - every.outcome).mean() for s in (few, mended)]
    assert error[0] > 0.03
    assert error[1] < error[0] / 5
    play(tables[1], exact, RECIPE, np.random.default_rng(1), teacher=teacher)


def area(rows: np.ndarray) -> np.ndarray:
    slots = (rows.shape[1] - core.ALL_SEAT_COMMON) // core.ALL_SEAT_BLOCK
    blocks = rows[:, core.ALL_SEAT_COMMON :].reshape(len(rows), slots, -1, *rows.shape[2:])
    score = blocks[:, :, 6].sum((2, 3)) / 15.0
    return np.concatenate((score, np.zeros((len(rows), 1))), 1).astype(np.float32)


@pytest.mark.parametrize(("scenario", "turns"), [("7x7x2", 3), ("7x7x3", 2)])
def test_snakes_are_taught_in_the_same_way_and_repeat(scenario, turns):
    found = []
    for _ in range(2):
        table = SnakeTable(parse(scenario), 6, 3, seed=3, max_turns=60)
        recipe = PlanRecipe(share=0.5, turns=turns)
        teacher = PlanTeacher(recipe, area, lambda rows: np.zeros((len(rows), 3, 4), np.float32))
        found.append(play(table, area, RECIPE, np.random.default_rng(4), teacher=teacher))
    (examples, figures), again = found
    assert figures["plan_games"] > 10
    assert figures["plans_added"] > 0
    np.testing.assert_array_equal(examples.policy, again[0].policy)
    np.testing.assert_array_equal(examples.outcome, again[0].outcome)
    np.testing.assert_allclose(examples.outcome.sum(1), 1, atol=1e-4)


def nash_conv(utility: np.ndarray, policies: list[np.ndarray]) -> float:
    total = 0.0
    for seat, own in enumerate(policies):
        worth = utility[..., seat]
        for other in range(len(policies) - 1, -1, -1):
            if other != seat:
                worth = np.tensordot(worth, policies[other], axes=([other], [0]))
        total += float(worth.max() - worth @ own)
    return total


def test_crowded_boards_leave_less_to_exploit_with_the_oracle():
    """Seven snakes, 3^7 joint moves: cut to 32 and mended, against the 216 likeliest alone."""
    scenario = parse("11x11x7")
    table = SnakeTable(scenario, 6, 7, seed=2, max_turns=60)
    priors = np.zeros((6, 7, 4), np.float32)
    for _ in range(6):
        table.expand()
        table.play(first_candidates(table))
    kept = table.solve(area(table.expand(priors)), 256)
    assert table.cut().all()
    teacher = PlanTeacher(None, area, lambda rows: priors[: len(rows)])
    taught, figures = teacher.teach(table, kept, np.random.default_rng(0))
    assert figures.games == 6
    assert figures.leaves < 6 * 256
    without, with_oracle = [], []
    for game in range(6):
        plans = table.plans(game, 1)
        assert isinstance(plans, PlanGame)
        whole = core.StageGames([plans.state], slots=7, limit=1 << 16)
        moves = [np.flatnonzero(row) for row in whole.candidates[0]]
        index = np.indices([len(m) for m in moves]).reshape(len(moves), -1)
        joint = np.stack([m[i] for m, i in zip(moves, index, strict=True)], 1)[:, :, None]
        utility = plans.values(area(plans.expand(joint)))[1]
        utility = utility.reshape(*(len(m) for m in moves), -1)
        usual = core.StageGames([plans.state], slots=7, priors=priors[:1])
        likeliest = usual.solve(area(usual.encode()))[0][0]
        without.append(nash_conv(utility, [p[m] for p, m in zip(likeliest, moves, strict=True)]))
        mended = taught.policy[game]
        with_oracle.append(nash_conv(utility, [p[m] for p, m in zip(mended, moves, strict=True)]))
    assert np.mean(with_oracle) < 0.01
    assert np.mean(with_oracle) < np.mean(without) / 3


def first_candidates(table: SnakeTable) -> np.ndarray:
    solved_once = table.solve(area(table.expand()), 16)
    return solved_once.policy.argmax(2)
