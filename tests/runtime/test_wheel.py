"""What an installed package carries: everything that serving needs, and nothing of the checkout."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_wheel_serves_the_shipped_model(tmp_path):
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", str(tmp_path)]
    subprocess.run([*command, str(ROOT)], check=True, capture_output=True, timeout=800)
    (wheel,) = tmp_path.glob("snakekit-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for wanted in (
        "models/standard.onnx",
        "py.typed",
        "_core.pyi",
        "runtime/server.py",
        "runtime/watch/page.js",
    ):
        assert f"snakekit/{wanted}" in names
    assert any(name.startswith("snakekit/_core.") and name.endswith(".so") for name in names)
    assert not any(name.startswith(("tests/", "csrc/")) for name in names)
    assert not any("__pycache__" in name for name in names)
