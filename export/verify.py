"""`snakekit export --verify`: the gate again, on the machine and backend that are to serve.

Imports neither torch nor onnx, which a serving machine does not have.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from snakekit.export.options import ExportConfig, VerifyConfig
from snakekit.export.parity import Gate, gate_of
from snakekit.export.samples import SUFFIX, Truth, unpack
from snakekit.runtime.backends import (
    Backend,
    BackendError,
    BackendInfo,
    BackendOptions,
    load_backend,
)
from snakekit.runtime.contract import ModelCard
from snakekit.runtime.models import find_model


@dataclass(frozen=True)
class Verified:
    """What was run, and how it compares."""

    gate: Gate
    card: ModelCard
    info: BackendInfo
    reference: Path


def verify(
    model: str, config: VerifyConfig, limits: ExportConfig, reference: Path | None = None
) -> Verified:
    """Compare a model with the reference that was exported with it.

    Args:
        model: an ONNX file, an engine, the name of a shipped model, or with the backend `triton`
            the name of a model on the server.
        config: what runs it.
        limits: largest batch, tolerance and agreement asked for.
        reference: the reference; None looks beside the model.

    Raises:
        BackendError: a model or backend that cannot be used, or answers that are not finite.
        TruthError: a reference that is missing, damaged or of other weights.
    """
    options = BackendOptions(
        threads=config.threads,
        device=limits.device,
        triton_url=config.triton_url,
        triton_timeout_ms=30_000,
    )
    if config.backend == "triton":
        if reference is None:
            raise BackendError("--reference: missing, expected NAME.parity.npz of the model")
        path = Path(model)
    else:
        path = find_model(model)
    backend, card = load_backend(config.backend, path, options=options)
    try:
        place = reference if reference is not None else path.with_name(card.name + SUFFIX)
        truth = unpack(place, card.weights_sha256)
        _require_finite(backend, truth, card)
        gate = gate_of(
            card.precision,
            truth,
            backend.infer,
            most=limits.batch[2],
            tolerance=limits.tolerance,
            agreement=limits.agreement,
        )
        return Verified(gate, card, backend.describe(), place)
    finally:
        backend.close()


def _require_finite(backend: Backend, truth: Truth, card: ModelCard) -> None:
    policy, value = backend.infer(truth.samples[0].obs[:1])
    if not (np.isfinite(policy).all() and np.isfinite(value).all()):
        raise BackendError(
            f"model {card.name}: gives numbers that are not finite; expected finite weights, "
            "export it again"
        )
