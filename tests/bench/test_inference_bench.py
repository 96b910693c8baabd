"""`snakekit bench inference`: the grid, honest labels, absent devices, bad input."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from snakekit.__main__ import main
from snakekit.bench import inference
from snakekit.bench.inference import Case, InferenceConfig
from snakekit.bench.inference_devices import Refusal, name_of, open_backend
from snakekit.bench.inference_report import cost_per_million, section
from snakekit.runtime import backends
from snakekit.runtime.backends import BackendInfo, BackendOptions
from snakekit.runtime.backends.random_play import random_card
from snakekit.runtime.backends.trt import package
from snakekit.runtime.models import find_model


class FakeRunner:
    """Answers at once and says that `actual` runs."""

    pads = False

    def __init__(self, actual: str) -> None:
        self.actual = actual
        self.closed = False

    def infer(self, batch):
        return np.zeros((len(batch), 4), np.float32), np.zeros(len(batch), np.float32)

    def describe(self) -> BackendInfo:
        return BackendInfo(requested="any", actual=self.actual, precision="fp32")

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def fake(monkeypatch):
    """Makes every backend load as one that runs what the caller says."""

    def install(actual: str) -> FakeRunner:
        runner = FakeRunner(actual)
        monkeypatch.setattr(
            backends, "load_backend", lambda kind, path, options: (runner, random_card())
        )
        return runner

    return install


@pytest.mark.parametrize("kind", ["cuda", "ort-tensorrt", "tensorrt", "triton"])
def test_a_device_that_fell_back_is_refused_and_closed(fake, kind):
    runner = fake("CPUExecutionProvider")
    with pytest.raises(Refusal, match=f"asked for {kind}, but CPUExecutionProvider runs"):
        open_backend(kind, Path("x.onnx"), BackendOptions())
    assert runner.closed


def test_tensorrt_that_runs_on_cuda_is_refused(fake):
    fake("CUDAExecutionProvider")
    assert open_backend("cuda", Path("x.onnx"), BackendOptions())
    with pytest.raises(Refusal):
        open_backend("tensorrt", Path("x.onnx"), BackendOptions())


def test_a_refused_device_is_a_row_that_says_why(fake):
    fake("CPUExecutionProvider")
    config = InferenceConfig(model=("compact",), seconds=0.02, rounds=3, batch=(1, 2), threads=(1,))
    found = inference.measure(config)
    assert {r.params["backend"] for r in found.results} == {"cpu"}
    reasons = {m.what: m.why for m in found.missing}
    assert "CPUExecutionProvider runs" in reasons["inference cuda"]
    assert "CPUExecutionProvider runs" in reasons["inference tensorrt"]


def test_a_backend_that_changes_while_it_is_measured_is_refused(fake, monkeypatch):
    runner = fake("CUDAExecutionProvider")
    answer = runner.infer

    def fall_back(batch):
        runner.actual = "CPUExecutionProvider"
        return answer(batch)

    monkeypatch.setattr(runner, "infer", fall_back)
    config = InferenceConfig(
        model=("standard",), backend=("cuda",), seconds=0.02, rounds=3, batch=(1,)
    )
    found = inference.measure(config)
    assert found.results == []
    assert "CPUExecutionProvider runs" in found.missing[-1].why


def test_every_cell_of_the_grid_is_measured(tmp_path, capsys):
    path = tmp_path / "figures.json"
    options = ["--batch", "1,3", "--threads", "1,2", "--seconds", "0.1", "--rounds", "3"]
    options += ["--price-per-hour", "0.36", "--json", str(path)]
    assert main(["bench", "inference", *options]) == 0
    report = json.loads(path.read_text())
    by_name = {r["name"]: r for r in report["results"]}
    for cell in ("b1", "b3", "b1.t2", "b3.t2"):
        start = f"inference.standard.cpu.fp32.{cell}"
        p50, p99 = by_name[f"{start}.p50_ms"], by_name[f"{start}.p99_ms"]
        assert by_name[f"{start}.min_ms"]["value"] <= p50["value"] <= p99["value"]
        assert by_name[f"{start}.cpu_ms"]["value"] > 0
        rate = by_name[f"{start}.samples_per_s"]["value"]
        assert by_name[f"{start}.cost_per_million"]["value"] == pytest.approx(100 / rate)
        assert p50["params"]["actual"] == "CPUExecutionProvider"
    absent = {m["what"] for m in report["not_measured"]}
    assert {"inference tensorrt", "inference ort-tensorrt"} <= absent
    assert "not measured: inference tensorrt: not available" in capsys.readouterr().out


def case(walls: list[list[float]], batch: int = 2) -> Case:
    inputs = np.zeros((batch, 1, 1, 1), np.uint8)
    made = Case("m", "cpu", "fp32", batch, 1, FakeRunner("CPUExecutionProvider"), inputs)
    made.wall, made.cpu = walls, [[0.5 * w for w in turn] for turn in walls]
    return made


def test_figures_of_known_times():
    walls = [[0.001, 0.002, 0.003], [0.002, 0.002, 0.002], [0.001, 0.003, 0.002]]
    values = {r.name.rsplit(".", 1)[1]: r for r in section([case(walls)], [], 3.6).results}
    assert values["p50_ms"].value == pytest.approx(2)
    assert values["min_ms"].value == pytest.approx(1)
    assert values["cpu_ms"].value == pytest.approx(1)
    assert values["samples_per_s"].value == pytest.approx(1000)
    assert values["cost_per_million"].value == pytest.approx(1)
    assert values["p50_ms"].params["spread"] == 0
    assert "spread" not in values["p99_ms"].params


def test_nothing_timed_is_no_figure_and_no_crash():
    found = section([case([])], [], 1.0)
    assert all(math.isnan(r.value) for r in found.results)
    assert math.isnan(cost_per_million(1.0, 0.0))
    assert math.isnan(cost_per_million(1.0, math.nan))


def test_batches_too_slow_for_the_time_are_left_out_with_the_reason(monkeypatch):
    cases = [case([], batch) for batch in (1, 8, 64)]
    for one in cases:
        one.runner = cases[0].runner
        monkeypatch.setattr(one, "call", lambda cost=one.batch: (float(cost), 0.0))
    kept, missing = inference.warm_up(cases, 0.5)
    assert [c.batch for c in kept] == [1]
    assert ["8000 ms" in missing[0].why, "smaller batch" in missing[1].why] == [True, True]


def test_observations_come_from_games_and_repeat():
    card = random_card()
    first, again = (inference.observations(card, 40, 3) for _ in range(2))
    assert np.array_equal(first, again)
    assert len(np.unique(first.reshape(len(first), -1), axis=0)) > 35
    assert not np.array_equal(first[:40], inference.observations(card, 40, 4)[:40])


def test_models_for_all_seats_see_whole_boards():
    config = InferenceConfig(
        model=("duel",), backend=("cpu",), seconds=0.02, rounds=3, batch=(1, 4), threads=(1,)
    )
    found = inference.measure(config)
    values = {r.name: r.value for r in found.results}
    assert values["inference.duel.cpu.fp32.b4.p50_ms"] > 0
    card = open_backend("cpu", find_model("duel"), BackendOptions())[1]
    seen = inference.observations(card, 40, 3)
    assert seen.shape[1:] == (card.planes, 11, 11)
    assert len(np.unique(seen.reshape(len(seen), -1), axis=0)) > 35


def test_all_shipped_models_are_measured_and_absent_ones_named(monkeypatch, tmp_path):
    files, missing = inference.model_files([])
    others = ["duel.onnx", "compact.onnx", "compact.int8.onnx"]
    assert [f.name for f in files] == ["standard.onnx", *others]
    assert missing == []
    lone = tmp_path / "standard.onnx"
    lone.touch()
    monkeypatch.setattr(inference, "find_model", lambda name: lone)
    files, missing = inference.model_files([])
    assert files == [lone]
    assert [m.what for m in missing] == others


def test_a_triton_server_is_not_taken_for_this_processor():
    made = case([[0.001, 0.002]])
    made.backend = "triton"
    plot = section([made], [], 0.0).plots[-1]
    assert "(Triton)" in plot
    assert "(CPU)" not in plot


@pytest.mark.parametrize(
    ("text", "expected"),
    [("standard", "standard"), ("my net v1.2", "my-net-v1-2"), ("[red]", "red"), ("..", "model")],
)
def test_names_are_one_part_of_a_dotted_name(text, expected):
    assert name_of(text) == expected


def test_absent_packages_are_named(monkeypatch):
    monkeypatch.setattr(package.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(Refusal, match="not available: tensorrt is not installed; run: pip"):
        open_backend("tensorrt", Path("x.onnx"), BackendOptions())


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--model", "no-such"], "no file no-such"),
        (["--backend", "abacus"], "backend"),
        (["--batch", "0"], "batch"),
        (["--threads", "none"], "threads"),
        (["--seconds", "nan"], "seconds"),
        (["--price-per-hour", "-1"], "price_per_hour"),
        (["--compare", "no-such.json"], "no-such.json: cannot be read"),
        (["--fail-on-regression"], "--compare FILE"),
        (["--json", "."], "is a folder"),
        (["--backend", "triton", "--triton-url", "127.0.0.1:1"], "triton: not available"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(args, words, capsys):
    assert main(["bench", "inference", "--seconds", "0.01", *args]) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


def test_a_file_that_is_no_model_is_bad_input(tmp_path, capsys):
    path = tmp_path / "text.onnx"
    path.write_text("hello")
    assert main(["bench", "inference", "--model", str(path)]) == 2
    assert "text.onnx" in capsys.readouterr().err


def test_two_files_of_one_model_are_refused(tmp_path, capsys):
    path = tmp_path / "copy.onnx"
    path.write_bytes(find_model(None).read_bytes())
    assert main(["bench", "inference", "--model", f"standard,{path}"]) == 2
    assert "both called standard fp32" in capsys.readouterr().err
