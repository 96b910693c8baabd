"""Checkpoints: a folder of safetensors and JSON, written whole or not at all.

`state.json` holds the model card, the configuration, counters, the random states and the size and
sha256 of every other file; `weights.safetensors` the weights (with the card in its metadata);
`optimizer.safetensors` the optimizer's tensors, absent in an untrained checkpoint;
`replay.safetensors` the training data in use, where a method needs it to resume bit for bit.
Nothing is ever unpickled.

`weights_sha256` of the card is the sha256 over the weights in the order of their names, for each:
the name in UTF-8, a zero byte, the shape as decimal numbers joined by commas, a zero byte, then
the values as little-endian float32 in C order. It depends neither on the file format nor on the
platform.
"""

import base64
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors
from torch import Tensor

from snakekit.runtime.contract import CARD_KEY, CardError, ModelCard, dump_card, load_card
from snakekit.trainer.model import Net, build

FORMAT = 1
CHECKPOINTS = "checkpoints"
"""Folder of a run that holds them."""
STATE_FILE = "state.json"
WEIGHTS = "weights"
OPTIMIZER = "optimizer"
REPLAY = "replay"

Arrays = dict[str, NDArray[Any]]


class CheckpointError(ValueError):
    """A checkpoint that is missing, damaged, foreign or made for another net; says which."""


@dataclass(frozen=True)
class Checkpoint:
    """One saved training state."""

    card: ModelCard
    weights: dict[str, NDArray[Any]]
    """Named float32 arrays, the net's `state_dict`."""
    optimizer: Arrays = field(default_factory=dict)
    """Named arrays, see `optimizer_arrays`."""
    replay: Arrays = field(default_factory=dict)
    """Training data in use, in the method's own form."""
    config: dict[str, Any] = field(default_factory=dict)
    """The method's configuration, as JSON values."""
    counters: dict[str, Any] = field(default_factory=dict)
    """Steps, rounds, games and seconds so far, as JSON values."""
    rng: dict[str, Any] = field(default_factory=dict)
    """Random states, see `pack_generator` and `pack_torch_rng`."""


def weights_of(model: torch.nn.Module) -> dict[str, NDArray[Any]]:
    """Return copies of the model's weights and buffers as named float32 arrays."""
    return {
        name: value.detach().to("cpu", torch.float32).numpy().copy()
        for name, value in model.state_dict().items()
    }


def hash_weights(weights: Mapping[str, NDArray[Any]]) -> str:
    """Return the hexadecimal sha256 described at the top of this module."""
    digest = hashlib.sha256()
    for name in sorted(weights):
        value = np.asarray(weights[name], dtype="<f4", order="C")
        digest.update(name.encode() + b"\0" + ",".join(map(str, value.shape)).encode() + b"\0")
        digest.update(value.tobytes())
    return digest.hexdigest()


def save(folder: Path, checkpoint: Checkpoint) -> None:
    """Write `checkpoint` as `folder`, replacing one that is there.

    Everything is written to a temporary folder beside it, flushed to the disk and renamed, so an
    interrupted write leaves the earlier checkpoint or none.

    Raises:
        CheckpointError: the card's hash is not that of the weights, or the disk refuses.
    """
    if hash_weights(checkpoint.weights) != checkpoint.card.weights_sha256:
        raise CheckpointError(f"{folder}: the card's weights_sha256 is not that of the weights")
    metadata = {CARD_KEY: dump_card(checkpoint.card)}
    parts = {WEIGHTS: checkpoint.weights, OPTIMIZER: checkpoint.optimizer}
    parts[REPLAY] = checkpoint.replay
    blobs = {
        f"{name}.safetensors": save_tensors(arrays, metadata)
        for name, arrays in parts.items()
        if arrays
    }
    state = {
        "format": FORMAT,
        "card": json.loads(dump_card(checkpoint.card)),
        "config": checkpoint.config,
        "counters": checkpoint.counters,
        "rng": checkpoint.rng,
        "files": {
            name: {"bytes": len(blob), "sha256": hashlib.sha256(blob).hexdigest()}
            for name, blob in blobs.items()
        },
    }
    blobs[STATE_FILE] = json.dumps(state, indent=1, sort_keys=True).encode() + b"\n"
    try:
        _write_folder(folder, blobs)
    except OSError as error:
        shutil.rmtree(_temporary(folder), ignore_errors=True)
        raise CheckpointError(f"{folder}: cannot be written: {error.strerror}") from error


def _temporary(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.tmp-{os.getpid()}")


def _write_folder(folder: Path, blobs: Mapping[str, bytes]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = _temporary(folder)
    old = folder.with_name(f".{folder.name}.old-{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    for name, blob in blobs.items():
        with (temporary / name).open("wb") as file:
            file.write(blob)
            file.flush()
            os.fsync(file.fileno())
    _sync_folder(temporary)
    # A folder cannot be renamed over a full one; the short gap leaves two whole copies on disk.
    if folder.exists():
        folder.rename(old)
    temporary.rename(folder)
    _sync_folder(folder.parent)
    shutil.rmtree(old, ignore_errors=True)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def load(folder: Path) -> Checkpoint:
    """Read and verify the checkpoint in `folder`.

    Raises:
        CheckpointError: missing, cut, altered or foreign; the message says which file and why.
    """
    state = _read_state(folder)
    try:
        card = load_card(json.dumps(state["card"]), origin=str(folder / STATE_FILE))
    except CardError as error:
        raise CheckpointError(str(error)) from None
    parts = {
        name: _read_part(folder, name, state["files"]) for name in (WEIGHTS, OPTIMIZER, REPLAY)
    }
    if not parts[WEIGHTS]:
        raise CheckpointError(f"{folder / STATE_FILE}: names no weights")
    if hash_weights(parts[WEIGHTS]) != card.weights_sha256:
        raise CheckpointError(f"{folder}: the weights are not those the model card names")
    return Checkpoint(
        card=card,
        weights=parts[WEIGHTS],
        optimizer=parts[OPTIMIZER],
        replay=parts[REPLAY],
        config=state["config"],
        counters=state["counters"],
        rng=state["rng"],
    )


def _read_state(folder: Path) -> dict[str, Any]:
    path = folder / STATE_FILE
    if not folder.is_dir():
        raise CheckpointError(f"{folder}: no such checkpoint folder")
    try:
        state = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise CheckpointError(f"{folder}: no {STATE_FILE}, so not a checkpoint") from None
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise CheckpointError(f"{path}: cut short or not JSON") from None
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        found = state.get("format") if isinstance(state, dict) else None
        raise CheckpointError(f"{path}: checkpoint format {found!r}, this version reads {FORMAT}")
    for key in ("card", "config", "counters", "rng", "files"):
        if not isinstance(state.get(key), dict):
            raise CheckpointError(f"{path}: no {key!r} in it")
    return state


def _read_part(folder: Path, name: str, files: dict[str, Any]) -> Arrays:
    entry = files.get(f"{name}.safetensors")
    if entry is None:
        return {}
    if not isinstance(entry, dict):
        raise CheckpointError(f"{folder / STATE_FILE}: odd entry for {name}.safetensors")
    path = folder / f"{name}.safetensors"
    try:
        blob = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from None
    if hashlib.sha256(blob).hexdigest() != entry.get("sha256"):
        size = f"{len(blob)} of {entry.get('bytes')} bytes"
        raise CheckpointError(f"{path}: cut short or altered ({size}, another sha256)")
    try:
        return load_tensors(blob)
    except (SafetensorError, ValueError) as error:
        raise CheckpointError(f"{path}: not a safetensors file: {error}") from None


def restore_model(checkpoint: Checkpoint, *, origin: str) -> Net:
    """Build the card's net and fill it with the checkpoint's weights.

    Raises:
        CheckpointError: the net is unknown here, tensors are missing, extra or of another shape,
            or the encoder's plane scale has changed since.
    """
    card = checkpoint.card
    try:
        model = build(card.net, card.net_options)
    except (ValueError, TypeError, KeyError) as error:
        raise CheckpointError(f"{origin}: {error}") from None
    own = model.state_dict()
    for name in sorted(set(own) ^ set(checkpoint.weights)):
        what = "missing from the weights" if name in own else "not part of this net"
        raise CheckpointError(f"{origin}: tensor {name!r} is {what}")
    for name, value in own.items():
        found = checkpoint.weights[name]
        if tuple(value.shape) != found.shape:
            raise CheckpointError(
                f"{origin}: tensor {name!r} has shape {found.shape}, expected {tuple(value.shape)}"
            )
    if not np.array_equal(own["scale"].numpy(), checkpoint.weights["scale"]):
        raise CheckpointError(f"{origin}: trained with another plane scale than the encoder's")
    model.load_state_dict({name: torch.from_numpy(a) for name, a in checkpoint.weights.items()})
    return model


def optimizer_arrays(optimizer: torch.optim.Optimizer, model: torch.nn.Module) -> Arrays:
    """Return the optimizer's tensors as arrays named `<kind>/<parameter>`."""
    return {
        f"{kind}/{name}": value.detach().cpu().numpy().copy()
        for name, parameter in model.named_parameters()
        for kind, value in optimizer.state.get(parameter, {}).items()
        if isinstance(value, Tensor)
    }


def restore_optimizer(
    optimizer: torch.optim.Optimizer, model: torch.nn.Module, arrays: Arrays, *, origin: str
) -> None:
    """Put what `optimizer_arrays` returned back.

    Raises:
        CheckpointError: an array belongs to no parameter.
    """
    parameters = dict(model.named_parameters())
    optimizer.state.clear()
    for key, value in arrays.items():
        kind, _, name = key.partition("/")
        if name not in parameters:
            raise CheckpointError(f"{origin}: optimizer tensor {key!r} belongs to no parameter")
        optimizer.state[parameters[name]][kind] = torch.from_numpy(value.copy())


def pack_generator(generator: np.random.Generator) -> dict[str, Any]:
    """Return the state of a numpy generator as JSON values."""
    return dict(generator.bit_generator.state)


def unpack_generator(state: Mapping[str, Any]) -> np.random.Generator:
    """Return a numpy generator in the state that `pack_generator` returned.

    Raises:
        CheckpointError: not such a state.
    """
    bits: Any = np.random.PCG64()
    try:
        bits.state = dict(state)
    except (ValueError, TypeError, KeyError) as error:
        raise CheckpointError(f"random state cannot be restored: {error}") from None
    return np.random.Generator(bits)


def pack_torch_rng() -> str:
    """Return the state of torch's global CPU generator as text."""
    return base64.b64encode(torch.get_rng_state().numpy().tobytes()).decode()


def unpack_torch_rng(text: str) -> None:
    """Set torch's global CPU generator to what `pack_torch_rng` returned.

    Raises:
        CheckpointError: not such a state.
    """
    try:
        raw = base64.b64decode(text, validate=True)
        torch.set_rng_state(torch.frombuffer(bytearray(raw), dtype=torch.uint8))
    except (ValueError, RuntimeError, TypeError) as error:
        raise CheckpointError(f"torch's random state cannot be restored: {error}") from None


def finish_card(card: ModelCard, weights: Mapping[str, NDArray[Any]], step: int) -> ModelCard:
    """Return `card` with the hash of `weights` and the training step filled in."""
    return msgspec.structs.replace(card, weights_sha256=hash_weights(weights), step=step)


def latest(folder: Path) -> Path:
    """Return the checkpoint of the highest step in `folder`, or `folder` if it is one itself.

    Raises:
        CheckpointError: there is none.
    """
    if (folder / STATE_FILE).exists():
        return folder
    for place in (folder / CHECKPOINTS, folder):
        found = sorted(p for p in place.glob("step-*") if (p / STATE_FILE).is_file())
        if found:
            return found[-1]
    raise CheckpointError(f"{folder}: no checkpoint in it")
