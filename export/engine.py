"""TensorRT engines of a model that has passed its gate."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snakekit.export.options import ExportConfig
from snakekit.export.samples import Run
from snakekit.runtime.backends.trt.build import Progress
from snakekit.runtime.backends.trt.cuda import Cuda
from snakekit.runtime.backends.trt.engine_file import (
    Manifest,
    Target,
    engine_path,
    manifest_bytes,
    manifest_path,
    timings_path,
)
from snakekit.runtime.backends.trt.package import load_package
from snakekit.runtime.backends.trt.runner import TensorrtBackend, make_engine
from snakekit.runtime.contract import ModelCard


@dataclass(frozen=True)
class Engine:
    """An engine in memory, open on the GPU if it is one for the GPU that is here."""

    path: Path
    """Its file name."""
    manifest: Manifest
    files: dict[str, bytes]
    """Engine and manifest."""
    run: Run | None
    layers: Callable[[], str]
    """What the engine inspector says, as JSON."""
    close: Callable[[], None]

    @property
    def capability(self) -> str:
        """Return the compute capability that it is for."""
        return self.manifest.target.compute_capability


def make(
    onnx: bytes,
    card: ModelCard,
    config: ExportConfig,
    out: Path,
    progress: Progress | None = None,
) -> Engine:
    """Build the engine of an ONNX file for the GPU here, or for the capability asked for.

    Args:
        onnx: bytes of the file.
        card: its card.
        config: package, batch sizes, GPU.
        out: the folder whose timings of earlier builds are used.
        progress: that of `build`.

    Raises:
        BackendError: no package, no GPU, or a failed build.
    """
    trt = load_package(config.target)
    ahead = config.compute_capability
    cuda: Any = Cuda(config.device) if ahead is None else None
    target = Target(
        package=config.target,
        version=str(trt.__version__),
        gpu=cuda.name if ahead is None else "any",
        compute_capability=cuda.compute_capability if ahead is None else ahead,
    )
    least, usual, most = config.batch
    timings = timings_path(out, target)
    manifest, built = make_engine(
        trt,
        onnx,
        card,
        target,
        (least, usual, most),
        origin=f"{card.name} {card.precision}",
        ahead_of_time=ahead is not None,
        timings=timings.read_bytes() if timings.is_file() else None,
        progress=progress,
    )
    path = engine_path(Path(), card, target)
    files = {path.name: built.engine, manifest_path(path).name: manifest_bytes(manifest)}
    if built.timings is not None:
        files[timings.name] = built.timings
    if ahead is not None:
        return Engine(path, manifest, files, None, str, lambda: None)
    backend = TensorrtBackend(trt, cuda, built.engine, manifest, requested=config.target)
    return Engine(path, manifest, files, backend.infer, lambda: backend.layers(trt), backend.close)
