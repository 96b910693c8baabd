"""From an ONNX file to an engine. Needs no GPU with `tensorrt-rtx`, and never the onnx package."""

from collections.abc import Callable
from typing import Any, NamedTuple

from snakekit.runtime.backends.base import BackendError
from snakekit.runtime.backends.trt.engine_file import Profile, Target
from snakekit.runtime.backends.trt.package import collecting_logger
from snakekit.runtime.contract import INPUT_NAME, OUTPUT_NAMES

WORKSPACE_BYTES = 1 << 30
MEASURED_LEVEL = 5
"""The highest: engines here are small, and built once."""

Progress = Callable[[str, int, int], None]
"""Called with a phase, the steps done and all steps of it."""


class Built(NamedTuple):
    """An engine, and the timings that make the next build of it faster."""

    engine: bytes
    timings: bytes | None


def parse(trt: Any, logger: Any, onnx: bytes, origin: str) -> tuple[Any, Any]:
    """Parse an ONNX file into a strongly typed network; return builder and network.

    Strongly typed means that each tensor has the type that the file gives it: the precision is
    decided by the exporter and cannot be lost here.

    Raises:
        BackendError: an operator or type that TensorRT does not have; names the node.
    """
    builder = trt.Builder(logger)
    # TensorRT 11 knows no other networks and may have dropped the flag.
    flag = getattr(trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED", None)
    network = builder.create_network(1 << int(flag) if flag is not None else 0)
    parser = trt.OnnxParser(network, logger)
    if not parser.parse(onnx):
        words = _parser_errors(parser, logger)
        if "DequantizeLinear" in words:
            words += "; int8 for GPUs is made by snakekit export --precision int8 --target tensorrt"
        raise BackendError(f"{origin}: TensorRT cannot read it: {words}")
    inputs = [network.get_input(i).name for i in range(network.num_inputs)]
    outputs = [network.get_output(i).name for i in range(network.num_outputs)]
    if inputs != [INPUT_NAME] or outputs != list(OUTPUT_NAMES):
        raise BackendError(
            f"{origin}: TensorRT reads inputs {inputs} and outputs {outputs}, expected "
            f"{[INPUT_NAME]} and {list(OUTPUT_NAMES)}"
        )
    return builder, network


def _parser_errors(parser: Any, logger: Any) -> str:
    found = []
    for index in range(min(parser.num_errors, 3)):
        error = parser.get_error(index)
        words = " ".join(error.desc().split())
        found.append(f"node {error.node_name()} ({error.node_operator()}): {words}")
    return "; ".join(found) or str(logger.reason())


def build(
    trt: Any,
    onnx: bytes,
    profile: Profile,
    target: Target,
    *,
    origin: str,
    ahead_of_time: bool = False,
    timings: bytes | None = None,
    progress: Progress | None = None,
) -> Built:
    """Build an engine.

    Args:
        trt: the package, see `load_package`.
        onnx: bytes of the ONNX file.
        profile: sizes of the input.
        target: what it is for; with `ahead_of_time` its compute capability is built for, else
            the GPU that is here.
        origin: the file's name, for errors.
        ahead_of_time: build without a GPU, which only `tensorrt-rtx` can.
        timings: what an earlier build measured.
        progress: called from the thread that builds.

    Raises:
        BackendError: with the reasons from TensorRT's log.
    """
    logger = collecting_logger(trt)
    builder, network = parse(trt, logger, onnx, origin)
    config = builder.create_builder_config()
    config.add_optimization_profile(_profile(builder, network, profile, origin))
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, WORKSPACE_BYTES)
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    # TensorFloat-32 keeps 10 of 23 bits: a file in fp32 is to be computed in fp32.
    config.clear_flag(trt.BuilderFlag.TF32)
    cache = None
    if ahead_of_time:
        _aim(trt, config, target, origin)
    else:
        config.builder_optimization_level = MEASURED_LEVEL
        cache = config.create_timing_cache(timings or b"")
        if cache is not None:
            config.set_timing_cache(cache, False)
    if progress is not None:
        config.progress_monitor = _monitor(trt, progress)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise BackendError(f"{origin}: TensorRT cannot build it: {logger.reason()}")
    return Built(bytes(plan), bytes(cache.serialize()) if cache is not None else None)


def _profile(builder: Any, network: Any, sizes: Profile, origin: str) -> Any:
    planes = network.get_input(0).shape[1]
    shapes = [
        (batch, planes, rows, cols)
        for batch, rows, cols in zip(sizes.batch, sizes.rows, sizes.cols, strict=True)
    ]
    made = builder.create_optimization_profile()
    made.set_shape(INPUT_NAME, *shapes)
    if not made:
        raise BackendError(f"{origin}: TensorRT refuses the sizes {shapes}")
    return made


def _aim(trt: Any, config: Any, target: Target, origin: str) -> None:
    """Have the engine built for a GPU that is not here.

    Raises:
        BackendError: a package that cannot, or a compute capability that it does not know.
    """
    known = getattr(trt, "ComputeCapability", None)
    if known is None or not hasattr(config, "set_compute_capability"):
        raise BackendError(
            f"{origin}: {target.package} builds only on the GPU that runs the engine; "
            "expected a GPU, or --target tensorrt-rtx"
        )
    name = "SM" + target.compute_capability.replace(".", "")
    if not hasattr(known, name):
        names = sorted(n for n in dir(known) if n.startswith("SM"))
        raise BackendError(
            f"compute capability {target.compute_capability}: {target.package} "
            f"{target.version} builds for {', '.join(names)}"
        )
    config.num_compute_capabilities = 1
    config.set_compute_capability(getattr(known, name), 0)


def _monitor(trt: Any, progress: Progress) -> Any:
    class Monitor(trt.IProgressMonitor):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.IProgressMonitor.__init__(self)
            self._steps: dict[str, int] = {}

        def phase_start(self, phase: str, parent: str | None, steps: int) -> None:
            """A phase begins; called by the library."""
            self._steps[phase] = steps
            progress(phase, 0, steps)

        def step_complete(self, phase: str, step: int) -> bool:
            """One step is done; False would stop the build."""
            progress(phase, step + 1, self._steps.get(phase, step + 1))
            return True

        def phase_finish(self, phase: str) -> None:
            """A phase is done."""
            steps = self._steps.pop(phase, 1)
            progress(phase, steps, steps)

    return Monitor()
