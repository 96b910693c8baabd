"""What needs an NVIDIA GPU: every backend against the net's own answers, engines, serving.

`.ci/gpu.sh OUT` runs all of it with the benchmarks. A backend whose package is not installed is
skipped with its reason.
"""

import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from snakekit.export.options import ExportConfig
from snakekit.export.parity import Gate, gate_of
from snakekit.export.samples import Truth, unpack
from snakekit.runtime.backends import (
    Backend,
    BackendError,
    BackendOptions,
    check_installed,
    load_backend,
)
from snakekit.runtime.config import ServerConfig
from snakekit.runtime.models import find_model

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]

NATIVE = ("tensorrt", "tensorrt-rtx")
KINDS = ("cuda", "ort-tensorrt", *NATIVE)
BATCHES = (1, 2, 7, 64, 256)
ONE_SEAT, ALL_SEATS = "compact", "standard"


@pytest.fixture(scope="session", autouse=True)
def gpu() -> str:
    """Skip everything where there is no GPU; return its name."""
    try:
        command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except OSError:
        pytest.skip("no nvidia-smi, so no NVIDIA GPU")
    if done.returncode != 0 or not done.stdout.strip():
        pytest.skip(f"no NVIDIA GPU: {done.stdout or done.stderr}")
    return done.stdout.splitlines()[0]


def need(kind: str) -> None:
    try:
        check_installed(kind)
    except BackendError as error:
        pytest.skip(str(error))


def reference(name: str) -> Truth:
    path = find_model(name)
    with path.with_suffix(".json").open("rb") as file:
        weights = msgspec.json.decode(file.read())["weights_sha256"]
    return unpack(path.with_suffix(".parity.npz"), weights)


@pytest.fixture(scope="session")
def truth() -> Truth:
    return reference(ONE_SEAT)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The shipped models in the precisions that GPUs run; those for all seats begin with `all`."""
    pytest.importorskip("torch", reason="exporting needs torch")
    pytest.importorskip("onnx", reason="exporting needs onnx")
    from snakekit.export.onnxfile import checkpoint_of
    from snakekit.export.pipeline import export

    folder = tmp_path_factory.mktemp("models")
    found: dict[str, Path] = {}
    for prefix, name in (("", ONE_SEAT), ("all ", ALL_SEATS)):
        path = find_model(name)
        done = export(checkpoint_of(path), ExportConfig(precision="fp16"), folder, origin="shipped")
        found |= {f"{prefix}fp32": path, f"{prefix}fp16": done.files[0]}
    return found


@pytest.fixture
def opened(
    request: pytest.FixtureRequest, models: dict[str, Path], tmp_path_factory: Any
) -> Iterator[tuple[str, str, Backend]]:
    """A backend with a model, as `(kind, precision)` of the test's parameter says."""
    kind, precision = request.param
    need(kind)
    options = BackendOptions(engine_cache=str(tmp_path_factory.getbasetemp() / "engines"))
    backend, _ = load_backend(kind, models[precision], options=options)
    yield kind, precision, backend
    backend.close()


every = pytest.mark.parametrize(
    "opened", [(k, p) for k in KINDS for p in ("fp32", "fp16")], indirect=True, ids=str
)


@every
def test_answers_are_those_of_the_net(opened: tuple[str, str, Backend], truth: Truth) -> None:
    kind, precision, backend = opened
    gate = gate_of(precision, truth, backend.infer)
    assert gate.passed, f"{kind}: {gate.text()}"


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_for_all_seats_answers_as_the_net(
    kind: str, precision: str, models: dict[str, Path], tmp_path: Path
) -> None:
    need(kind)
    options = BackendOptions(engine_cache=str(tmp_path))
    backend, card = load_backend(kind, models[f"all {precision}"], options=options)
    gate = gate_of(precision, reference(ALL_SEATS), backend.infer)
    backend.close()
    assert card.slots
    assert gate.passed, f"{kind}: {gate.text()}"


@every
def test_it_runs_on_the_gpu(opened: tuple[str, str, Backend], gpu: str) -> None:
    kind, precision, backend = opened
    info = backend.describe()
    assert (info.requested, info.precision) == (kind, precision)
    if kind in NATIVE:
        assert info.device == gpu
    assert backend.pads


@every
def test_answers_repeat_at_every_batch(opened: tuple[str, str, Backend], truth: Truth) -> None:
    _, _, backend = opened
    # First runs, captures and launches of graphs of several sizes, in turn.
    obs = np.concatenate([truth.samples[0].obs] * 2)
    first = {n: backend.infer(np.ascontiguousarray(obs[:n])) for n in BATCHES}
    for _ in range(3):
        for count in BATCHES:
            policy, value = backend.infer(np.ascontiguousarray(obs[:count]))
            np.testing.assert_array_equal(policy, first[count][0])
            np.testing.assert_array_equal(value, first[count][1])


@pytest.mark.parametrize("kind", NATIVE)
@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_an_exported_engine_passes_its_gate_and_is_kept(
    kind: str, precision: str, tmp_path: Path
) -> None:
    need(kind)
    pytest.importorskip("torch", reason="exporting needs torch")
    from snakekit.export.onnxfile import checkpoint_of
    from snakekit.export.pipeline import export

    config = ExportConfig(precision=precision, target=kind)
    done = export(checkpoint_of(find_model(None)), config, tmp_path, origin="shipped")
    gate: Gate = done.gates[-1]
    assert gate.name == f"{precision} engine"
    assert gate.passed
    [engine] = tmp_path.glob("*.engine")
    assert engine.with_name(engine.name + ".layers.json").stat().st_size > 0
    backend, card = load_backend(kind, engine)
    assert card.precision == precision
    backend.close()
    blob = bytearray(engine.read_bytes())
    blob[len(blob) // 2] ^= 1
    engine.write_bytes(bytes(blob))
    with pytest.raises(BackendError, match="cut short or altered"):
        load_backend(kind, engine)


@pytest.mark.parametrize("kind", NATIVE)
def test_two_engines_in_two_threads(
    kind: str, models: dict[str, Path], truth: Truth, tmp_path: Path
) -> None:
    need(kind)
    options = BackendOptions(engine_cache=str(tmp_path))
    backends = [load_backend(kind, models[p], options=options)[0] for p in ("fp32", "fp16")]
    obs = truth.samples[0].obs[:64]
    failures: list[str] = []

    def work(backend: Backend) -> None:
        wanted = backend.infer(obs)[0]
        failures.extend(
            backend.describe().precision
            for _ in range(200)
            if not np.array_equal(backend.infer(obs)[0], wanted)
        )

    threads = [threading.Thread(target=work, args=(b,)) for b in backends]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for backend in backends:
        backend.close()
    assert failures == []


@pytest.mark.parametrize("kind", KINDS)
def test_the_cpu_and_the_gpu_agree(kind: str, truth: Truth, tmp_path: Path) -> None:
    need(kind)
    options = BackendOptions(
        check_backends=("cpu", kind), check_tolerance=1e-3, engine_cache=str(tmp_path)
    )
    backend, _ = load_backend("check", find_model(ONE_SEAT), options=options)
    for sample in truth.samples:
        for start in range(0, len(sample.obs), 64):
            backend.infer(sample.obs[start : start + 64])
    assert (backend.compared, backend.disagreements) == (truth.positions, 0)  # type: ignore[attr-defined]
    backend.close()


@pytest.mark.parametrize("kind", KINDS)
def test_the_server_warms_up_and_serves_from_it(kind: str, tmp_path: Path) -> None:
    need(kind)
    from snakekit.runtime.loaded import open_checked

    config = ServerConfig(backend=kind, engine_cache=str(tmp_path))
    backend, card = open_checked(config)
    obs = np.zeros((1, card.planes, 11, 11), np.uint8)
    obs[:, :2] = 1
    started = time.perf_counter()
    for _ in range(100):
        backend.infer(obs)
    seconds = (time.perf_counter() - started) / 100
    backend.close()
    # A warmed-up batch of one that takes longer runs on something else, or compiles each time.
    assert seconds < 0.02
