"""The one form in which every measurement is written: environment, results, records."""

import importlib.metadata
import math
import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Any, Literal

import msgspec

import snakekit
from snakekit.bench.protocol import Json

_PACKAGES = ("aiohttp", "msgspec", "numpy", "onnxruntime", "onnxruntime-gpu", "torch", "tensorrt")


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One figure; `name` is dotted and stable, `samples` how many values it was taken from."""

    name: str
    value: float
    unit: str
    better: Literal["higher", "lower"]
    samples: int
    params: dict[str, Any] = {}


def cpu_model() -> str:
    """Return the processor's name, `unknown` where the system does not tell."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


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
        "system": f"{platform.system()} {platform.release()}",
        "versions": versions,
        "commit": source_commit(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def write_report(path: Path, results: list[Result], **records: Any) -> None:
    """Write the report file whole or not at all. Figures that are NaN are left out.

    Raises:
        OSError: the file cannot be written.
    """
    kept = [result for result in results if not math.isnan(result.value)]
    content = {"environment": environment(), "results": kept, **records}
    text = msgspec.json.format(msgspec.json.encode(content), indent=2)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary.write_bytes(text + b"\n")
    temporary.replace(path)
