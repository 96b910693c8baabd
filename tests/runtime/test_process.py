"""The server as a process: starts fast, answers, stops on a signal, imports no training package."""

import json
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from processes import Started, get, post, wait_ready
from stopwatch import own_time

START_S = 2.0
"""Of a machine that does nothing else: waits for a core do not count."""


def test_start_answer_stop(
    start: Callable[..., Started], request_json: Any, tmp_path: Path
) -> None:
    file = tmp_path / "serve.toml"
    file.write_text('color = "#010203"\nauthor = "file"\nmode = "search"\n')
    words = ("--author", "me", "--config", str(file))
    process, url, metrics, began = start(*words, SNAKEKIT_MODE="policy")
    status, body = get(url + "/")
    assert own_time(process.pid) - began < START_S
    facts = json.loads(body)
    assert (status, facts["author"], facts["color"]) == (200, "me", "#010203")
    wait_ready(url)
    assert post(url + "/move", request_json)[1]["move"] in ("up", "left", "right")
    assert b'snakekit_decisions_total{reason="policy"} 1.0' in get(metrics)[1]
    broken = urllib.request.Request(
        url + "/move", data=b"not gzip", headers={"Content-Encoding": "gzip"}
    )
    assert get(broken)[0] == 400
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=10)
    assert process.returncode == 0
    assert out == ""
    lines = [json.loads(line) for line in err.splitlines()]
    assert [line["message"] for line in lines] == ["ready", "stopping"]
    assert lines[0]["model"] == "random"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_a_running_move_finish(
    start: Callable[..., Started], request_json: Any, number: int
) -> None:
    process, url, _, _ = start("--mode", "search", "--budget-ms", "300", "--log-level", "debug")
    wait_ready(url)
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(post(url + "/move", request_json)))
    thread.start()
    time.sleep(0.1)
    process.send_signal(number)
    thread.join(10)
    assert answers[0][0] == 200
    _, err = process.communicate(timeout=10)
    assert process.returncode == 0
    moves = [json.loads(line) for line in err.splitlines() if '"snakekit.move"' in line]
    assert len(moves) == 1
    assert moves[0]["reason"] == "search_only"
    assert moves[0]["turn"] == 14


def test_a_taken_port_is_refused(start: Callable[..., Started]) -> None:
    _, url, _, _ = start()
    port = url.rsplit(":", 1)[1]
    command = [sys.executable, "-m", "snakekit", "serve", "--backend", "random"]
    done = subprocess.run(
        [*command, "--host", "127.0.0.1", "--port", port, "--no-metrics"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert f"port: cannot listen on 127.0.0.1:{port}" in done.stderr


def test_serving_imports_no_training_package() -> None:
    code = (
        "import sys, snakekit.runtime.server, snakekit.runtime.cli, snakekit.runtime.policy\n"
        "from snakekit.runtime.backends import ort\n"
        "bad = {'torch', 'onnx', 'onnxscript', 'safetensors', 'onnxruntime', 'rich'}\n"
        "print(sorted(bad & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


def test_opening_a_model_imports_no_training_package() -> None:
    pytest.importorskip("onnxruntime", reason="needs ONNX Runtime")
    code = (
        "import sys\nfrom snakekit.runtime.backends import load_backend\nload_backend('cpu')\n"
        "bad = {'torch', 'onnx', 'safetensors', 'tensorrt', 'tritonclient', 'cuda'}\n"
        "assert 'onnxruntime' in sys.modules\n"
        "print(sorted(bad & {name.split('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
