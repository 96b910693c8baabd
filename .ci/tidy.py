"""Run clang-tidy over the C++ sources of a configured build folder, two files at a time."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec


def main() -> int:
    """Return 1 when any file has a finding."""
    build = Path(sys.argv[1])
    commands = msgspec.json.decode((build / "compile_commands.json").read_bytes())
    files = sorted({entry["file"] for entry in commands})
    tidy = [str(Path(sys.executable).with_name("clang-tidy")), "-p", str(build), "--quiet"]
    with ThreadPoolExecutor(2) as pool:
        runs = list(
            pool.map(lambda f: subprocess.run([*tidy, f], capture_output=True, text=True), files)
        )
    failed = [run for run in runs if run.returncode != 0]
    for run in failed:
        print(run.stdout, run.stderr)
    print(f"clang-tidy: {len(files)} files, {len(failed)} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
