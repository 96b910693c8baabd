"""From a checkpoint to a model file: export, gate, card, and only then the file."""

from pathlib import Path

import msgspec
import torch

from snakekit import core
from snakekit.export import int8
from snakekit.export.observations import collect_all
from snakekit.export.onnxfile import OPSET, check, to_onnx, with_card, write_file
from snakekit.export.options import ExportConfig
from snakekit.export.parity import Gate, GateError, close_gate, exact_gate, padding_gap
from snakekit.export.session import Session
from snakekit.runtime.contract import ModelCard, dump_card
from snakekit.trainer import checkpoint as store
from snakekit.trainer.checkpoint import Checkpoint
from snakekit.trainer.generate import infer
from snakekit.trainer.model import build, count_parameters, kind_of
from snakekit.trainer.run import source_commit

CALIBRATION_SEED = 1_000_003
"""Added to the seed, so that ranges never come from the positions that the gate tries."""


def untrained(net: str, seed: int) -> Checkpoint:
    """Return a net with random weights as a checkpoint, to measure speed with."""
    kind = kind_of(net)
    torch.manual_seed(seed)
    model = build(net)
    weights = store.weights_of(model)
    card = ModelCard(
        name=f"{net}-untrained",
        net=net,
        net_options=dict(kind.options),
        encoder=kind.encoder,
        planes=core.PLANES[kind.encoder],
        view=kind.view,
        boards=[(11, 11)],
        rulesets=["standard"],
        snakes=[2, 4],
        method="untrained, random weights",
        step=0,
        parameters=count_parameters(model),
        weights_sha256="",
        source_commit=source_commit(),
    )
    return Checkpoint(card=store.finish_card(card, weights, 0), weights=weights)


def export(saved: Checkpoint, config: ExportConfig, out: Path, *, origin: str) -> tuple[Path, Gate]:
    """Write `out/NAME.onnx` and its card `out/NAME.json`; return the path and the gate's figures.

    int8 files are called `NAME.int8.onnx`. Torch computes the reference with one thread.

    Raises:
        CheckpointError: the checkpoint does not fit its net.
        ModelFileError: the graph breaks the contract, or the disk refuses.
        GateError: the model's answers are not close enough; nothing has been written.
    """
    torch.set_num_threads(1)
    model = store.restore_model(saved, origin=origin).eval()
    card = msgspec.structs.replace(saved.card, opset=OPSET, name=config.name or saved.card.name)
    samples = collect_all(card, config.observations, config.seed)
    proto = to_onnx(model, card)
    check(proto, card)
    blob = with_card(proto, card)

    gate = exact_gate(
        lambda obs: infer(model, obs), Session(blob), samples, tolerance=config.tolerance
    )
    if card.view is None:
        gap = padding_gap(Session(blob), samples)
        figures = {**gate.figures, "padding_max_abs": gap}
        gate = Gate(figures, gate.passed and gap < config.tolerance, gate.rule)
    _require(gate, "fp32")
    stem = card.name
    if config.precision == "int8":
        reduce = not int8.has_vnni() if config.reduce_range is None else config.reduce_range
        ranges = collect_all(card, config.calibration, config.seed + CALIBRATION_SEED)
        proto = int8.quantize(proto, ranges, reduce_range=reduce)
        check(proto, card)
        counted = sum(len(s.obs) for s in ranges)
        words = f"{counted} observations of played games, min-max ranges, "
        words += "7-bit weights" if reduce else "8-bit weights"
        card = msgspec.structs.replace(card, precision="int8", calibration=words)
        gate = close_gate(
            lambda obs: infer(model, obs),
            Session(with_card(proto, card)),
            samples,
            agreement=config.agreement,
        )
        _require(gate, "int8")
        stem += ".int8"
    card = msgspec.structs.replace(card, parity=gate.figures)
    path = out / f"{stem}.onnx"
    write_file(path, with_card(proto, card))
    text = msgspec.json.format(dump_card(card), indent=2)
    write_file(out / f"{stem}.json", text.encode() + b"\n")
    return path, gate


def _require(gate: Gate, what: str) -> None:
    if not gate.passed:
        raise GateError(f"{what} refused, nothing written; asked {gate.rule}; found {gate.text()}")
