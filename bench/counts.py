"""Instructions for a unit of work, counted by callgrind: alike on busy and idle machines.

A small program (`csrc/tests/counts.cc`) is compiled with the core's sources and run twice with
different amounts of work; the difference belongs to the work alone.
"""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "csrc"
UNITS = {
    "rules": "instructions per turn, 11x11, 4 snakes",
    "v1": "instructions per state, one observation a living snake",
    "v2": "instructions per state, one observation a living snake",
    "search": "instructions per node, duels at depth 3",
}
_REPEATS = (1, 3)


class CountError(RuntimeError):
    """Counting is not possible here; the message says why."""


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
        skipped = {"module.cc"}
        files = [
            str(f)
            for f in [*sorted(SOURCES.glob("*.cc")), *sorted(SOURCES.glob("*/*.cc"))]
            if f.name not in skipped and not f.name.startswith("bind") and f.parent.name != "tests"
        ]
        command = ["g++", "-std=c++20", "-O3", "-pthread", "-o", str(self._program)]
        done = subprocess.run(
            [*command, str(SOURCES / "tests" / "counts.cc"), *files], capture_output=True, text=True
        )
        if done.returncode != 0:
            self._folder.cleanup()
            raise CountError(f"g++ failed: {done.stderr.strip()[:500]}")
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the program."""
        self._folder.cleanup()

    def _run(self, what: str, repeats: int) -> tuple[int, int]:
        log = Path(self._folder.name) / "log"
        command = [
            "valgrind",
            "--tool=callgrind",
            "--callgrind-out-file=/dev/null",
            f"--log-file={log}",
            str(self._program),
            what,
            str(repeats),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        found = re.search(r"Collected : (\d+)", log.read_text())
        if done.returncode != 0 or found is None:
            raise CountError(f"valgrind failed: {done.stderr.strip()[:300]}")
        return int(found.group(1)), int(done.stdout)

    def count(self, what: str) -> tuple[float, int]:
        """Return instructions per unit of `what` (a key of UNITS), and how many units they are of.

        Raises:
            CountError: valgrind failed.
        """
        (few, few_units), (many, many_units) = (self._run(what, n) for n in _REPEATS)
        return (many - few) / (many_units - few_units), many_units - few_units
