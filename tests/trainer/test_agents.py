"""Frozen agents: what their texts mean, and the probabilities of their moves."""

from pathlib import Path

import numpy as np
import pytest

from snakekit import core
from snakekit.trainer import checkpoint as store
from snakekit.trainer.agents import AgentError, open_agent, opponent, parse_agent
from snakekit.trainer.contest import BUILTIN, contest
from snakekit.trainer.nash.config import NashConfig
from snakekit.trainer.nash.players import allowed_moves, best_response
from snakekit.trainer.nash.training import Nash
from snakekit.trainer.scenario import parse

DUEL = parse("7x7x2")


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random net for all seats, in a folder."""
    folder = tmp_path_factory.mktemp("net") / "step-000000000"
    config = NashConfig(scenarios=("7x7x2",), channels=8, blocks=1, hidden=8, games=1)
    store.save(folder, Nash(config).checkpoint())
    return folder


def boards(count: int = 6) -> list[core.State]:
    """Positions some random moves into duels."""
    found = []
    for seed in range(count):
        state = core.State.new_game(7, 7, ["a", "b"], seed, DUEL.settings())
        for turn in range(3 + seed):
            moves = [core.random_move(state, seat, 100 * seed + turn) for seat in (0, 1)]
            state.advance(moves, seed)
            if state.game_over():
                break
        else:
            found.append(state)
    assert len(found) > 2
    return found


def asked(states: list[core.State]) -> tuple[np.ndarray, np.ndarray]:
    """Rows for every seat of every board."""
    board = np.repeat(np.arange(len(states)), 2)
    return board, np.tile([0, 1], len(states))


@pytest.mark.parametrize(
    "form",
    [
        *("random", "greedy", "search:depth=2", "search:nodes=200"),
        *(
            "policy:{}",
            "policy:{}@1",
            "equilibrium:{}",
            "equilibrium:{},draw=0.3@1",
            "hybrid:{}:nodes=50",
        ),
    ],
)
def test_every_agent_has_a_policy_over_moves_that_may_live(form: str, net: Path) -> None:
    agent = open_agent(form.format(net))
    states = boards()
    board, seats = asked(states)
    policy = agent.policies(states, board, seats)
    assert policy.shape == (len(board), 4)
    np.testing.assert_allclose(policy.sum(1), 1, atol=1e-5)
    assert not policy[~allowed_moves(states, board, seats)].any()
    assert ((policy == 1).any(1)).all() == ("@" not in form and form != "random")
    np.testing.assert_array_equal(policy, agent.policies(states, board, seats))


def test_the_player_draws_from_the_policy(net: Path) -> None:
    agent = open_agent(f"policy:{net}@3")
    games = DUEL.games(1, 5)
    rows = np.tile(np.array([[0, 1]], np.int32), (4000, 1))
    moves = agent.chooser(games, rows, 3)
    wanted = agent.policies([games.state(0)], np.array([0]), np.array([1]))[0]
    found = np.bincount(moves, minlength=4) / len(moves)
    np.testing.assert_allclose(found, wanted, atol=0.03)


def test_a_hybrid_is_the_policy_but_for_proofs(net: Path) -> None:
    """A search that sees nothing changes nothing; one that sees further plays its proofs."""
    states = boards()
    board, seats = asked(states)
    bare = open_agent(f"policy:{net}").policies(states, board, seats)
    near = open_agent(f"hybrid:{net}:nodes=1").policies(states, board, seats)
    np.testing.assert_array_equal(bare, near)
    state = core.State.new_game(7, 7, ["a", "b"], 1, DUEL.settings())
    search = open_agent("search:depth=6")
    hybrid = open_agent(f"hybrid:{net}:depth=6")
    one = np.array([0])
    for _ in range(40):
        found = core.Searcher(1).search(state, 0, max_depth=6)
        chosen = hybrid.policies([state], one, one)[0].argmax()
        wanted = open_agent(f"policy:{net}").policies([state], one, one)[0].argmax()
        assert chosen == wanted or "loss" in found.labels or "win" in found.labels
        moves = [
            int(p.policies([state], one, one + s)[0].argmax())
            for s, p in enumerate((hybrid, search))
        ]
        state.advance(moves, 1)
        if state.game_over():
            break


def test_a_best_response_is_no_worse_than_the_equilibrium_for_the_same_values() -> None:
    """Against any fixed policy, on random values, by the definition of a best response."""
    random = np.random.default_rng(0)
    states = boards()
    stage = core.StageGames(states, slots=2)
    outcomes = random.normal(size=(stage.leaves, 3)).astype(np.float32) * 2
    uniform = open_agent("random").policies

    def expected(policy: np.ndarray, seat: int) -> np.ndarray:
        fixed = np.full((len(states), 2, 4), np.nan, np.float32)
        rows = np.arange(len(states))
        fixed[:, seat] = policy
        fixed[:, 1 - seat] = uniform(states, rows, np.full(len(states), 1 - seat))
        return np.asarray(stage.solve(outcomes, fixed=fixed)[2][:, seat])

    mixed = stage.solve(outcomes)[0]
    for seat in (0, 1):
        rows = np.arange(len(states))
        best = best_response(lambda obs: outcomes[: len(obs)], 2, uniform)
        response = best(states, rows, np.full(len(states), seat))
        assert (expected(response, seat) >= expected(mixed[:, seat], seat) - 1e-4).all()
        assert (response.max(1) == 1).all()


def test_fixed_policies_are_kept_and_nobody_else_could_gain() -> None:
    states = boards()
    stage = core.StageGames(states, slots=2)
    outcomes = np.random.default_rng(1).normal(size=(stage.leaves, 3)).astype(np.float32)
    fixed = np.full((len(states), 2, 4), np.nan, np.float32)
    fixed[:, 1] = np.where(stage.candidates[:, 1], 0.5, 7.0)  # what takes no part does not count
    policy, outcome, value, gap = stage.solve(outcomes, fixed=fixed, iterations=2000)
    kept = stage.candidates[:, 1] / stage.candidates[:, 1].sum(1, keepdims=True)
    np.testing.assert_allclose(policy[:, 1], kept, atol=1e-6)
    assert (gap < 0.01).all()
    np.testing.assert_allclose(value.sum(1), 1, atol=1e-5)
    np.testing.assert_allclose(outcome.sum(1), 1, atol=1e-5)
    both = np.full((len(states), 2, 4), 0.25, np.float32)
    np.testing.assert_array_equal(stage.solve(outcomes, fixed=both)[3], 0)
    with pytest.raises(ValueError, match="fixed: expected"):
        stage.solve(outcomes, fixed=fixed[:, :1])


def test_agents_play_games(net: Path) -> None:
    assert opponent("greedy") is BUILTIN["greedy"]
    players = (opponent(f"equilibrium:{net}"), opponent("search:depth=1"))
    found = contest(players, np.array([[0, 1], [1, 0]]), DUEL, seed=1, max_turns=30)
    again = contest(players, np.array([[0, 1], [1, 0]]), DUEL, seed=1, max_turns=30)
    np.testing.assert_array_equal(found.turns, again.turns)


@pytest.mark.parametrize(
    "text", ["stockfish", "search", "search:20", "hybrid:x", "hybrid::nodes=5", "policy", "x:y"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(AgentError, match="expected random, greedy"):
        parse_agent(text)


def test_models_that_do_not_fit_are_refused(tmp_path: Path, tiny: store.Checkpoint) -> None:
    store.save(tmp_path / "one", tiny)
    with pytest.raises(AgentError, match="answers for one seat"):
        open_agent(f"equilibrium:{tmp_path / 'one'}")
    with pytest.raises(AgentError, match="no file"):
        open_agent(f"policy:{tmp_path / 'none.onnx'}")
    with pytest.raises(AgentError, match="no checkpoint in it"):
        open_agent(f"policy:{tmp_path}")
    agent = open_agent(f"policy:{tmp_path / 'one'}@1")
    states = [core.State.new_game(11, 11, ["a", "b"], 1, DUEL.settings())]
    assert agent.policies(states, np.array([0, 0]), np.array([0, 1])).shape == (2, 4)
