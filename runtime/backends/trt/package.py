"""The two packages: whether they are here, what they are called, and their log."""

import importlib
import importlib.util
from typing import Any

from snakekit.runtime.backends.base import BackendError

MODULES = {"tensorrt": "tensorrt", "tensorrt-rtx": "tensorrt_rtx"}
OLDEST = {"tensorrt": 10, "tensorrt-rtx": 1}
"""Major versions from which on networks can be strongly typed."""


def check_package(kind: str) -> None:
    """Refuse to go on without the package, without importing it.

    Raises:
        BackendError: with the command that installs it.
    """
    if importlib.util.find_spec(MODULES[kind]) is None:
        raise BackendError(
            f"backend {kind}: {kind} is not installed; run: pip install 'snakekit[{kind}]'"
        )


def load_package(kind: str) -> Any:
    """Import the package.

    Raises:
        BackendError: not installed, its libraries cannot be loaded, or too old.
    """
    check_package(kind)
    try:
        module = importlib.import_module(MODULES[kind])
    except (ImportError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise BackendError(
            f"backend {kind}: {kind} cannot be loaded ({reason}); expected its libraries, "
            f"run: pip install --force-reinstall 'snakekit[{kind}]'"
        ) from None
    version = str(module.__version__)
    if int(version.split(".")[0]) < OLDEST[kind]:
        raise BackendError(
            f"backend {kind}: {kind} {version} is too old, expected {OLDEST[kind]} or newer"
        )
    return module


def collecting_logger(trt: Any) -> Any:
    """Return a logger for `trt` that keeps errors and warnings instead of printing them.

    TensorRT reports failures by returning None; what was wrong only the log tells.
    """

    class Collector(trt.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.ILogger.__init__(self)
            self.errors: list[str] = []
            self.warnings: list[str] = []

        def log(self, severity: Any, text: str) -> None:
            """Keep one line; called by the library."""
            if severity in (trt.ILogger.Severity.ERROR, trt.ILogger.Severity.INTERNAL_ERROR):
                self.errors.append(" ".join(text.split()))
            elif severity == trt.ILogger.Severity.WARNING:
                self.warnings.append(" ".join(text.split()))

        def reason(self) -> str:
            """Return the first errors in one line."""
            kept = [line for line in self.errors if "node ---" not in line]
            return "; ".join(kept[:3])[:500] or "no reason given"

    return Collector()
