"""Positions with the net's own answers: what an exported model is compared with.

They are kept beside a model as `NAME.parity.npz`, so that a serving machine can repeat the
comparison with neither torch nor the checkpoint.
"""

import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FORMAT = 1
SUFFIX = ".parity.npz"

Answers = tuple[NDArray[np.float32], NDArray[np.float32]]
"""Policy logits `[N, 4]` and values `[N]`, or those of all seats, see `ModelCard`."""
Run = Callable[[NDArray[np.uint8]], Answers]
"""Answers one batch `[N, planes, rows, cols]`."""


class TruthError(ValueError):
    """A reference file that is missing, damaged or of another model; says which."""


@dataclass(frozen=True)
class Sample:
    """Observations of one kind of game."""

    name: str
    obs: NDArray[np.uint8]
    """`[N, planes, rows, cols]`."""
    allowed: NDArray[np.bool_]
    """Safe moves `[N, 4]`; `[N, slots, 4]` where a model answers for all, none in empty slots."""


@dataclass(frozen=True)
class Truth:
    """Positions and the answers of the net in fp32, a pair for each kind of game."""

    samples: tuple[Sample, ...]
    answers: tuple[Answers, ...]

    @property
    def positions(self) -> int:
        """Return the number of positions."""
        return sum(len(s.obs) for s in self.samples)


def answer(run: Run, samples: "tuple[Sample, ...] | list[Sample]", batch: int) -> Truth:
    """Return the answers of `run` to `samples`, asked in batches of `batch`."""
    return Truth(tuple(samples), tuple(in_batches(run, s.obs, batch) for s in samples))


def in_batches(run: Run, obs: NDArray[np.uint8], batch: int) -> Answers:
    """Answer `obs` in batches of `batch`; the last one may be smaller."""
    parts = [run(obs[i : i + batch]) for i in range(0, len(obs), batch)]
    return np.concatenate([p for p, _ in parts]), np.concatenate([v for _, v in parts])


def pack(truth: Truth, weights_sha256: str) -> bytes:
    """Return a reference file for the net with these weights."""
    arrays: dict[str, Any] = {
        "format": np.int64(FORMAT),
        "weights_sha256": np.array(weights_sha256),
        "names": np.array([s.name for s in truth.samples]),
    }
    for index, (sample, (policy, value)) in enumerate(
        zip(truth.samples, truth.answers, strict=True)
    ):
        arrays[f"obs{index}"] = sample.obs
        arrays[f"allowed{index}"] = sample.allowed
        arrays[f"policy{index}"] = policy
        arrays[f"value{index}"] = value
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


def unpack(path: Path, weights_sha256: str) -> Truth:
    """Read a reference file and check that it is that of the net with these weights.

    Raises:
        TruthError: missing, damaged, of another format or of other weights.
    """
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
        form, owner = int(arrays["format"]), str(arrays["weights_sha256"])
        if form != FORMAT:
            raise TruthError(f"{path.name}: format {form}, this version reads {FORMAT}")
        truth = _truth(arrays)
    except OSError as error:
        raise TruthError(
            f"{path}: cannot be read ({error.strerror or 'cut short'}); expected the reference "
            "that snakekit export writes beside a model, or --reference FILE"
        ) from None
    except (zipfile.BadZipFile, KeyError, EOFError, TypeError, IndexError, ValueError) as error:
        if isinstance(error, TruthError):
            raise
        raise TruthError(
            f"{path.name}: cut short or no reference file; export the model again"
        ) from None
    if owner != weights_sha256:
        raise TruthError(
            f"{path.name}: belongs to weights {owner[:12]}, the model has {weights_sha256[:12]}; "
            "expected the reference of this model"
        )
    return truth


def _truth(arrays: dict[str, NDArray[Any]]) -> Truth:
    samples, answers = [], []
    for index, name in enumerate(arrays["names"]):
        obs, allowed = arrays[f"obs{index}"], arrays[f"allowed{index}"]
        policy, value = arrays[f"policy{index}"], arrays[f"value{index}"]
        count = len(obs)
        slots = policy.shape[1] if policy.ndim == 3 else 0
        shapes = ((count, slots, 4), (count, slots + 1)) if slots else ((count, 4), (count,))
        fits = (policy.shape, value.shape) == shapes and allowed.shape == policy.shape
        if not fits or obs.ndim != 4 or count == 0:
            raise ValueError("shapes")
        if obs.dtype != np.uint8 or allowed.dtype != np.bool_:
            raise ValueError("types")
        samples.append(Sample(str(name), obs, allowed))
        answers.append((policy, value))
    if not samples:
        raise ValueError("empty")
    return Truth(tuple(samples), tuple(answers))
