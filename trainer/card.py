"""What a trained net's model card says, and weights taken over from another run."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from snakekit.runtime.contract import ModelCard
from snakekit.trainer import checkpoint as store
from snakekit.trainer.checkpoint import Checkpoint, CheckpointError
from snakekit.trainer.model import Net, count_parameters, kind_of, plane_scale
from snakekit.trainer.run import source_commit
from snakekit.trainer.scenario import Scenario


def make_card(
    model: Net,
    weights: Mapping[str, NDArray[np.float32]],
    *,
    name: str,
    net: str,
    net_options: Mapping[str, int],
    scenarios: Sequence[Scenario],
    method: str,
    step: int,
) -> ModelCard:
    """Return the card of `model`, an architecture `net` trained on `scenarios` for `step` updates.

    Args:
        model: counted for its parameters.
        weights: hashed.
        name: of the model.
        net: key of `NETS`.
        net_options: the architecture's.
        scenarios: kinds of games that it has seen.
        method: how it was trained.
        step: updates so far.
    """
    kind = kind_of(net)
    card = ModelCard(
        name=name,
        net=net,
        net_options=dict(net_options),
        encoder=kind.encoder,
        planes=len(plane_scale(kind.encoder, {**kind.options, **net_options})),
        view=kind.view,
        boards=sorted({(s.width, s.height) for s in scenarios}),
        rulesets=sorted({s.ruleset for s in scenarios}),
        snakes=sorted({s.snakes for s in scenarios}),
        method=method,
        step=step,
        parameters=count_parameters(model),
        weights_sha256="",
        source_commit=source_commit(),
    )
    return store.finish_card(card, weights, step)


def check_net(
    card: ModelCard, net: str, net_options: Mapping[str, int], *, origin: str = "start"
) -> None:
    """Raise CheckpointError if a model is of another net or encoder than asked for."""
    if (card.net, card.net_options) != (net, net_options):
        raise CheckpointError(f"{origin}: net {card.net} {card.net_options}, not this run's")
    wanted = kind_of(net).encoder
    if card.encoder != wanted:
        raise CheckpointError(f"{origin}: encoder version {card.encoder}, not this run's {wanted}")


def take_over(model: Net, start: Checkpoint, net: str, net_options: Mapping[str, int]) -> str:
    """Fill `model` with the weights of `start`, a checkpoint of the same net; return their hash.

    Raises:
        CheckpointError: `start` has another net.
    """
    check_net(start.card, net, net_options)
    model.load_state_dict(store.restore_model(start, origin="start").state_dict())
    return start.card.weights_sha256
