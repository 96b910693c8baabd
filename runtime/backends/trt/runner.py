"""Running an engine: one stream, pinned buffers, one CUDA graph for each size of input."""

import logging
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from snakekit.runtime.backends.base import BackendError, BackendInfo, Outputs
from snakekit.runtime.backends.onnxcard import card_of
from snakekit.runtime.backends.options import BackendOptions
from snakekit.runtime.backends.trt.build import Built, Progress, build
from snakekit.runtime.backends.trt.cuda import Cuda
from snakekit.runtime.backends.trt.engine_file import (
    NOT_RUN,
    SUFFIX,
    Manifest,
    Profile,
    Target,
    engine_path,
    manifest_bytes,
    manifest_path,
    profile_of,
    read_engine,
    read_manifest,
    sha256,
    timings_path,
    why_stale,
    why_unfit,
)
from snakekit.runtime.backends.trt.package import collecting_logger, load_package
from snakekit.runtime.contract import INPUT_NAME, OUTPUT_NAMES, ModelCard
from snakekit.runtime.files import write_whole
from snakekit.runtime.models import check_card

log = logging.getLogger("snakekit.tensorrt")

DEFAULT_BATCH = (1, 8, 256)
MOST_GRAPHS = 64
"""A graph for each bucket and board size; more than these are run without one."""

_FLOAT = 4


class Size(NamedTuple):
    """Sizes of one input."""

    batch: int
    rows: int
    cols: int


class TensorrtBackend:
    """One engine on one GPU. `infer` is called from one thread at a time.

    The first call of a size runs and then captures a graph of copy, kernels and copy; later ones
    launch that graph, which costs one call of the driver.
    """

    pads = True

    def __init__(
        self, trt: Any, cuda: Any, plan: bytes, manifest: Manifest, *, requested: str
    ) -> None:
        """Load an engine that is known to fit.

        Args:
            trt: the package.
            cuda: the device, see `Cuda`.
            plan: the engine's bytes.
            manifest: the engine's manifest.
            requested: name of the backend.

        Raises:
            BackendError: the library refuses the engine.
        """
        self._cuda = cuda
        self._profile = manifest.profile
        self._planes = manifest.card.planes
        self._log = collecting_logger(trt)
        self._runtime = trt.Runtime(self._log)
        self.engine = self._runtime.deserialize_cuda_engine(plan)
        self._context: Any = self.engine.create_execution_context() if self.engine else None
        if not self._context:
            raise BackendError(
                f"backend {requested}: the engine cannot be loaded: {self._log.reason()}"
            )
        self._info = BackendInfo(requested, requested, manifest.card.precision, cuda.name)
        self._stream = cuda.stream()
        most = self._profile.batch[2]
        size = most * self._planes * self._profile.rows[2] * self._profile.cols[2]
        self._input, self._input_at = cuda.pinned(size), cuda.memory(size)
        self._slots = manifest.card.slots
        self._widths = (4 * max(self._slots, 1), self._slots + 1)
        self._outputs = [cuda.pinned(most * width * _FLOAT) for width in self._widths]
        self._outputs_at = [cuda.memory(most * width * _FLOAT) for width in self._widths]
        self._views = [
            pinned.view(np.float32).reshape(most, width)
            for pinned, width in zip(self._outputs, self._widths, strict=True)
        ]
        self._bind()
        self._graphs: dict[Size, Any] = {}

    def _bind(self) -> None:
        names, addresses = (INPUT_NAME, *OUTPUT_NAMES), (self._input_at, *self._outputs_at)
        for name, address in zip(names, addresses, strict=True):
            if not self._context.set_tensor_address(name, address):
                raise BackendError(f"the engine has no tensor {name}; build it again")

    def infer(self, batch: NDArray[np.uint8]) -> Outputs:
        """See `Backend`.

        Raises:
            BackendError: a size that the engine was not built for, or a failure of the GPU.
        """
        count, planes, rows, cols = batch.shape
        size = Size(count, rows, cols)
        self._check(size, planes)
        self._cuda.enter()
        np.copyto(self._input[: batch.size].reshape(batch.shape), batch)
        graph = self._graphs.get(size)
        if graph is not None:
            self._cuda.launch(graph, self._stream)
        else:
            self._run(size, batch.size)
        self._cuda.wait(self._stream)
        if graph is None and len(self._graphs) < MOST_GRAPHS:
            # After a first run, because that is when the context takes up the new shape.
            self._graphs[size] = self._cuda.capture(
                self._stream, lambda: self._queue(size, batch.size)
            )
        policy, value = self._views
        if self._slots:
            return policy[:count].reshape(count, self._slots, 4).copy(), value[:count].copy()
        return policy[:count].copy(), value[:count, 0].copy()

    def _check(self, size: Size, planes: int) -> None:
        limits = (self._profile.batch, self._profile.rows, self._profile.cols)
        fits = all(low <= n <= high for n, (low, _, high) in zip(size, limits, strict=True))
        if not fits or planes != self._planes:
            raise BackendError(
                f"the engine takes {self._planes} planes and batch, rows, cols of {limits[0]}, "
                f"{limits[1]}, {limits[2]} (least, usual, most), found {planes} planes and "
                f"{tuple(size)}"
            )

    def _run(self, size: Size, nbytes: int) -> None:
        shape = (size.batch, self._planes, size.rows, size.cols)
        if not self._context.set_input_shape(INPUT_NAME, shape):
            raise BackendError(f"the engine refuses the shape {shape}: {self._log.reason()}")
        self._queue(size, nbytes)

    def _queue(self, size: Size, nbytes: int) -> None:
        self._cuda.to_device(self._input_at, self._input, nbytes, self._stream)
        if not self._context.execute_async_v3(int(self._stream)):
            raise BackendError(f"the engine failed: {self._log.reason()}")
        outputs = zip(self._outputs, self._outputs_at, self._widths, strict=True)
        for pinned, address, width in outputs:
            self._cuda.to_host(pinned, address, size.batch * width * _FLOAT, self._stream)

    def describe(self) -> BackendInfo:
        """Return what runs."""
        return self._info

    def layers(self, trt: Any) -> str:
        """Return what the engine inspector says about every layer, as JSON text."""
        inspector = self.engine.create_engine_inspector()
        return str(inspector.get_engine_information(trt.LayerInformationFormat.JSON))

    def close(self) -> None:
        """Free everything on the GPU."""
        self._cuda.enter()
        self._graphs.clear()
        self._context = self.engine = self._runtime = None
        self._cuda.close()


def open_engine(
    path: Path, kind: str, options: BackendOptions
) -> tuple[TensorrtBackend, ModelCard]:
    """Open an engine, or the engine of an ONNX file, which is built where there is none that fits.

    Args:
        path: an engine with its manifest, which is refused if it is not for this machine; or an
            ONNX file.
        kind: `tensorrt` or `tensorrt-rtx`.
        options: number of the GPU, folder of engines.

    Raises:
        BackendError: no package, no GPU, an engine for something else, or a failed build.
        CardError: see `engine_of`.
    """
    trt = load_package(kind)
    cuda = Cuda(options.device)
    target = Target(
        package=kind,
        version=str(trt.__version__),
        gpu=cuda.name,
        compute_capability=cuda.compute_capability,
    )
    if path.suffix == SUFFIX:
        manifest = read_manifest(path)
        reason = why_unfit(manifest, target)
        if reason is not None:
            raise BackendError(f"{path.name}: {reason}; expected an engine made on this machine")
        plan = read_engine(path, manifest)
    else:
        folder = Path(options.engine_cache) if options.engine_cache else path.parent
        manifest, plan = engine_of(trt, path, folder, target, DEFAULT_BATCH)
    return TensorrtBackend(trt, cuda, plan, manifest, requested=kind), manifest.card


def engine_of(
    trt: Any,
    path: Path,
    folder: Path,
    target: Target,
    batch: tuple[int, int, int],
    *,
    ahead_of_time: bool = False,
    progress: Progress | None = None,
) -> tuple[Manifest, bytes]:
    """Return the engine of an ONNX file from `folder`, built now if none there fits.

    Args:
        trt: the package.
        path: the ONNX file.
        folder: where engines and timings are kept.
        target: what the engine is for.
        batch: least, usual and largest batch.
        ahead_of_time: see `build`.
        progress: see `build`.

    Raises:
        BackendError: unreadable file, failed build, or a disk that refuses.
        CardError: an ONNX file without a readable card, or for another encoder.
    """
    try:
        onnx = path.read_bytes()
    except OSError as error:
        raise BackendError(f"{path.name}: cannot be read ({error.strerror})") from None
    card = card_of(onnx, origin=path.name)
    # Before the build, which takes minutes and is kept.
    check_card(card, origin=path.name)
    profile = profile_of(card, batch)
    place = engine_path(folder, card, target)
    if place.is_file():
        try:
            return _fitting(place, card, sha256(onnx), profile, target)
        except BackendError as error:
            log.warning("%s; building it again", error)
    timings = timings_path(folder, target)
    manifest, built = make_engine(
        trt,
        onnx,
        card,
        target,
        batch,
        origin=path.name,
        ahead_of_time=ahead_of_time,
        timings=timings.read_bytes() if timings.is_file() else None,
        progress=progress,
    )
    try:
        write_whole(place, built.engine)
        write_whole(manifest_path(place), manifest_bytes(manifest))
        if built.timings is not None:
            write_whole(timings, built.timings)
    except OSError as error:
        raise BackendError(f"{place}: cannot be written ({error.strerror})") from None
    return manifest, built.engine


def make_engine(
    trt: Any,
    onnx: bytes,
    card: ModelCard,
    target: Target,
    batch: tuple[int, int, int],
    *,
    origin: str,
    ahead_of_time: bool = False,
    timings: bytes | None = None,
    progress: Progress | None = None,
) -> tuple[Manifest, Built]:
    """Build the engine of an ONNX file in memory; return it with its manifest.

    Arguments as of `build`; `batch` is least, usual and largest.

    Raises:
        BackendError: a failed build.
    """
    profile = profile_of(card, batch)
    built = build(
        trt,
        onnx,
        profile,
        target,
        origin=origin,
        ahead_of_time=ahead_of_time,
        timings=timings,
        progress=progress,
    )
    manifest = Manifest(
        target=target,
        profile=profile,
        status=NOT_RUN,
        onnx_sha256=sha256(onnx),
        engine_sha256=sha256(built.engine),
        card=card,
    )
    return manifest, built


def _fitting(
    place: Path, card: ModelCard, onnx_sha256: str, profile: Profile, target: Target
) -> tuple[Manifest, bytes]:
    manifest = read_manifest(place)
    reason = why_unfit(manifest, target) or why_stale(manifest, card, onnx_sha256, profile)
    if reason is not None:
        raise BackendError(f"{place.name}: {reason}")
    return manifest, read_engine(place, manifest)
