"""Instructions, nodes and allocations of fixed work: alike on busy and idle machines.

A small program (`csrc/tests/counts.cc`) is compiled with the core's sources. For instructions it
runs twice under callgrind with different amounts of work; the difference belongs to the work alone.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "csrc"
UNITS = {
    "rules": "instructions per turn, 11x11, 4 snakes",
    "v1": "instructions per state, one observation a living snake",
    "v2": "instructions per state, one observation a living snake",
    "v3": "instructions per state, one observation for all snakes",
    "search": "instructions per node, duels at depth 6",
    "search4": "instructions per node, 4 snakes at depth 3",
}
_REPEATS = (1, 3)
_COMPILE = ["g++", "-std=c++20", "-O3", "-pthread"]


class CountError(RuntimeError):
    """Counting is not possible here; the message says why."""


@dataclass(frozen=True)
class Work:
    """What one run of the program did."""

    units: int
    """Turns, states or nodes."""
    calls: int
    """Calls of the function measured, which allocations are counted for."""
    allocations: int


def compiler() -> str:
    """Return the compiler's name and version and the C library's.

    Raises:
        CountError: no g++.
    """
    try:
        done = subprocess.run(["g++", "--version"], capture_output=True, text=True, timeout=30)
        version = done.stdout.splitlines()[0]
    except (OSError, IndexError, subprocess.SubprocessError):
        raise CountError("g++ is not installed") from None
    return f"{version}, libc {os.confstr('CS_GNU_LIBC_VERSION') or 'unknown'}"


class Counter:
    """The compiled program; use as a context manager, which removes it again."""

    def __enter__(self) -> "Counter":
        """Compile.

        Raises:
            CountError: no sources (an installed package), no g++ or no valgrind.
        """
        for tool in ("g++", "valgrind"):
            if shutil.which(tool) is None:
                raise CountError(f"{tool} is not installed")
        if not (SOURCES / "tests" / "counts.cc").exists():
            raise CountError("the C++ sources are not beside this package")
        self._folder = tempfile.TemporaryDirectory()
        self._program = Path(self._folder.name) / "counts"
        files = [SOURCES / "tests" / "counts.cc"]
        files += [
            f
            for f in [*sorted(SOURCES.glob("*.cc")), *sorted(SOURCES.glob("*/*.cc"))]
            if f.name != "module.cc" and not f.name.startswith("bind") and f.parent.name != "tests"
        ]
        try:
            self._compile(files)
        except BaseException:
            self._folder.cleanup()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the program."""
        self._folder.cleanup()

    def _compile(self, files: Iterable[Path]) -> None:
        def one(number_file: tuple[int, Path]) -> str:
            number, file = number_file
            target = str(Path(self._folder.name) / f"{number}.o")
            _run([*_COMPILE, "-c", "-o", target, str(file)], "g++")
            return target

        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            objects = list(pool.map(one, enumerate(files)))
        _run([*_COMPILE, "-o", str(self._program), *objects], "g++")

    def work(self, what: str, repeats: int = 1) -> Work:
        """Run `what` (a key of UNITS) outside valgrind.

        Raises:
            CountError: the program failed.
        """
        return _work(_run([str(self._program), what, str(repeats)], "counts"))

    def _instructions(self, what: str, repeats: int) -> tuple[int, Work]:
        log = Path(self._folder.name) / "log"
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
        command += [f"--log-file={log}", str(self._program), what, str(repeats)]
        done = _work(_run(command, "valgrind"))
        found = re.search(r"Collected : (\d+)", log.read_text())
        if found is None:
            raise CountError("valgrind failed: it printed no count")
        return int(found.group(1)), done

    def instructions(self, what: str) -> tuple[float, int]:
        """Return instructions per unit of `what`, and how many units they are of.

        Raises:
            CountError: valgrind failed.
        """
        (few, less), (many, more) = (self._instructions(what, n) for n in _REPEATS)
        units = more.units - less.units
        if units <= 0:
            raise CountError(f"the program does no {what}")
        return (many - few) / units, units


def _run(command: list[str], name: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        raise CountError(f"{name} did not end within 10 minutes") from None
    if done.returncode != 0:
        raise CountError(f"{name} failed: {done.stderr.strip()[:500]}")
    return done.stdout


def _work(text: str) -> Work:
    units, calls, allocations = map(int, text.split())
    return Work(units, calls, allocations)
