"""Reloading the model: no move is missed, and a refusal leaves the old one."""

import asyncio
import json
import shutil
import signal
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from aiohttp.test_utils import TestClient, TestServer
from processes import get, post, wait_ready
from test_refusals import card, tiny_model

from snakekit.runtime.backends import BackendError
from snakekit.runtime.backends.random_play import RandomBackend, random_card
from snakekit.runtime.config import ServerConfig
from snakekit.runtime.private import create_private_app

FAST = ServerConfig(backend="random", mode="policy", table_mb=1)


class Numbered(RandomBackend):
    """Prefers one move; can be held back."""

    def __init__(self, move: int) -> None:
        self.move = move
        self.gate = threading.Event()
        self.gate.set()
        self.closed = False

    def infer(self, batch: Any) -> Any:
        self.gate.wait(20)
        policy = np.zeros((len(batch), 4), np.float32)
        policy[:, self.move] = 5
        return policy, np.zeros(len(batch), np.float32)

    def close(self) -> None:
        self.closed = True


class Models:
    """What the next load gives, one after the other."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *backends: Any) -> None:
        self.left = list(backends)
        self.loading = threading.Event()
        self.release = threading.Event()
        self.release.set()
        monkeypatch.setattr("snakekit.runtime.loaded.load_backend", self.load)

    def load(self, *_: Any, **__: Any) -> Any:
        self.loading.set()
        self.release.wait(20)
        found = self.left.pop(0)
        if isinstance(found, Exception):
            raise found
        return found, msgspec.structs.replace(random_card(), step=getattr(found, "move", 0))


def value(client: Any, name: str, **labels: str) -> float:
    return client.engine.metrics.registry.get_sample_value("snakekit_" + name, labels) or 0.0


async def test_the_old_one_answers_until_the_new_one_is_warm(
    make_client: Any, send: Any, request_json: Any, monkeypatch: Any
) -> None:
    old, new = Numbered(0), Numbered(2)
    models = Models(monkeypatch, old, new)
    client = await make_client(FAST)
    assert (await send(client, "/move", request_json))[1] == {"move": "up"}
    models.release.clear()
    models.loading.clear()
    reloading = asyncio.create_task(client.engine.reload())
    await asyncio.to_thread(models.loading.wait, 10)
    for _ in range(3):
        assert (await send(client, "/move", request_json))[1] == {"move": "up"}
    assert client.engine.ready
    with pytest.raises(BackendError, match="already"):
        await client.engine.reload()
    # What the old one was asked before, it still answers.
    old.gate.clear()
    request_json["game"]["timeout"] = 10_000
    asked = asyncio.create_task(send(client, "/move", request_json))
    await asyncio.sleep(0.1)
    models.release.set()
    for _ in range(500):
        if client.engine.card.step == 2:
            break
        await asyncio.sleep(0.01)
    assert (await send(client, "/move", request_json))[1] == {"move": "left"}
    old.gate.set()
    assert (await asked)[1] == {"move": "up"}
    assert await reloading > 0
    assert old.closed
    assert not new.closed
    assert value(client, "reloads_total", result="done") == 1
    assert value(client, "fallbacks_total", stage="policy", cause="error") == 0


class Ill(Numbered):
    def infer(self, batch: Any) -> Any:
        return np.full((len(batch), 4), np.nan, np.float32), np.zeros(len(batch), np.float32)


class Misshapen(Numbered):
    def infer(self, batch: Any) -> Any:
        return np.zeros((len(batch), 5), np.float32), np.zeros(len(batch), np.float32)


class Failing(Numbered):
    def infer(self, batch: Any) -> Any:
        raise RuntimeError("CUDA failure 2:\nout of memory")


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        (Ill, "gives numbers that are not finite for a new 11x11 game; expected finite ones"),
        (Misshapen, "answers in shape [1, 5] for a new 11x11 game; expected [1, 4]"),
        (Failing, "fails (CUDA failure 2: out of memory) for a new 11x11 game; expected an answer"),
    ],
)
async def test_a_model_that_fails_its_warm_up_is_refused_and_closed(
    make_client: Any, send: Any, request_json: Any, monkeypatch: Any, kind: Any, part: str
) -> None:
    models = Models(monkeypatch, Numbered(0), bad := kind(1))
    client = await make_client(FAST)
    with pytest.raises(BackendError, match=r"^model random: .*export the model again") as refusal:
        await client.engine.reload()
    assert part in str(refusal.value)
    assert bad.closed
    assert not models.left
    assert (await send(client, "/move", request_json))[1] == {"move": "up"}
    assert value(client, "reloads_total", result="refused") == 1
    assert client.engine.ready


async def test_a_refusal_leaves_the_old_one_and_says_why(
    make_client: Any, send: Any, request_json: Any, monkeypatch: Any
) -> None:
    Models(monkeypatch, Numbered(0), BackendError("m.onnx: no model card"), Ill(1), Numbered(2))
    client = await make_client(FAST)
    server = TestServer(create_private_app(client.engine), host="127.0.0.1")
    async with TestClient(server) as private:

        async def reload(**headers: str) -> tuple[int, Any]:
            async with private.post("/reload", headers=headers) as response:
                return response.status, await response.json()

        assert await reload() == (422, {"error": "m.onnx: no model card"})
        status, answer = await reload()
        assert status == 422
        assert "not finite" in answer["error"]
        assert (await send(client, "/move", request_json))[1] == {"move": "up"}
        # A page of another site, open in the owner's browser, is not the owner.
        assert (await reload(Origin="http://elsewhere.example"))[0] == 403
        # Nor is whoever may read metrics from another machine.
        with monkeypatch.context() as patch:
            patch.setattr("snakekit.runtime.private.is_near", lambda address: address is None)
            assert (await reload())[0] == 403
        status, answer = await reload()
        assert status == 200
        assert answer["step"] == 2
        assert (await send(client, "/move", request_json))[1] == {"move": "left"}
        async with private.get("/reload") as response:
            assert response.status == 405
    assert value(client, "reloads_total", result="refused") == 2
    async with client.post("/reload") as response:
        assert response.status == 404


async def test_a_model_of_another_encoder_takes_over(
    make_client: Any, send: Any, request_json: Any, monkeypatch: Any
) -> None:
    shapes: list[tuple[int, ...]] = []

    class Seen(Numbered):
        def infer(self, batch: Any) -> Any:
            shapes.append(batch.shape[1:])
            return super().infer(batch)

    cards = [random_card(), msgspec.structs.replace(random_card(), encoder=1)]
    monkeypatch.setattr(
        "snakekit.runtime.loaded.load_backend", lambda *_, **__: (Seen(1), cards.pop(0))
    )
    client = await make_client(FAST)
    await send(client, "/move", request_json)
    await client.engine.reload()
    await send(client, "/move", request_json)
    assert shapes[-1] != shapes[0]
    assert value(client, "fallbacks_total", stage="policy", cause="error") == 0


async def test_search_has_nothing_to_reload(make_client: Any) -> None:
    client = await make_client(FAST, mode="search")
    with pytest.raises(BackendError, match="mode search has no model"):
        await client.engine.reload()


def test_a_signal_and_the_private_port_reload_a_file(
    start: Any,
    request_json: Any,
    tmp_path: Path,
) -> None:
    pytest.importorskip("onnxruntime", reason="needs ONNX Runtime")
    file = tmp_path / "m.onnx"
    tiny_model(file, the_card=card(step=1))
    newer = tiny_model(tmp_path / "newer.onnx", the_card=card(step=2))
    process, url, metrics, _ = start("--backend", "cpu", "--model", str(file), "--mode", "policy")
    wait_ready(url)
    answers: list[int] = []
    done = threading.Event()

    def play() -> None:
        while not done.is_set():
            answers.append(post(url + "/move", request_json)[0])

    thread = threading.Thread(target=play)
    thread.start()
    try:
        newer.replace(file)
        process.send_signal(signal.SIGHUP)
        until(lambda: b'step="2"' in get(metrics)[1])
        file.write_bytes(b"not a model")
        request = urllib.request.Request(metrics.replace("/metrics", "/reload"), method="POST")
        status, body = get(request)
        assert status == 422
        assert json.loads(body)["error"].startswith("m.onnx: ")
    finally:
        done.set()
        thread.join(10)
    text = get(metrics)[1].decode()
    assert 'step="2"' in text
    assert 'step="1"' not in text
    assert 'snakekit_decisions_total{reason="reflex"} 0.0' in text
    assert set(answers) == {200}
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=10)
    assert process.returncode == 0
    lines = [json.loads(line) for line in err.splitlines()]
    assert [line["message"] for line in lines] == [
        "ready",
        "reloaded",
        "reload refused",
        "stopping",
    ]
    assert lines[1]["step"] == 2
    assert lines[2]["error"].startswith("m.onnx: ")


def until(true: Any) -> None:
    end = time.perf_counter() + 20
    while not true():
        assert time.perf_counter() < end
        time.sleep(0.02)


@pytest.mark.slow
def test_loading_a_model_does_not_hold_up_the_interpreter(tmp_path: Path) -> None:
    """ONNX Runtime lets other threads run while it makes a session; a reload needs that."""
    runtime = pytest.importorskip("onnxruntime", reason="needs ONNX Runtime")
    from snakekit.runtime.models import find_model

    path = shutil.copy(find_model("compact"), tmp_path / "m.onnx")
    runs = 0
    stop = threading.Event()

    def count() -> None:
        nonlocal runs
        while not stop.is_set():
            time.sleep(0)
            runs += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        shares = []
        for _ in range(20):
            before, begun = runs, time.perf_counter()
            runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
            during, seconds = runs - before, time.perf_counter() - begun
            before, begun = runs, time.perf_counter()
            time.sleep(seconds)
            alone, slept = runs - before, time.perf_counter() - begun
            shares.append((during / seconds) / max(1.0, alone / slept))
    finally:
        stop.set()
        thread.join(10)
    # Held all the time, the other thread would never run; beside other work it may now and then.
    assert sum(shares) / len(shares) > 0.1, shares
