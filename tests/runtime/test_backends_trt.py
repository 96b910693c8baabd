"""TensorRT without a GPU: engine files, the runner against stand-ins, and real builds."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from backend_parts import FakeCuda, FakeTensorrt, answers, batch, card, shipped

from snakekit.runtime.backends import BackendError, BackendOptions, load_backend
from snakekit.runtime.backends.random_play import RandomBackend
from snakekit.runtime.backends.trt import engine_file, package, runner
from snakekit.runtime.backends.trt.build import Built
from snakekit.runtime.backends.trt.engine_file import (
    NOT_RUN,
    Manifest,
    Target,
    engine_path,
    manifest_path,
    profile_of,
    read_engine,
    read_manifest,
    why_unfit,
)
from snakekit.runtime.backends.trt.runner import TensorrtBackend, engine_of
from snakekit.runtime.contract import CardError

HERE = Target(package="tensorrt", version="11.4.0", gpu="Fake GPU", compute_capability="9.0")
PLAN = b"an engine"


def write_manifest(engine: Path, manifest: Manifest) -> None:
    manifest_path(engine).write_bytes(engine_file.manifest_bytes(manifest))


def manifest(**changes: Any) -> Manifest:
    facts = {
        "target": HERE,
        "profile": profile_of(card(), (1, 4, 8)),
        "status": NOT_RUN,
        "onnx_sha256": "0" * 64,
        "engine_sha256": engine_file.sha256(PLAN),
        "card": card(),
    }
    return Manifest(**{**facts, **changes})


def test_an_engine_is_called_after_all_that_it_depends_on() -> None:
    path = engine_path(Path("x"), card(precision="fp16"), HERE)
    assert path == Path("x/tiny.fp16.abababababababab.tensorrt-11.4.0.fake-gpu-sm90.engine")
    for other in (
        engine_path(Path("x"), card(precision="fp16", weights_sha256="cd" * 32), HERE),
        engine_path(Path("x"), card(precision="fp32"), HERE),
        *(
            engine_path(Path("x"), card(precision="fp16"), msgspec.structs.replace(HERE, **change))
            for change in (
                {"version": "11.5.0"},
                {"package": "tensorrt-rtx"},
                {"gpu": "Other"},
                {"compute_capability": "8.6"},
            )
        ),
    ):
        assert other != path


def test_sizes_cover_the_official_boards() -> None:
    found = profile_of(card(boards=[(19, 19), (7, 7)]), (1, 8, 256))
    assert (found.rows, found.cols, found.batch) == ((7, 19, 25), (7, 19, 25), (1, 8, 256))
    fixed = profile_of(card(view=(23, 23)), (1, 1, 1))
    assert fixed.rows == fixed.cols == (23, 23, 23)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": "11.5.0"}, "built for tensorrt version 11.5.0, here is 11.4.0"),
        ({"gpu": "Other GPU"}, "built for Other GPU, here is Fake GPU"),
        ({"compute_capability": "8.6"}, "built for compute capability 8.6, here is 9.0"),
        ({"package": "tensorrt-rtx"}, "built for package tensorrt-rtx, here is tensorrt"),
    ],
)
def test_a_foreign_engine_is_told_by_its_manifest(change: dict[str, str], words: str) -> None:
    assert why_unfit(manifest(target=msgspec.structs.replace(HERE, **change)), HERE) == words
    assert why_unfit(manifest(), HERE) is None
    ahead = manifest(target=msgspec.structs.replace(HERE, gpu="any"))
    assert why_unfit(ahead, HERE) is None


def test_no_engine_is_built_for_another_encoder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "m.onnx"
    model.write_bytes(b"x")
    monkeypatch.setattr(runner, "card_of", lambda *_, **__: card(encoder=99))
    with pytest.raises(CardError, match=r"m\.onnx: made for encoder version 99"):
        engine_of(None, model, tmp_path, HERE, (1, 4, 8))
    assert list(tmp_path.iterdir()) == [model]


def test_manifests_that_cannot_be_read(tmp_path: Path) -> None:
    engine = tmp_path / "x.engine"
    with pytest.raises(BackendError, match=r"x\.engine\.json: cannot be read"):
        read_manifest(engine)
    write_manifest(engine, manifest())
    assert read_manifest(engine) == manifest()
    place = manifest_path(engine)
    text = place.read_bytes()
    place.write_bytes(text[:-40])
    with pytest.raises(BackendError, match="cut short or not JSON"):
        read_manifest(engine)
    for change, words in (
        ({"schema": 9}, "manifest schema 9, this version reads 1"),
        ({"status": 5}, r"Expected `str`, got `int` - at `\$.status`"),
        ({"strange": 1}, "unknown field `strange`"),
    ):
        place.write_text(json.dumps({**json.loads(text), **change}))
        with pytest.raises(BackendError, match=words):
            read_manifest(engine)
    engine.write_bytes(PLAN[:-1])
    with pytest.raises(BackendError, match=r"x\.engine: cut short or altered"):
        read_engine(engine, manifest())


@pytest.fixture
def cuda() -> FakeCuda:
    return FakeCuda()


@pytest.fixture
def backend(cuda: FakeCuda) -> TensorrtBackend:
    return TensorrtBackend(FakeTensorrt(cuda), cuda, PLAN, manifest(), requested="tensorrt")


def test_answers_are_those_of_the_engine(backend: TensorrtBackend) -> None:
    kept = []
    # Sizes in turn and again, so that first runs, captures and launches follow each other.
    for turn, (count, rows, cols) in enumerate([(3, 11, 11), (1, 7, 9), (8, 25, 25)] * 3):
        obs = batch(count, rows, cols, seed=turn)
        policy, value = backend.infer(obs)
        kept.append((obs, policy, value))
    for obs, policy, value in kept:
        wanted = RandomBackend().infer(obs)
        np.testing.assert_array_equal(policy, wanted[0])
        np.testing.assert_array_equal(value, wanted[1])
        assert policy.dtype == value.dtype == np.float32


def test_a_model_for_all_seats_answers_for_all(cuda: FakeCuda) -> None:
    slots = 3
    every = card(encoder=3, planes=6 + 9 * slots, net_options={"slots": slots})
    assert every.slots == slots
    made = manifest(card=every, profile=profile_of(every, (1, 4, 8)))
    backend = TensorrtBackend(FakeTensorrt(cuda, slots), cuda, PLAN, made, requested="tensorrt")
    rng = np.random.default_rng(2)
    for count in (1, 5, 8, 5):
        obs = rng.integers(0, 255, (count, every.planes, 11, 11), np.uint8)
        policy, value = backend.infer(obs)
        wanted = answers(obs, slots)
        np.testing.assert_array_equal(policy, wanted[0])
        np.testing.assert_array_equal(value, wanted[1])
        assert (policy.shape, value.shape) == ((count, slots, 4), (count, slots + 1))


def test_a_size_is_run_once_then_launched_as_a_graph(
    backend: TensorrtBackend, cuda: FakeCuda
) -> None:
    backend.infer(batch(2))
    assert cuda.calls == ["enter", "in", "run", "out", "out", "wait", "capture"]
    cuda.calls.clear()
    backend.infer(batch(2))
    assert cuda.calls == ["enter", "launch", "wait"]


def test_graphs_are_bounded(
    backend: TensorrtBackend, cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "MOST_GRAPHS", 1)
    backend.infer(batch(1))
    cuda.calls.clear()
    for _ in range(2):
        backend.infer(batch(2))
    assert "capture" not in cuda.calls
    assert cuda.calls.count("run") == 2


def test_sizes_beyond_the_profile_are_refused(backend: TensorrtBackend) -> None:
    for count, rows, cols in ((9, 11, 11), (1, 26, 11), (1, 11, 6)):
        with pytest.raises(BackendError, match=r"the engine takes .* \(1, 4, 8\).*found"):
            backend.infer(batch(count, rows, cols))
    with pytest.raises(BackendError, match="found 3 planes"):
        backend.infer(np.zeros((1, 3, 11, 11), np.uint8))


def test_failures_say_what_the_log_says(cuda: FakeCuda) -> None:
    package = FakeTensorrt(cuda)
    package.loads = False
    with pytest.raises(BackendError, match="cannot be loaded: engine plan file is not compatible"):
        TensorrtBackend(package, cuda, PLAN, manifest(), requested="tensorrt")
    package.loads, package.runs = True, False
    backend = TensorrtBackend(package, cuda, PLAN, manifest(), requested="tensorrt")
    with pytest.raises(BackendError, match="the engine failed: out of memory"):
        backend.infer(batch(1))
    backend.close()
    assert cuda.closed


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A machine with a stand-in for a GPU; returns the builds that took place."""
    cuda, builds = FakeCuda(), []
    monkeypatch.setattr(runner, "Cuda", lambda device: cuda)
    monkeypatch.setattr(runner, "load_package", lambda kind: FakeTensorrt(cuda))
    monkeypatch.setattr("snakekit.runtime.backends.check_installed", lambda *_: None)

    def build(trt: Any, onnx: bytes, *_: Any, origin: str, timings: Any, **__: Any) -> Built:
        builds.append(f"{origin} {timings!r}")
        return Built(PLAN, b"timings")

    monkeypatch.setattr(runner, "build", build)
    return builds


def test_an_engine_is_built_once_and_again_when_stale(tmp_path: Path, machine: list[str]) -> None:
    model = tmp_path / "model.onnx"
    model.write_bytes(shipped().read_bytes())
    folder = tmp_path / "engines"
    options = BackendOptions(engine_cache=str(folder))

    def opened() -> int:
        backend, found = load_backend("tensorrt", model, options=options)
        assert backend.describe().actual == "tensorrt"
        assert backend.describe().device == "Fake GPU"
        assert found.name == "compact"
        backend.close()
        return len(machine)

    assert opened() == 1
    assert opened() == 1
    names = sorted(p.name for p in folder.iterdir())
    [engine] = [n for n in names if n.endswith(".engine")]
    assert names == [engine, engine + ".json", "timings.tensorrt-11.4.0.fake-gpu-sm90.cache"]
    # Another file of the same weights, as a second calibration makes one.
    model.write_bytes(shipped().read_bytes() + b"\x12\x00")
    assert opened() == 2
    assert machine == ["model.onnx None", "model.onnx b'timings'"]
    (folder / engine).write_bytes(b"cut")
    assert opened() == 3
    (folder / (engine + ".json")).unlink()
    assert opened() == 4


def test_an_engine_of_elsewhere_is_refused(tmp_path: Path, machine: list[str]) -> None:
    engine = tmp_path / "x.engine"
    engine.write_bytes(PLAN)
    write_manifest(engine, manifest())
    backend, _ = load_backend("tensorrt", engine)
    backend.close()
    for change, words in (
        ({"target": msgspec.structs.replace(HERE, gpu="Other")}, "built for Other, here is Fake"),
        ({"engine_sha256": "0" * 64}, "cut short or altered"),
        ({"card": card(encoder=9)}, "encoder version 9"),
    ):
        write_manifest(engine, manifest(**change))
        with pytest.raises(BackendError, match=words):
            load_backend("tensorrt", engine)
    assert machine == []


def test_without_a_gpu_the_backend_says_so() -> None:
    pytest.importorskip("tensorrt_rtx", reason="needs tensorrt-rtx")
    pytest.importorskip("cuda.bindings", reason="needs cuda-bindings")
    if Path("/dev/nvidia0").exists():
        pytest.skip("there is a GPU")
    with pytest.raises(BackendError, match=r"CUDA: cudaError.*expected a working NVIDIA GPU"):
        load_backend("tensorrt-rtx")


def test_packages_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package.importlib.util, "find_spec", lambda *_: object())

    def missing(name: str) -> Any:
        raise ImportError("libnvinfer.so.11: cannot open shared object file")

    monkeypatch.setattr(package.importlib, "import_module", missing)
    with pytest.raises(BackendError, match=r"tensorrt cannot be loaded \(libnvinfer\.so\.11"):
        package.load_package("tensorrt")
    old = SimpleNamespace(__version__="8.6.1")
    monkeypatch.setattr(package.importlib, "import_module", lambda name: old)
    with pytest.raises(BackendError, match=r"tensorrt 8\.6\.1 is too old, expected 10 or newer"):
        package.load_package("tensorrt")


@pytest.mark.slow
class TestRealBuilds:
    """`tensorrt-rtx` builds for GPUs that are not here; nothing of this has been run on one."""

    @pytest.fixture
    def trt(self) -> Any:
        return pytest.importorskip("tensorrt_rtx", reason="needs tensorrt-rtx")

    def target(self, trt: Any, capability: str) -> Target:
        return Target(
            package="tensorrt-rtx",
            version=trt.__version__,
            gpu="any",
            compute_capability=capability,
        )

    def test_an_engine_is_built_and_kept(self, trt: Any, tmp_path: Path) -> None:
        steps: list[tuple[str, int, int]] = []
        made, plan = engine_of(
            trt,
            shipped(),
            tmp_path,
            self.target(trt, "8.6"),
            (1, 8, 64),
            ahead_of_time=True,
            progress=lambda *step: steps.append(step),
        )
        assert len(plan) > 100_000
        assert made.status == NOT_RUN
        assert steps
        [engine] = tmp_path.glob("*.engine")
        assert read_engine(engine, read_manifest(engine)) == plan
        before = engine.stat().st_mtime_ns
        engine_of(trt, shipped(), tmp_path, self.target(trt, "8.6"), (1, 8, 64), ahead_of_time=True)
        assert engine.stat().st_mtime_ns == before

    def test_what_cannot_be_built_is_named(self, trt: Any, tmp_path: Path) -> None:
        words = r"compute capability 9\.0: tensorrt-rtx .* builds for SM1.*SM80"
        with pytest.raises(BackendError, match=words):
            engine_of(
                trt, shipped(), tmp_path, self.target(trt, "9.0"), (1, 1, 1), ahead_of_time=True
            )
        with pytest.raises(BackendError, match=r"compact\.onnx: TensorRT"):
            engine_of(
                trt, shipped(), tmp_path, self.target(trt, "8.6"), (8, 1, 1), ahead_of_time=True
            )
        assert list(tmp_path.iterdir()) == []
