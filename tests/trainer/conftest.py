from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from snakekit import core
from snakekit.runtime.contract import ModelCard
from snakekit.trainer.checkpoint import Checkpoint, finish_card, weights_of
from snakekit.trainer.model import build, count_parameters

OPTIONS = {"channels": 8, "blocks": 1, "hidden": 16}


def tiny_checkpoint(seed: int = 0, step: int = 7) -> Checkpoint:
    """Return an untrained small net as a checkpoint."""
    torch.manual_seed(seed)
    model = build("compact", OPTIONS)
    weights = weights_of(model)
    card = ModelCard(
        name="tiny",
        net="compact",
        net_options=OPTIONS,
        encoder=2,
        planes=core.PLANES[2],
        view=None,
        boards=[(11, 11)],
        rulesets=["standard"],
        snakes=[2],
        method="untrained, random weights",
        step=step,
        parameters=count_parameters(model),
        weights_sha256="",
        source_commit="unknown",
    )
    return Checkpoint(
        card=finish_card(card, weights, step),
        weights=weights,
        optimizer={"exp_avg/stem.bias": np.arange(8, dtype=np.float32)},
        config={"lr": 0.1},
        counters={"step": step, "big": 2**100},
        rng={"torch": ""},
    )


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def tiny() -> Checkpoint:
    return tiny_checkpoint()


@pytest.fixture
def cluster() -> Iterator[Any]:
    ray = pytest.importorskip("ray", reason="needs the extra `distributed`")
    yield ray
    ray.shutdown()
