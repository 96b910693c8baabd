"""Does ONNX Runtime's real CUDA provider have a kernel for every node? Decided without a GPU."""

import platform
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import cuda_stand_in
import numpy as np
import onnx
import pytest

from snakekit.export import pipeline
from snakekit.export.fp16 import halve
from snakekit.export.onnxfile import to_onnx, with_card
from snakekit.runtime.models import find_model
from snakekit.trainer import checkpoint as store
from snakekit.trainer.checkpoint import Checkpoint

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
SCRIPT = Path(cuda_stand_in.__file__)
PACKAGE = "onnxruntime-gpu==1.31.1"
"""Linked to the libraries that `cuda_stand_in` stands in for."""


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], str]:
    """Open a model with the CUDA provider of onnxruntime-gpu; returns what is said."""
    if platform.machine() != "x86_64" or not shutil.which("gcc") or not shutil.which("nm"):
        pytest.skip("needs gcc and nm on x86-64")
    folder = tmp_path_factory.mktemp("cuda")
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"]
    done = subprocess.run([*command, "-d", str(folder), PACKAGE], capture_output=True)
    wheels = list(folder.glob("onnxruntime_gpu*.whl"))
    if done.returncode != 0 or not wheels:
        pytest.skip("onnxruntime-gpu cannot be downloaded here")
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(folder / "packages")
    wheels[0].unlink()
    capi = folder / "packages" / "onnxruntime" / "capi"
    cuda_stand_in.build(capi / "libonnxruntime_providers_cuda.so", folder)

    def run(model: Path) -> str:
        words = [sys.executable, str(SCRIPT), str(folder / "packages"), str(folder), str(model)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120)
        return done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr

    return run


def test_every_node_of_our_files_runs_on_cuda(
    opened: Callable[[Path], str], proto: onnx.ModelProto, saved: Checkpoint, tmp_path: Path
) -> None:
    graphs = {"compact": (proto, saved.card)}
    for net in ("article", "all-seat"):
        made = pipeline.untrained(net, 0)
        graphs[net] = to_onnx(store.restore_model(made, origin="x").eval(), made.card), made.card
    files = {name: with_card(graph, card) for name, (graph, card) in graphs.items()}
    files |= {f"{name}.fp16": with_card(halve(g), card) for name, (g, card) in graphs.items()}
    files["shipped"] = find_model(None).read_bytes()
    for name, blob in files.items():
        path = tmp_path / f"{name}.onnx"
        path.write_bytes(blob)
        assert opened(path) == "CUDAExecutionProvider", name


def test_a_node_without_a_kernel_is_refused(
    opened: Callable[[Path], str], proto: onnx.ModelProto, saved: Checkpoint, tmp_path: Path
) -> None:
    slow = onnx.ModelProto()
    slow.CopyFrom(proto)
    # The bytes compared before they are converted: CUDA has no such kernel.
    zero = onnx.numpy_helper.from_array(np.zeros((), np.uint8), "nought")
    slow.graph.initializer.append(zero)
    old = next(n for n in slow.graph.node if n.op_type == "Greater")
    cut = next(n for n in slow.graph.node if n.output[0] == old.input[0])
    cut.input[0] = "obs"
    old.input[1] = "nought"
    del slow.graph.value_info[:]
    path = tmp_path / "slow.onnx"
    path.write_bytes(with_card(slow, saved.card))
    assert "backend cuda: CUDAExecutionProvider cannot run slow.onnx here" in opened(path)
    int8 = opened(find_model("compact.int8"))
    assert "an int8 file for CPUs runs on no GPU, take fp16" in int8
