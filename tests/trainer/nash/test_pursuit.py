"""The trainer on a tiny game whose equilibrium is known exactly."""

from functools import partial

import numpy as np
import pytest
import torch

from snakekit import core
from snakekit.runtime.oracle import OracleRules
from snakekit.trainer.nash.examples import room
from snakekit.trainer.nash.learner import Learner, evaluator, infer_policy
from snakekit.trainer.nash.net import AllSeatNet
from snakekit.trainer.nash.planning import PlanRecipe, PlanTeacher
from snakekit.trainer.nash.pursuit import HUNTER, RUNNER, Pursuit, nash_values
from snakekit.trainer.nash.selfplay import Recipe, play
from snakekit.trainer.nash.table import GameTable
from snakekit.trainer.replay import Ring

GAME = Pursuit()
SHORT = Pursuit(limit=3)


def trained(
    game: Pursuit,
    rounds: int,
    *,
    trust: float = 0.0,
    seed: int = 0,
    plans: PlanRecipe | None = None,
    limit: int = core.FULL_INFORMATION,
    oracle: bool = True,
) -> AllSeatNet:
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    net = AllSeatNet((1, 1, 1, game.limit), heads=(1, 2), actions=5, channels=32, blocks=2)
    learner = Learner(net, lr=3e-3, steps=rounds * 8, weight_decay=0.0)
    table = GameTable(game, 64, seed=seed, max_turns=100, limit=limit)
    teacher = PlanTeacher(plans, evaluator(net), partial(infer_policy, net)) if oracle else None
    ring = Ring(room(2, 5)(4096, table.shape))
    recipe = Recipe(
        turns=4, iterations=64, explore=0.2, opening_explore=0.2, opening_turns=0, trust=trust
    )
    generator = np.random.default_rng(seed)
    for _ in range(rounds):
        ring.add(play(table, evaluator(net), recipe, generator, teacher=teacher)[0])
        for _ in range(8):
            learner.update(ring.sample(256, generator))
    return net.eval()


def value_errors(net: AllSeatNet, game: Pursuit) -> np.ndarray:
    """Absolute errors of the runner's chance to win, over all states."""
    exact = nash_values(game)
    logits = evaluator(net)(game.features(list(exact)))
    chances = np.exp(logits - logits.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    return np.abs(chances[:, 0] + chances[:, 2] / 2 - np.array(list(exact.values())))


def test_exact_values_are_a_fixed_point_of_mixed_play():
    exact = nash_values(GAME)
    values = np.array(list(exact.values()))
    assert len(values) == 288
    assert ((values > 0.01) & (values < 0.99)).mean() > 0.7
    # With more turns to last the runner can only be worse off.
    assert all(exact[s] <= exact[s._replace(left=s.left - 1)] + 1e-9 for s in exact if s.left > 1)
    for state in list(exact)[::17]:
        assert GAME.outcome(state) is None
        for seat in (RUNNER, HUNTER):
            for action in GAME.candidates(state, seat):
                other = GAME.modify(state, seat, action, np.random.default_rng(0))
                assert other in GAME.candidates(state, seat)
                assert other != action


def test_values_approach_the_equilibrium():
    game = Pursuit(limit=2)
    untrained = value_errors(trained(game, 0), game).mean()
    after = value_errors(trained(game, 16), game).mean()
    assert untrained > 0.2
    assert after < 0.6 * untrained


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("trust", [0.0, 0.5])
def test_values_converge_within_two_hundredths(trust):
    errors = value_errors(trained(GAME, 200, trust=trust), GAME)
    assert errors.mean() < 0.02
    assert np.quantile(errors, 0.9) < 0.05


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_values_converge_with_plans_on_a_tenth_of_the_states():
    rules = OracleRules(pool="local", rounds=14, size=12, bases=4, opponents=4, gain=0.04)
    recipe = PlanRecipe(share=0.1, turns=2, candidates=6, rules=rules)
    errors = value_errors(trained(SHORT, 80, plans=recipe), SHORT)
    assert errors.mean() < 0.02


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_oracle_makes_up_for_actions_that_were_left_out():
    """With at most two actions a seat tried the values are wrong, unless the oracle adds some."""
    blind = value_errors(trained(SHORT, 80, limit=4, oracle=False), SHORT)
    errors = value_errors(trained(SHORT, 140, limit=4), SHORT)
    assert blind.mean() > 0.1
    assert errors.mean() < 0.02
