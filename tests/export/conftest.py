import argparse
from collections.abc import Callable

import numpy as np
import onnx
import pytest
import torch

from snakekit import core
from snakekit.export import cli, pipeline
from snakekit.export.observations import collect
from snakekit.export.onnxfile import to_onnx
from snakekit.export.samples import Truth, answer
from snakekit.runtime.contract import ModelCard
from snakekit.trainer import checkpoint as store
from snakekit.trainer.checkpoint import Checkpoint, finish_card, weights_of
from snakekit.trainer.generate import infer
from snakekit.trainer.model import Net, build, count_parameters
from snakekit.trainer.scenario import Scenario

OPTIONS = {"channels": 16, "blocks": 2, "hidden": 16}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def saved() -> Checkpoint:
    """A small net whose answers differ clearly from position to position."""
    torch.manual_seed(3)
    model = build("compact", OPTIONS)
    for name, parameter in model.named_parameters():
        if name.endswith("weight"):
            torch.nn.init.normal_(parameter, std=1.2 / parameter[0].numel() ** 0.5)
    weights = weights_of(model)
    card = ModelCard(
        name="small",
        net="compact",
        net_options=OPTIONS,
        encoder=2,
        planes=core.PLANES[2],
        view=None,
        boards=[(7, 7), (11, 11)],
        rulesets=["standard"],
        snakes=[2, 4],
        method="made up for a test",
        step=5,
        parameters=count_parameters(model),
        weights_sha256="",
        source_commit="unknown",
    )
    return Checkpoint(card=finish_card(card, weights, 5), weights=weights)


@pytest.fixture(scope="session")
def every() -> Callable[..., Checkpoint]:
    """Make a net for all seats with these options, no two of whose weights are alike any more."""

    def make(**options: int) -> Checkpoint:
        saved = pipeline.untrained("all-seat", 0, options)
        weights = dict(saved.weights)
        for seed, (name, values) in enumerate(saved.weights.items()):
            if values.ndim == 1 or not values.any():
                noise = np.random.default_rng(seed).normal(scale=0.2, size=values.shape)
                weights[name] = values + noise.astype(np.float32)
        return Checkpoint(card=finish_card(saved.card, weights, 5), weights=weights)

    return make


@pytest.fixture(scope="session")
def graphs() -> dict[str, onnx.ModelProto]:
    """Graphs exported so far, by the hash of their weights."""
    return {}


@pytest.fixture(autouse=True)
def export_each_net_once(
    monkeypatch: pytest.MonkeyPatch, graphs: dict[str, onnx.ModelProto]
) -> None:
    """Torch takes seconds to export a net, and always gives the same graph."""

    def once(model: Net, card: ModelCard) -> onnx.ModelProto:
        key = card.weights_sha256
        if key not in graphs:
            graphs[key] = to_onnx(model, card)
        copy = onnx.ModelProto()
        copy.CopyFrom(graphs[key])
        return copy

    monkeypatch.setattr(pipeline, "to_onnx", once)


@pytest.fixture(scope="session")
def net(saved: Checkpoint) -> Net:
    return store.restore_model(saved, origin="x").eval()


@pytest.fixture(scope="session")
def proto(saved: Checkpoint, net: Net, graphs: dict[str, onnx.ModelProto]) -> onnx.ModelProto:
    return graphs.setdefault(saved.card.weights_sha256, to_onnx(net, saved.card))


@pytest.fixture(scope="session")
def truth(net: Net) -> Truth:
    """Positions of two kinds of games with the net's answers."""
    samples = [collect(2, Scenario(7, 7, 2), 96, seed=1), collect(2, Scenario(11, 11, 2), 96, 2)]
    return answer(lambda obs: infer(net, obs), samples, 64)


@pytest.fixture
def command() -> Callable[..., int]:
    """Run `snakekit export` with these words."""

    def run(*words: object) -> int:
        parser = argparse.ArgumentParser()
        cli.add_arguments(parser)
        return cli.run(parser.parse_args([str(word) for word in words]))

    return run
