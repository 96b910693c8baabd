"""The C++ test program, plain and under the sanitizers. Each variant is built from scratch."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "csrc"
COMPILER = os.environ.get("CXX", "g++")
PATIENCE = 1200

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(2 * PATIENCE),
    pytest.mark.skipif(shutil.which(COMPILER) is None, reason=f"{COMPILER} is not installed"),
]


def core_sources() -> list[str]:
    """All of the core but its Python face."""
    found = [path for path in SOURCES.rglob("*.cc") if SOURCES / "tests" not in path.parents]
    return sorted(str(p) for p in found if "pybind11/" not in p.read_text(encoding="utf-8"))


def build(folder: Path, flags: list[str]) -> Path:
    """Compile each source by itself, two at a time, and link them."""
    program = folder / "core_test"
    test = SOURCES / "tests" / "core_test.cc"
    common = ["-std=c++20", "-pthread", *flags]
    commands = [
        [COMPILER, *common, "-c", source, "-o", str(folder / f"{i}.o")]
        for i, source in enumerate([*core_sources(), str(test)])
    ]
    running: list[tuple[list[str], subprocess.Popen]] = []
    for command in [*commands, None]:
        while running and (command is None or len(running) == 2):
            said, process = running.pop(0)
            output = process.communicate(timeout=PATIENCE)[0]
            assert process.returncode == 0, f"{' '.join(said)}\n{output}"
        if command:
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            running.append((command, process))
    objects = [command[-1] for command in commands]
    run([COMPILER, *common, *objects, "-o", str(program)])
    return program


def run(command: list[str], **options: str) -> str:
    done = subprocess.run(
        command,
        env={**os.environ, **options},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_plain(tmp_path):
    program = build(tmp_path, ["-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"])
    assert "games 400 " in run([str(program), "games", "400"])
    assert "threads done" in run([str(program), "threads"])
    # A wrong call is told apart from a failed check.
    assert subprocess.run([program, "nonsense"], stderr=subprocess.DEVNULL).returncode == 2


def test_addresses_and_undefined_behaviour(tmp_path):
    flags = ["-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined"]
    program = build(tmp_path, [*flags, "-fno-sanitize-recover=all"])
    options = {
        "ASAN_OPTIONS": "detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }
    assert "games 120 " in run([str(program), "games", "120"], **options)
    assert "threads done" in run([str(program), "threads"], **options)


def test_threads(tmp_path):
    program = build(tmp_path, ["-O1", "-g", "-fsanitize=thread"])
    # Kernels that spread addresses widely leave no room for the shadow memory.
    fixed = ["setarch", "-R"] if shutil.which("setarch") else []
    if fixed and subprocess.run([*fixed, "true"], stderr=subprocess.DEVNULL).returncode:
        fixed = []
    output = run([*fixed, str(program), "threads"], TSAN_OPTIONS="halt_on_error=1")
    assert "threads done" in output
    assert "WARNING: ThreadSanitizer" not in output
