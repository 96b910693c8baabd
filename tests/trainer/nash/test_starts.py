"""How a run can begin: by imitating the search, or from a net for fewer snakes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

from snakekit import core
from snakekit.runtime.options import load
from snakekit.trainer import checkpoint as store
from snakekit.trainer.checkpoint import CheckpointError
from snakekit.trainer.nash.config import NashConfig
from snakekit.trainer.nash.learner import answer_all
from snakekit.trainer.nash.lesson import Lesson, search_policy
from snakekit.trainer.nash.selfplay import Recipe, play
from snakekit.trainer.nash.snakes import SnakeTable
from snakekit.trainer.nash.training import Nash
from snakekit.trainer.scenario import parse

DUEL = NashConfig(scenarios=("7x7x2",), channels=8, blocks=1, hidden=8, games=1)
FOUR = msgspec.structs.replace(DUEL, scenarios=("7x7x4",), seed=5)


def shaken(config: NashConfig) -> Nash:
    """A run whose net has random weights everywhere, also in layers that start at zero."""
    run = Nash(config)
    torch.manual_seed(1)
    with torch.no_grad():
        for net in (run.model, run.net):
            for parameter in net.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.3)
    return run


def duels(count: int) -> list[core.State]:
    settings = parse("7x7x2").settings()
    found = [core.State.new_game(7, 7, ["a", "b"], seed, settings) for seed in range(count)]
    for turn in range(4):
        for seed, state in enumerate(found):
            if not state.game_over():
                moves = [core.random_move(state, seat, 9 * seed + turn) for seat in (0, 1)]
                state.advance(moves, seed)
    return [state for state in found if not state.game_over()]


@pytest.mark.parametrize("change", [{}, {"attention": 2}, {"separate": True}])
@pytest.mark.parametrize("snakes", [3, 4])
def test_a_net_for_more_snakes_answers_as_the_one_for_duels(change: dict, snakes: int) -> None:
    duel = shaken(msgspec.structs.replace(DUEL, **change))
    saved = duel.checkpoint()
    more = msgspec.structs.replace(FOUR, scenarios=(f"7x7x{snakes}",), **change)
    wide = Nash(more, saved)
    assert wide.started_from == saved.card.weights_sha256
    boards = duels(12)
    assert len(boards) > 6
    old = answer_all(duel.net, core.encode_all(boards, slots=2))
    new = answer_all(wide.net, core.encode_all(boards, slots=snakes))
    np.testing.assert_allclose(new[0][:, :2], old[0], atol=1e-4)
    np.testing.assert_allclose(new[1][:, [0, 1, snakes]], old[1], atol=1e-4)
    assert (new[1][:, 2:snakes] < -1000).all()


def test_nets_that_differ_in_more_are_refused() -> None:
    saved = Nash(DUEL).checkpoint()
    for change in ({"channels": 16}, {"blocks": 2}, {"separate": True}):
        with pytest.raises(CheckpointError, match="not this run's"):
            Nash(msgspec.structs.replace(FOUR, **change), saved)
    with pytest.raises(CheckpointError, match="not this run's"):
        Nash(DUEL, Nash(FOUR).checkpoint())
    scale = {**saved.weights, "scale": saved.weights["scale"] * 2}
    other = store.Checkpoint(card=saved.card, weights=scale)
    with pytest.raises(CheckpointError, match="another plane scale"):
        Nash(FOUR, other)


def test_lessons_have_the_moves_and_outcomes_of_the_search() -> None:
    table = SnakeTable(parse("5x5x2"), 6, 2, seed=1, max_turns=100)
    lesson = Lesson(table, 60)
    states = list(table.states)
    opinion = np.zeros((6, 3), np.float32)
    solved = lesson.solve(opinion, 1)
    for game, state in enumerate(states):
        for slot in (0, 1):
            wanted = search_policy(state, slot, 60)
            np.testing.assert_array_equal(solved.policy[game, slot], wanted)
            assert solved.allowed[game, slot, wanted.argmax()]
    np.testing.assert_allclose(solved.outcome, 1 / 3, atol=1e-6)
    recipe = Recipe(
        turns=80, iterations=1, explore=0, opening_explore=0, opening_turns=0, trust=1.0
    )
    examples, figures = play(
        lesson, lambda obs: np.zeros((len(obs), 3), np.float32), recipe, np.random.default_rng(0)
    )
    assert figures["games_finished"] > 0
    decided = (examples.outcome == 1).any(1)
    assert decided.mean() > 0.3


def test_four_snakes_are_taught_too_and_a_crowd_shrinks() -> None:
    table = SnakeTable(parse("7x7x4"), 3, 4, seed=1, max_turns=100)
    lesson = Lesson(table, 30)
    alive = [4]
    for _ in range(40):
        solved = lesson.solve(np.zeros((3, 5), np.float32), 1)
        np.testing.assert_allclose(solved.policy.sum(2), solved.seats >= 0, atol=1e-5)
        alive.append(int((solved.seats >= 0).sum(1).min()))
        lesson.play(solved.policy.argmax(2))
    assert min(alive) < 4


def test_a_run_begins_with_lessons_and_repeats() -> None:
    config = NashConfig(
        scenarios=("5x5x2",),
        channels=8,
        blocks=1,
        hidden=8,
        steps=30,
        batch=32,
        games=8,
        turns=8,
        imitate=2,
        imitate_nodes=30,
        pretrain_turns=12,
        replay=1000,
        gate_every=0,
    )
    found = []
    for _ in range(2):
        run = Nash(config)
        with ThreadPoolExecutor(1) as pool:
            figures = [run.round(pool) for _ in range(3)]
        found.append(store.hash_weights(run.weights()))
        assert figures[0]["nash_gap"] == 0  # a lesson
        assert figures[2]["nash_gap"] > 0
        assert figures[0]["leaves_per_position"] == 1
    assert found[0] == found[1]
    with pytest.raises(ValueError, match="imitate: expected 0"):
        NashConfig(against="random", imitate=1)


@pytest.mark.parametrize(
    ("file", "name", "slots"),
    [
        ("nash-duel", "nash-duel", 2),
        ("nash-duel-small", "nash-duel-small", 2),
        ("standard", "standard", 4),
        ("standard-fine", "standard", 8),
    ],
)
def test_the_shipped_configurations_are_valid(file: str, name: str, slots: int) -> None:
    path = Path(__file__).parents[3] / "configs" / f"{file}.toml"
    config = load(NashConfig, None, toml=path, environ={})
    assert (config.name, config.slots) == (name, slots)
