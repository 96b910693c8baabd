import pytest
import torch

from snakekit import core
from snakekit.runtime.contract import ModelCard
from snakekit.trainer.checkpoint import Checkpoint, finish_card, weights_of
from snakekit.trainer.model import build, count_parameters

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
