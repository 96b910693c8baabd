"""The watch page: events as they happen, to this machine only, and a look by a real browser."""

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, ClientTimeout
from aiohttp.test_utils import TestClient, TestServer

from snakekit.runtime.config import ServerConfig
from snakekit.runtime.engine import Engine
from snakekit.runtime.private import create_private_app
from snakekit.runtime.server import create_app
from snakekit.runtime.watch import live
from snakekit.runtime.watch.live import Watch
from snakekit.runtime.watch.page import Frame, page

FAST = ServerConfig(backend="random", mode="hybrid", budget_ms=5, table_mb=1, log_level="error")
CHROMIUM = shutil.which("chromium")


class Watched:
    def __init__(self, watch: Watch, game: Any, private: Any) -> None:
        self.watch, self.game, self.private = watch, game, private


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    engine = Engine(FAST)
    await engine.open()
    watch = Watch(engine)
    apps = create_app(engine, [watch]), create_private_app(engine, watch)
    game, private = (TestClient(TestServer(app, host="127.0.0.1")) for app in apps)
    await game.start_server()
    await private.start_server()
    yield Watched(watch, game, private)
    await game.close()
    await private.close()
    await engine.close()


async def next_event(response: Any) -> Any:
    async with asyncio.timeout(5):
        while True:
            line = await response.content.readline()
            assert line
            if line.startswith(b"data: "):
                return json.loads(line[6:])


async def test_a_move_and_an_end_are_shown_as_they_happen(
    watched: Watched, send: Any, request_json: Any
) -> None:
    await send(watched.game, "/move", request_json)
    async with watched.private.get("/watch/events") as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        await response.content.readline()
        spread = json.dumps(request_json, indent=1).encode()
        status, answer = await send(watched.game, "/move", spread)
        assert status == 200
        frame = await next_event(response)
        assert frame["board"] == request_json["board"]
        assert (frame["turn"], frame["you"], frame["over"]) == (14, "a", False)
        assert frame["decided"]["move"] == answer["move"]
        assert len(frame["decided"]["policy"]) == len(frame["decided"]["search_scores"]) == 4
        await send(watched.game, "/end", request_json)
        frame = await next_event(response)
        assert frame["over"]
        assert frame["decided"] is None


async def test_a_slow_viewer_loses_the_oldest_frames_and_too_many_are_refused(
    watched: Watched, send: Any, request_json: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "VIEWERS", 1)
    monkeypatch.setattr(live, "QUEUE", 2)
    async with watched.private.get("/watch/events"):
        (queue,) = watched.watch._viewers
        for _ in range(5):
            watched.watch._show(Frame(game="g", you="a", turn=1, board=live.msgspec.Raw(b"{}")))
        assert queue.qsize() == 2
        async with watched.private.get("/watch/events") as second:
            assert second.status == 503
    for _ in range(200):
        if not watched.watch._viewers:
            break
        watched.watch._show(Frame(game="g", you="a", turn=1, board=live.msgspec.Raw(b"{}")))
        await asyncio.sleep(0.01)
    assert not watched.watch._viewers


@pytest.mark.parametrize("host", ["evil.example", "evil.example:9100", "10.0.0.1:9100", "[::2]:1"])
async def test_other_names_are_refused(watched: Watched, host: str) -> None:
    for path in ("/watch", "/watch/events"):
        async with watched.private.get(path, headers={"Host": host}) as response:
            assert response.status == 403


@pytest.mark.parametrize(
    ("address", "near"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("::ffff:127.0.0.1", True)]
    + [(a, False) for a in ("10.0.0.1", "::ffff:10.0.0.1", "fe80::1", "localhost", "", None)],
)
def test_what_is_near(address: str | None, near: bool) -> None:
    assert live.is_near(address) == near


async def test_strangers_are_refused(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aiohttp.web.BaseRequest.remote", "192.0.2.7")
    async with watched.private.get("/watch") as response:
        assert response.status == 403


async def test_streams_do_not_hold_up_the_end(watched: Watched) -> None:
    response = await watched.private.get("/watch/events")
    started = asyncio.get_running_loop().time()
    await watched.private.server.close()
    assert asyncio.get_running_loop().time() - started < 1.5
    response.close()


def test_the_page_fetches_nothing_and_names_cannot_become_markup() -> None:
    name = "</script><script>alert(1)</script>"
    board = json.dumps({"width": 3, "height": 3, "snakes": [], "food": [], "hazards": []})
    frame = Frame(game=name, you=name, turn=0, board=live.msgspec.Raw(board.encode()))
    text = page(name, [frame])
    assert text.count("<script") == 2
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|\bsrc=|@import|url\(", text)
    assert "innerHTML" not in text
    assert "default-src &#x27;none&#x27;" in page("x")


class Browser:
    """A headless Chromium spoken to over its own protocol."""

    def __init__(self, socket: Any) -> None:
        self._socket, self._last = socket, 0
        self.problems: list[str] = []

    async def call(self, method: str, **params: Any) -> Any:
        self._last += 1
        await self._socket.send_json({"id": self._last, "method": method, "params": params})
        while True:
            message = await self._socket.receive_json(timeout=60)
            if message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.problems.append(json.dumps(message["params"])[:500])
            if message.get("method") == "Network.requestWillBeSent":
                self.problems += [
                    u for u in [message["params"]["request"]["url"]] if "127.0.0.1" not in u
                ]
            if message.get("id") == self._last:
                return message["result"]

    async def evaluate(self, code: str) -> Any:
        found = await self.call("Runtime.evaluate", expression=code, returnByValue=True)
        return found["result"].get("value")

    async def until(self, code: str) -> None:
        for _ in range(200):
            if await self.evaluate(code):
                return
            await asyncio.sleep(0.1)
        raise AssertionError((code, self.problems, await self.evaluate("document.body.innerText")))


@pytest.fixture
async def browser(tmp_path: Path) -> AsyncIterator[Browser]:
    folder = tmp_path / "profile"
    process = await asyncio.create_subprocess_exec(
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--remote-debugging-port=0", f"--user-data-dir={folder}", "--window-size=1180,900",
        "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        port_file = folder / "DevToolsActivePort"
        for _ in range(600):
            if port_file.exists() and port_file.read_text().count("\n") >= 1:
                break
            await asyncio.sleep(0.1)
        port = port_file.read_text().splitlines()[0]
        async with ClientSession(timeout=ClientTimeout(60)) as session:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as response:
                target = next(t for t in await response.json() if t["type"] == "page")
            async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                browser = Browser(socket)
                for domain in ("Runtime", "Log", "Page", "Network"):
                    await browser.call(f"{domain}.enable")
                yield browser
    finally:
        process.kill()
        await process.wait()


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="the browser chromium is not installed")
async def test_a_browser_shows_a_running_game_in_light_and_dark(
    watched: Watched, browser: Browser, send: Any, request_json: Any, tmp_path: Path
) -> None:
    name = "<img src=x onerror=alert(1)>"
    for seen in request_json["board"]["snakes"]:
        seen["name"] = name
    await browser.call("Page.navigate", url=str(watched.private.make_url("/watch")))
    await browser.until("document.getElementById('state').textContent.startsWith('connected')")
    for turn in range(14, 17):
        request_json["turn"] = turn
        await send(watched.game, "/move", request_json)
    await browser.until("document.querySelector('main h2')?.textContent === 'turn 16'")
    assert await browser.evaluate("document.querySelectorAll('svg .square').length") == 121
    assert name in await browser.evaluate("document.getElementById('snakes').innerText")
    said = await browser.evaluate("document.getElementById('decision').innerText")
    assert re.search(r"(up|left|right)\n.*\n[\d.]+ ms of \d+ ms", said)
    assert "model random@" in said
    await browser.evaluate("document.querySelector('[aria-label=\"turn before\"]').click()")
    await browser.until("document.querySelector('main h2').textContent === 'turn 15'")
    request_json["turn"] = 17
    await send(watched.game, "/move", request_json)
    await browser.until("document.querySelector('input').max === '3'")
    assert await browser.evaluate("document.querySelector('main h2').textContent") == "turn 15"
    pictures = []
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        await browser.call("Emulation.setEmulatedMedia", features=[feature])
        pictures.append((await browser.call("Page.captureScreenshot"))["data"])
    assert pictures[0] != pictures[1]
    assert all(len(picture) > 20_000 for picture in pictures)
    assert browser.problems == []
