import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
import struct
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

from snakekit.trainer import checkpoint as store
from snakekit.trainer.checkpoint import Checkpoint, CheckpointError
from snakekit.trainer.model import build

FILES = ("weights.safetensors", "optimizer.safetensors", "state.json")


def test_round_trip(tmp_path: Path, tiny: Checkpoint) -> None:
    store.save(tmp_path / "c", tiny)
    found = store.load(tmp_path / "c")
    assert found.card == tiny.card
    assert (found.config, found.counters, found.rng) == (tiny.config, tiny.counters, tiny.rng)
    for part in ("weights", "optimizer", "replay"):
        before, after = getattr(tiny, part), getattr(found, part)
        assert before.keys() == after.keys()
        for name in before:
            np.testing.assert_array_equal(before[name], after[name])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c"]


def test_saving_again_replaces(tmp_path: Path, tiny: Checkpoint) -> None:
    store.save(tmp_path / "c", tiny)
    store.save(tmp_path / "c", dataclasses.replace(tiny, counters={"step": 8}))
    assert store.load(tmp_path / "c").counters == {"step": 8}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["c"]


@pytest.mark.parametrize("killed_at", range(1, 7))
def test_a_write_cut_short_keeps_the_earlier_one(
    tmp_path: Path, tiny: Checkpoint, monkeypatch: pytest.MonkeyPatch, killed_at: int
) -> None:
    store.save(tmp_path / "step-1", tiny)
    calls = 0

    def die(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls == killed_at:
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", die)
    newer = dataclasses.replace(tiny, counters={"step": 8})
    with contextlib.suppress(KeyboardInterrupt):
        store.save(tmp_path / "step-2", newer)
    place = store.latest(tmp_path)
    assert store.load(place).counters["step"] in (7, 8)
    if killed_at <= 4:
        assert place.name == "step-1"


@pytest.mark.parametrize("name", FILES)
def test_damage_is_noticed(tmp_path: Path, tiny: Checkpoint, name: str) -> None:
    store.save(tmp_path / "c", tiny)
    path = tmp_path / "c" / name
    whole = path.read_bytes()
    for broken in (whole[: len(whole) // 2], b"", whole[:-9] + b"\xff" + whole[-8:]):
        path.write_bytes(broken)
        with pytest.raises(CheckpointError, match=name.split(".")[0]):
            store.load(tmp_path / "c")
    path.unlink()
    with pytest.raises(CheckpointError, match=name.split(".")[0]):
        store.load(tmp_path / "c")


def test_foreign_things_are_refused(tmp_path: Path, tiny: Checkpoint) -> None:
    with pytest.raises(CheckpointError, match="no such checkpoint"):
        store.load(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        store.load(tmp_path)
    with pytest.raises(CheckpointError, match="no checkpoint in it"):
        store.latest(tmp_path)
    store.save(tmp_path / "c", tiny)
    path = tmp_path / "c" / "state.json"
    state = json.loads(path.read_text())
    path.write_text(json.dumps(state | {"format": 99}))
    with pytest.raises(CheckpointError, match="format 99"):
        store.load(tmp_path / "c")
    path.write_text(json.dumps(state | {"card": {**state["card"], "schema": 9}}))
    with pytest.raises(CheckpointError, match="schema 9"):
        store.load(tmp_path / "c")
    path.write_text("[1]")
    with pytest.raises(CheckpointError, match="format None"):
        store.load(tmp_path / "c")


def test_another_checkpoints_weights_are_refused(tmp_path: Path, tiny: Checkpoint) -> None:
    store.save(tmp_path / "a", tiny)
    weights = {name: value + 1 for name, value in tiny.weights.items()}
    other = dataclasses.replace(
        tiny, weights=weights, card=store.finish_card(tiny.card, weights, tiny.card.step)
    )
    store.save(tmp_path / "b", other)
    shutil.copy(tmp_path / "b" / "weights.safetensors", tmp_path / "a" / "weights.safetensors")
    with pytest.raises(CheckpointError, match="altered"):
        store.load(tmp_path / "a")


def test_the_card_must_name_its_weights(tmp_path: Path, tiny: Checkpoint) -> None:
    wrong = msgspec.structs.replace(tiny.card, weights_sha256="0" * 64)
    with pytest.raises(CheckpointError, match="weights_sha256"):
        store.save(tmp_path / "c", dataclasses.replace(tiny, card=wrong))


def test_weights_of_another_net_are_refused(tiny: Checkpoint) -> None:
    whole = tiny.weights
    cases = {
        "'stem.bias' is missing": {k: v for k, v in whole.items() if k != "stem.bias"},
        "'odd' is not part": whole | {"odd": np.zeros(1, np.float32)},
        "shape": whole | {"stem.bias": np.zeros(9, np.float32)},
        "plane scale": whole | {"scale": whole["scale"] * 2},
    }
    for message, weights in cases.items():
        with pytest.raises(CheckpointError, match=message):
            store.restore_model(dataclasses.replace(tiny, weights=weights), origin="x")
    foreign = dataclasses.replace(tiny, card=msgspec.structs.replace(tiny.card, net="other"))
    with pytest.raises(CheckpointError, match="unknown net 'other'"):
        store.restore_model(foreign, origin="x")


def test_the_hash_does_not_depend_on_order_or_memory_layout(tiny: Checkpoint) -> None:
    turned = {k: np.asfortranarray(v) for k, v in reversed(tiny.weights.items())}
    assert store.hash_weights(turned) == tiny.card.weights_sha256
    known = {"b": np.float32([[1, 2]]), "a": np.float32([0.5])}
    spelled = b"a\0" + b"1\0" + struct.pack("<f", 0.5)
    spelled += b"b\0" + b"1,2\0" + struct.pack("<2f", 1, 2)
    assert store.hash_weights(known) == hashlib.sha256(spelled).hexdigest()


def test_optimizer_state_comes_back(tiny: Checkpoint) -> None:
    def steps(model: torch.nn.Module, optimizer: torch.optim.Optimizer, count: int) -> None:
        for i in range(count):
            optimizer.zero_grad()
            sum((p * (i + 1)).sum() for p in model.parameters()).backward()
            optimizer.step()

    model = store.restore_model(tiny, origin="x")
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    steps(model, optimizer, 3)
    arrays = store.optimizer_arrays(optimizer, model)
    twin = build(tiny.card.net, tiny.card.net_options)
    twin.load_state_dict(model.state_dict())
    other = torch.optim.AdamW(twin.parameters(), lr=0.01)
    store.restore_optimizer(other, twin, arrays, origin="x")
    steps(model, optimizer, 2)
    steps(twin, other, 2)
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(a, b)
    with pytest.raises(CheckpointError, match="belongs to no parameter"):
        store.restore_optimizer(other, twin, {"step/odd": np.zeros(1)}, origin="x")


def test_random_states_come_back() -> None:
    generator = np.random.default_rng(5)
    generator.random(3)
    text = json.dumps(store.pack_generator(generator))
    again = store.unpack_generator(json.loads(text))
    assert generator.random(4).tolist() == again.random(4).tolist()
    torch.manual_seed(3)
    kept = store.pack_torch_rng()
    first = torch.rand(3)
    store.unpack_torch_rng(kept)
    assert torch.equal(first, torch.rand(3))
    with pytest.raises(CheckpointError):
        store.unpack_torch_rng("AAAA")
    with pytest.raises(CheckpointError):
        store.unpack_generator({"state": 1})
