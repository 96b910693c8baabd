"""The one form in which every measurement is written: environment, results, records."""

import importlib.metadata
import math
import os
import platform
import statistics
import subprocess
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec

import snakekit
from snakekit.bench.protocol import Json
from snakekit.bench.tally import percentile
from snakekit.trainer.plots import figure

_PACKAGES = (
    "aiohttp", "msgspec", "numpy", "onnxruntime", "onnxruntime-gpu", "openvino", "torch", "tensorrt"
)  # fmt: skip


_REFERENCE_TIMES = 30


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One figure; `name` is dotted and stable, `samples` how many values it was taken from.

    `params["spread"]` is the noise of the figure within its own run, see `spread`.
    """

    name: str
    value: float
    unit: str
    better: Literal["higher", "lower"]
    samples: int
    params: dict[str, Any] = {}


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """What was not measured, and the reason in one sentence."""

    what: str
    why: str


@dataclass(frozen=True)
class Grid:
    """A table: rows of text under `columns`; the first `words` columns hold words, not figures."""

    columns: list[str]
    rows: list[list[str]]
    words: int = 1


@dataclass
class Section:
    """One measure's part of a report."""

    name: str
    title: str
    results: list[Result]
    missing: list[Missing] = field(default_factory=list)
    grid: Grid | None = None
    """The figures in a form that suits them better than one a line."""
    plots: list[str] = field(default_factory=list)
    """Pictures as HTML fragments, see `plots.py`."""
    failed: bool = False
    """The figures cannot be trusted: what was measured did not work as it should."""

    def table(self) -> Grid:
        """Return the table to show."""
        if self.grid is not None:
            return self.grid
        rows = []
        for r in self.results:
            noise = r.params.get("spread")
            noise_text = f"{noise:.1%}" if isinstance(noise, float) else ""
            rows.append([r.name, figure(r.value), r.unit, noise_text, f"{r.samples:,}"])
        return Grid(["figure", "value", "unit", "noise", "samples"], rows)


def spread(values: Sequence[float]) -> float:
    """Return the interquartile range of a figure's rounds as a share of their median.

    NaN with fewer than three rounds, which tell nothing about noise.
    """
    if len(values) < 3 or not all(map(math.isfinite, values)):
        return math.nan
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / abs(middle) if middle else math.nan


def noise_of(values: Sequence[float]) -> dict[str, float]:
    """Return `spread` as parameters of a result: empty where it is not known."""
    found = spread(values)
    return {} if math.isnan(found) else {"spread": round(found, 4)}


def noise_of_share(parts: Sequence[Sequence[float]], share: float) -> dict[str, float]:
    """Return `spread` of a percentile: empty where a part is too short to have such a tail."""
    if any(len(part) * (1 - share) < 1 - 1e-9 for part in parts):
        return {}
    return noise_of([percentile(part, share) for part in parts])


def cpu_model() -> str:
    """Return the processor's name, `unknown` where the system does not tell."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def gpu_model() -> str | None:
    """Return name and driver of the first NVIDIA GPU, None without one."""
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip().split("\n")[0] or None


def source_commit() -> str:
    """Return the commit of the running source, ending in `-dirty` with local changes.

    `unknown` for an installed package, which is not in a checkout of its own.
    """
    folder = Path(__file__).resolve().parent
    if not (folder.parent / ".git").exists():
        return "unknown"
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip() or "unknown"


def environment() -> Json:
    """Return what a figure depends on besides the code measured."""
    versions = {"snakekit": snakekit.__version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "cpu": cpu_model(),
        "cpus": len(os.sched_getaffinity(0)),
        "gpu": gpu_model(),
        "load": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.release()}",
        "versions": versions,
        "commit": source_commit(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def reference_ms() -> float:
    """Return the mean wall time in ms of a fixed piece of work that no change here affects."""
    block = bytes(1 << 20)
    begin = time.perf_counter()
    for _ in range(_REFERENCE_TIMES):
        zlib.adler32(zlib.compress(block, 1))
    return (time.perf_counter() - begin) * 1000 / _REFERENCE_TIMES


def write_report(path: Path, results: list[Result], **records: Any) -> None:
    """Write the report file whole or not at all. Figures that are not finite are left out.

    `records` may hold an `environment` that is known already.

    Raises:
        OSError: the file cannot be written.
    """
    kept = [result for result in results if math.isfinite(result.value)]
    facts = records.pop("environment", None) or environment()
    content = {"environment": facts, "results": kept, **records}
    text = msgspec.json.format(msgspec.json.encode(content), indent=2)
    write_file(path, text + b"\n")


def write_file(path: Path, content: bytes) -> None:
    """Write a file by way of a temporary one, so that it is whole or not there.

    Raises:
        OSError: the file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary.write_bytes(content)
    temporary.replace(path)
