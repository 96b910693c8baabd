"""Real models as players: the shipped one, and checkpoints of a training run."""

from pathlib import Path

import numpy as np
import pytest
import torch

from snakekit.__main__ import main
from snakekit.bench.arena.entrants import parse_entrant, parse_entrants, run_entrants
from snakekit.bench.arena.figures import kind_of
from snakekit.bench.arena.models import CHUNK, Batcher, open_source
from snakekit.bench.arena.store import GAMES, read_games
from snakekit.bench.players import PlayerError, SearchPlan, parse_player
from snakekit.core import PLANES, State, all_seat_planes
from snakekit.runtime.contract import ALL_SEATS, ModelCard
from snakekit.runtime.equilibrium import Lookahead
from snakekit.trainer import checkpoint
from snakekit.trainer.model import ALL_SEAT, build, count_parameters


def save(run: Path, step: int, net: str = "compact") -> Path:
    torch.manual_seed(step)
    options = {"channels": 4, "blocks": 1, "hidden": 8}
    if net == ALL_SEAT:
        options["slots"] = 2
    model = build(net, options)
    weights = checkpoint.weights_of(model)
    card = ModelCard(
        name="test",
        net=net,
        net_options=options,
        encoder=ALL_SEATS if net == ALL_SEAT else 2,
        planes=all_seat_planes(2) if net == ALL_SEAT else PLANES[2],
        view=None,
        boards=[(11, 11)],
        rulesets=["standard"],
        snakes=[2],
        method="none",
        step=step,
        parameters=count_parameters(model),
        weights_sha256="",
        source_commit="unknown",
    )
    folder = run / "checkpoints" / f"step-{step:09d}"
    checkpoint.save(
        folder, checkpoint.Checkpoint(checkpoint.finish_card(card, weights, step), weights)
    )
    return folder


@pytest.mark.parametrize("kind", ["shipped", "checkpoint"])
def test_a_move_does_not_depend_on_the_batch(kind: str, tmp_path: Path) -> None:
    spec = "policy:compact" if kind == "shipped" else f"policy:{save(tmp_path, 5)}"
    batcher = Batcher(open_source(parse_entrant(spec)))
    states = [State.new_game(11, 11, list("abcd"), seed) for seed in range(5)]
    asks = [(state, seat) for state in states for seat in range(4)]
    together = batcher.logits(asks)
    assert together.shape == (20, 4)
    assert len(asks) % CHUNK != 0
    for index, ask in enumerate(asks):
        assert np.array_equal(batcher.logits([ask])[0], together[index])
    # Boards of another size in between must leave nothing behind.
    small = State.new_game(7, 7, ["a", "b"], 1)
    assert np.array_equal(batcher.logits([(small, 0)]), batcher.logits([(small, 0)]))
    assert np.array_equal(batcher.logits(asks), together)


def test_all_checkpoints_of_a_run_take_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for step in (0, 40, 8):
        save(tmp_path / "run", step)
    run = str(tmp_path / "run")
    texts = run_entrants(Path(run))
    assert [e.name for e in parse_entrants(texts)] == ["step-0", "step-8", "step-40"]
    out = str(tmp_path / "arena")
    options = ["--games", "12", "--max-turns", "40", "--bootstrap", "100", "--out", out]
    assert main(["arena", "--run", run, "greedy", *options]) == 0
    shown = capsys.readouterr().out
    assert "step-40" in shown
    assert "4 triples" in shown
    assert len(read_games(Path(out) / GAMES)) == 12
    # Later checkpoints do not change an arena that has been begun.
    save(tmp_path / "run", 41)
    assert main(["arena", "--resume", "--out", out, "--games", "14"]) == 0
    assert "step-41" not in capsys.readouterr().out


def test_a_changed_checkpoint_is_noticed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = save(tmp_path, 1)
    options = ["--games", "2", "--max-turns", "9", "--bootstrap", "100"]
    out = ["--out", str(tmp_path / "arena")]
    assert main(["arena", f"own=policy:{folder}", "random", *options, *out]) == 0
    capsys.readouterr()
    save(tmp_path, 2).rename(tmp_path / "new")
    folder.rename(tmp_path / "old")
    (tmp_path / "new").rename(folder)
    assert main(["arena", "--resume", *out]) == 2
    assert "model of player own has changed" in capsys.readouterr().err


def test_a_damaged_checkpoint_is_one_sentence(tmp_path: Path) -> None:
    folder = save(tmp_path, 1)
    (folder / "weights.safetensors").write_bytes(b"nothing")
    with pytest.raises(PlayerError, match="cut short or altered"):
        open_source(parse_entrant(f"policy:{folder}"))


def test_models_for_all_seats_play_by_equilibrium_and_by_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = str(save(tmp_path, 3, ALL_SEAT))
    players = [
        f"eq=equilibrium:{model}",
        f"far=equilibrium:{model},plies=2,override=depth=1",
        f"own=policy:{model}",
        f"planned=plans:{model}:local",
        "random",
    ]
    options = ["--games", "6", "--max-turns", "30", "--bootstrap", "100"]
    found = []
    for name in ("one", "two"):
        out = tmp_path / name
        assert main(["arena", *players, *options, "--out", str(out)]) == 0
        found.append((out / GAMES).read_text(encoding="utf-8").splitlines())
    assert len(found[0]) == len(found[1]) == 6
    capsys.readouterr()
    assert main(["arena", "equilibrium:compact", "random", "--out", str(tmp_path / "x")]) == 2
    assert "answers for one seat, not for all" in capsys.readouterr().err
    with pytest.raises(PlayerError, match="expected plans:MODEL:none, :uniform or :local"):
        parse_entrant(f"plans:{model}:best")
    with pytest.raises(PlayerError, match="answers for one seat"):
        parse_player("equilibrium:compact")


def test_figures_are_named_by_the_kind_of_players() -> None:
    assert kind_of(parse_entrants(["policy", "policy:@1"])) == "policy"
    assert kind_of(parse_entrants(["search:5", "search:depth=2"])) == "search"
    assert kind_of(parse_entrants(["search:5", "greedy"])) == "mixed"


def test_texts_of_players() -> None:
    hot = parse_entrant("hot=policy:standard@0.5")
    assert (hot.name, hot.model, hot.temperature) == ("hot", "standard", 0.5)
    far = parse_entrant("equilibrium:a.onnx,plies=2,draw=0.3,override=nodes=900@0.5")
    assert (far.model, far.look, far.plan, far.temperature) == (
        "a.onnx",
        Lookahead(plies=2, draw_worth=0.3),
        SearchPlan(nodes=900),
        0.5,
    )
    assert parse_entrant("equilibrium:a.onnx").look == Lookahead()
    planned = parse_entrant("plans:a:b.onnx:uniform,turns=5")
    assert planned.model == "a:b.onnx"
    assert planned.look == Lookahead(plans="uniform", plan_turns=5)
    for wrong in ("plies=3", "override", "depth=2", "draw=2"):
        with pytest.raises(PlayerError, match="expected plies=1, plies=2, draw"):
            parse_entrant(f"equilibrium:a.onnx,{wrong}")
    mixed = parse_entrant("hybrid::50")
    assert (mixed.model, mixed.plan) == ("", SearchPlan(budget_us=50_000))
    deep = parse_entrant("hybrid:runs/a=b/step-1:depth=3")
    assert (deep.name, deep.model, deep.plan) == (deep.spec, "runs/a=b/step-1", SearchPlan(depth=3))
    assert parse_entrant("search:nodes=900").plan == SearchPlan(nodes=900)
    names = [e.name for e in parse_entrants(["greedy", "greedy", "x=random", "x=random"])]
    assert names == ["greedy", "greedy#2", "x", "x#2"]
