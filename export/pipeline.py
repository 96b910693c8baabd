"""From a checkpoint to model files: export, gates, card, and only then the files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch
from onnx import ModelProto

from snakekit.export import fp16, int8
from snakekit.export.observations import collect_all
from snakekit.export.onnxfile import (
    OPSET,
    ModelFileError,
    check,
    require_finite,
    to_onnx,
    with_card,
)
from snakekit.export.options import ExportConfig
from snakekit.export.parity import Gate, exact_gate, gate_of, padding_gap
from snakekit.export.samples import SUFFIX, Truth, answer, pack
from snakekit.export.session import Session
from snakekit.runtime.backends.trt.engine_file import manifest_bytes, manifest_path
from snakekit.runtime.contract import CardError, ModelCard, dump_card
from snakekit.runtime.files import write_whole
from snakekit.runtime.models import check_card
from snakekit.trainer import checkpoint as store
from snakekit.trainer.checkpoint import Checkpoint
from snakekit.trainer.generate import infer
from snakekit.trainer.model import Net, build, count_parameters, kind_of, plane_scale
from snakekit.trainer.nash.learner import answer_all
from snakekit.trainer.run import source_commit

CALIBRATION_SEED = 1_000_003
"""Added to the seed, so that ranges never come from the positions that the gate tries."""
TRUTH_BATCH = 256

Step = Callable[[str], None]
"""Told what is done next."""


@dataclass(frozen=True)
class Exported:
    """What was written, and the gates it passed."""

    files: tuple[Path, ...]
    """The model first."""
    gates: tuple[Gate, ...]
    card: ModelCard
    status: str
    """What has been run of it, and where."""


def untrained_file(net: str, seed: int, out: Path, options: Mapping[str, int]) -> Path:
    """Write the ONNX file of a net with random weights into `out`, past all gates; return it."""
    saved = untrained(net, seed, options)
    card = msgspec.structs.replace(saved.card, opset=OPSET)
    model = store.restore_model(saved, origin=net).eval()
    path = out / f"{card.name}.onnx"
    write_whole(path, with_card(to_onnx(model, card), card))
    return path


def untrained(net: str, seed: int, options: Mapping[str, int] | None = None) -> Checkpoint:
    """Return a net with random weights as a checkpoint, to measure speed with."""
    kind = kind_of(net)
    torch.manual_seed(seed)
    chosen = {**kind.options, **(options or {})}
    model = build(net, chosen)
    weights = store.weights_of(model)
    card = ModelCard(
        name=f"{net}-untrained",
        net=net,
        net_options=chosen,
        encoder=kind.encoder,
        planes=len(plane_scale(kind.encoder, chosen)),
        view=kind.view,
        boards=[(11, 11)],
        rulesets=["standard"],
        snakes=[chosen["slots"]] if "slots" in chosen else [2, 4],
        method="untrained, random weights",
        step=0,
        parameters=count_parameters(model),
        weights_sha256="",
        source_commit=source_commit(),
    )
    return Checkpoint(card=store.finish_card(card, weights, 0), weights=weights)


def stem_of(card: ModelCard, *, symmetric: bool = False) -> str:
    """Return the file name of a model without its ending: the precision is part of it."""
    precision = "" if card.precision == "fp32" else f".{card.precision}"
    return card.name + precision + ("-symmetric" if symmetric else "")


def export(
    saved: Checkpoint,
    config: ExportConfig,
    out: Path,
    *,
    origin: str,
    step: Step = lambda _: None,
) -> Exported:
    """Write a model and what belongs to it to `out`.

    That is `NAME.onnx` (`NAME.fp16.onnx`, `NAME.int8.onnx`) and its card `NAME.json`, the
    reference `NAME.parity.npz` for `--verify`, and with a target an engine with its manifest or
    Triton's folder `NAME/`. Torch computes the reference with one thread.

    Args:
        saved: the checkpoint.
        config: what to make.
        out: the folder.
        origin: what the checkpoint is called in errors.
        step: told what is done next.

    Raises:
        CheckpointError: the checkpoint does not fit its net.
        ModelFileError: weights that are not finite, a graph that breaks the contract, another
            encoder version, or a disk that refuses.
        GateError: the model's answers are not close enough.
        BackendError: no TensorRT, no GPU, or an engine that cannot be built.

    Nothing is written if it raises.
    """
    card = _accepted(saved, config, origin)
    torch.set_num_threads(1)
    model = store.restore_model(saved, origin=origin).eval()
    step("playing games")
    truth = _truth(model, card, config)
    step("exporting the graph")
    proto = to_onnx(model, card)
    check(proto, card)
    step("comparing fp32 with the net")
    gates = [_float_gate(with_card(proto, card), truth, card, config)]
    symmetric = config.precision == "int8" and config.target.startswith("tensorrt")
    if config.precision != "fp32":
        proto, card = _reduced(proto, card, config, symmetric, step)
        step(f"comparing {config.precision} with the net")
        run = Session(with_card(proto, card))
        gates.append(_gate(config.precision, truth, run, config))
    card = msgspec.structs.replace(card, parity=gates[-1].figures)
    stem, blob = stem_of(card, symmetric=symmetric), with_card(proto, card)
    made, status = _files(stem, blob, card, truth, config), "run on this CPU"
    if config.target.startswith("tensorrt"):
        step("building the engine")
        files, gate, status = _engine(blob, truth, card, config, out, step)
        made |= files
        gates += [gate] if gate is not None else []
    step("writing")
    return Exported(_write(out, made), tuple(gates), card, status)


def _accepted(saved: Checkpoint, config: ExportConfig, origin: str) -> ModelCard:
    """Return the card to go on with, once the checkpoint is known to be usable here."""
    try:
        check_card(saved.card, origin=origin)
    except CardError as error:
        raise ModelFileError(str(error)) from None
    for name, values in saved.weights.items():
        require_finite(name, values, origin)
    return msgspec.structs.replace(saved.card, opset=OPSET, name=config.name or saved.card.name)


def _truth(model: Net, card: ModelCard, config: ExportConfig) -> Truth:
    """Return positions of played games with the net's own answers."""
    samples = collect_all(card, config.observations, config.seed)
    ask = answer_all if card.slots else infer
    return answer(lambda obs: ask(model, obs), list(samples), TRUTH_BATCH)


def _float_gate(blob: bytes, truth: Truth, card: ModelCard, config: ExportConfig) -> Gate:
    run = Session(blob)
    gate = exact_gate(truth, run, most=config.batch[2], tolerance=config.tolerance)
    if card.view is None:
        gap = padding_gap(run, truth)
        figures = {**gate.figures, "padding_max_abs": gap}
        gate = Gate(gate.name, figures, gate.passed and gap < config.tolerance, gate.rule)
    gate.require()
    return gate


def _gate(precision: str, truth: Truth, run: Any, config: ExportConfig, name: str = "") -> Gate:
    gate = gate_of(
        precision,
        truth,
        run,
        most=config.batch[2],
        tolerance=config.tolerance,
        agreement=config.agreement,
    )
    gate = Gate(name or gate.name, gate.figures, gate.passed, gate.rule)
    gate.require()
    return gate


def _reduced(
    proto: ModelProto, card: ModelCard, config: ExportConfig, symmetric: bool, step: Step
) -> tuple[ModelProto, ModelCard]:
    """Return the graph in the precision asked for, and the card that says so."""
    if config.precision == "fp16":
        step("converting to fp16")
        proto = fp16.halve(proto)
        card = msgspec.structs.replace(card, precision="fp16")
    else:
        step("calibrating int8")
        reduce = not int8.has_vnni() if config.reduce_range is None else config.reduce_range
        # A GPU multiplies int8 without saturating.
        reduce = reduce and not symmetric
        ranges = collect_all(card, config.calibration, config.seed + CALIBRATION_SEED)
        proto = int8.quantize(proto, ranges, reduce_range=reduce, symmetric=symmetric)
        words = f"{sum(len(s.obs) for s in ranges)} observations of played games, min-max ranges, "
        words += "7-bit weights" if reduce else "8-bit weights"
        words += ", symmetric" if symmetric else ""
        card = msgspec.structs.replace(card, precision="int8", calibration=words)
    check(proto, card)
    return proto, card


def _files(
    stem: str, onnx: bytes, card: ModelCard, truth: Truth, config: ExportConfig
) -> dict[str, bytes]:
    """Return the files of a model that has passed its gates, by their paths in the folder."""
    if config.target == "triton":
        from snakekit.export.triton import repository

        return repository(stem, onnx, card, config.batch)
    text = msgspec.json.format(dump_card(card), indent=2)
    return {
        f"{stem}.onnx": onnx,
        f"{stem}.json": text.encode() + b"\n",
        card.name + SUFFIX: pack(truth, card.weights_sha256),
    }


def _engine(
    onnx: bytes, truth: Truth, card: ModelCard, config: ExportConfig, out: Path, step: Step
) -> tuple[dict[str, bytes], Gate | None, str]:
    """Build an engine; on a GPU that is here it also goes through the gate."""
    from snakekit.export.engine import make

    def progress(phase: str, done: int, steps: int) -> None:
        step(f"building the engine: {phase} {done}/{steps}")

    made = make(onnx, card, config, out, progress)
    if made.run is None:
        return made.files, None, f"engine for compute capability {made.capability} built, not run"
    try:
        gate = _gate(config.precision, truth, made.run, config, f"{config.precision} engine")
        manifest = msgspec.structs.replace(
            made.manifest,
            status="run",
            card=msgspec.structs.replace(card, parity=gate.figures),
        )
        layers = made.layers()
    finally:
        made.close()
    files = {**made.files, manifest_path(made.path).name: manifest_bytes(manifest)}
    files[made.path.name + ".layers.json"] = layers.encode()
    return files, gate, f"run on {made.manifest.target.gpu}"


def _write(out: Path, made: dict[str, bytes]) -> tuple[Path, ...]:
    """Write all files, or none: what was written before one that fails is taken back."""
    written: list[Path] = []
    try:
        for name, blob in made.items():
            path = out / name
            existed = path.exists()
            write_whole(path, blob)
            written += [] if existed else [path]
    except OSError as error:
        for earlier in written:
            earlier.unlink(missing_ok=True)
        raise ModelFileError(f"{path}: cannot be written: {error.strerror}") from None
    return tuple(out / name for name in made)
