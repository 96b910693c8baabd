"""A server with its recording process: moves never wait for a disk."""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp.test_utils import TestClient, TestServer
from recorded_games import Game, Json, names, only

from snakekit.runtime import boardjson
from snakekit.runtime.config import ServerConfig
from snakekit.runtime.engine import Engine
from snakekit.runtime.recording import columns, recorder, writer
from snakekit.runtime.recording.event import Status
from snakekit.runtime.recording.recorder import Recorder, RecorderError
from snakekit.runtime.server import create_app

pytest.importorskip("pyarrow", reason="needs snakekit[record]")

FAST = ServerConfig(backend="random", mode="hybrid", budget_ms=5, table_mb=1, log_level="error")


class Recorded:
    """A client of a server that records, and its parts."""

    def __init__(self, client: Any, engine: Engine, parts: Recorder) -> None:
        self.client, self.engine, self.recorder = client, engine, parts

    @property
    def process(self) -> int:
        process = self.recorder._process
        assert process is not None
        return process.pid

    def count(self, name: str, **labels: str) -> float:
        return self.engine.metrics.registry.get_sample_value("snakekit_" + name, labels) or 0.0


Start = Callable[..., Awaitable[Recorded]]


@pytest.fixture
async def record(tmp_path: Path) -> AsyncIterator[Start]:
    started: list[Recorded] = []

    async def start(**changes: Any) -> Recorded:
        changes = {"record": str(tmp_path / "records")} | changes
        engine = Engine(msgspec.structs.replace(FAST, **changes))
        parts = Recorder(engine.config, engine)
        await parts.open()
        await engine.open()
        client = TestClient(TestServer(create_app(engine, [parts]), host="127.0.0.1"))
        await client.start_server()
        started.append(Recorded(client, engine, parts))
        return started[-1]

    yield start
    for each in started:
        await each.client.close()
        await each.recorder.close()
        await each.engine.close()


async def until(true: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)


def written(folder: Path) -> int:
    """Return how many requests the journals hold."""
    return sum(len(path.read_bytes().splitlines()) for path in folder.glob("*.part"))


async def play(recorded: Recorded, send: Any, game: Game, moves: int) -> None:
    for _ in range(moves):
        event = game.move()
        assert (await send(recorded.client, "/move", event.body))[0] == 200


async def test_a_served_game_is_recorded(
    record: Start, send: Any, request_json: Json, tmp_path: Path
) -> None:
    recorded = await record()
    game = Game(request_json, "../x")
    await play(recorded, send, game, 3)
    assert (await send(recorded.client, "/end", game.end("a").body))[0] == 200
    await until(lambda: recorded.count("recorded_games_total") == 1)
    rows = columns.read(only(tmp_path / "records", "*.parquet"))
    assert [r.turn for r in rows] == [0, 1, 2]
    assert rows[0].model.startswith("random@")
    assert sum(rows[0].policy or []) == pytest.approx(1, abs=0.01)
    assert rows[0].search_labels is not None
    assert rows[0].latency_ms == 43
    assert recorded.count("record_bytes") > 1000
    assert len(boardjson.read_game(only(tmp_path / "records", "*.jsonl").read_bytes()).turns) == 4


async def test_a_disk_that_hangs_never_touches_a_move(
    record: Start, send: Any, request_json: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "QUEUE_BYTES", 1 << 14)
    recorded = await record()
    os.kill(recorded.process, signal.SIGSTOP)
    game = Game(request_json)
    try:
        await play(recorded, send, game, 60)
        waiting = recorded.recorder._process
        assert waiting is not None
        assert waiting.stdin is not None
        assert waiting.stdin.transport.get_write_buffer_size() < (1 << 14) + 10_000
        assert recorded.count("records_dropped_total", cause="queue_full") > 0
        assert recorded.count("deadline_misses_total") == 0
    finally:
        os.kill(recorded.process, signal.SIGCONT)
    await until(lambda: waiting.stdin.transport.get_write_buffer_size() == 0)
    await send(recorded.client, "/end", game.end("a").body)
    await until(lambda: recorded.count("recorded_games_total") == 1)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 48 KiB at the recorder's folder."""
    folder = tmp_path / "records"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a file system")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.slow
async def test_a_full_disk_never_touches_a_move_and_mends_itself(
    small_disk: Path, record: Start, send: Any, request_json: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = await record()
    game = Game(request_json)
    await play(recorded, send, game, 40)
    await send(recorded.client, "/end", game.end("a").body)
    await until(lambda: recorded.count("records_failed_total") > 0)
    assert recorded.count("deadline_misses_total") == 0
    assert recorded.count("recorded_games_total") == 0
    assert names(small_disk, "*.jsonl") == []
    command = ["mount", "-o", "remount,size=1m", str(small_disk)]
    await asyncio.to_thread(subprocess.run, command, check=True)
    await until(lambda: recorded.count("recorded_games_total") == 1)
    file = boardjson.read_game(only(small_disk, "*.jsonl").read_bytes())
    # What the disk refused is missing; a shorter line, as that of the end, may still have fitted.
    turns = [turn.state.turn for turn in file.turns]
    assert turns == sorted(set(turns))
    assert turns[:6] == list(range(6))
    assert len(turns) < 40


async def test_a_killed_recording_process_is_started_again(
    record: Start, send: Any, request_json: Json, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "RESTART_S", 0.6)
    recorded = await record()
    game = Game(request_json)
    await play(recorded, send, game, 2)
    await until(lambda: written(tmp_path / "records") == 2)
    first = recorded.process
    os.kill(first, signal.SIGKILL)
    await until(lambda: recorded.recorder._process is None)
    await play(recorded, send, game, 1)
    assert recorded.count("records_dropped_total", cause="no_writer") == 1
    await until(lambda: recorded.recorder._process is not None)
    await until(lambda: recorded.recorder._told.bytes > 0)
    assert recorded.process != first
    await play(recorded, send, game, 1)
    await send(recorded.client, "/end", game.end("a").body)
    await until(lambda: recorded.count("recorded_games_total") == 1)
    file = boardjson.read_game(only(tmp_path / "records", "*.jsonl").read_bytes())
    assert [turn.state.turn for turn in file.turns] == [0, 1, 3, 4]


async def test_a_stop_finishes_what_runs(
    record: Start, send: Any, request_json: Json, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The process gives way to all others, so that on a busy machine it takes its time.
    monkeypatch.setattr(recorder, "CLOSE_S", 60.0)
    recorded = await record()
    await play(recorded, send, Game(request_json), 2)
    await recorded.recorder.close()
    assert len(names(tmp_path / "records", "*.aborted.jsonl")) == 1
    assert names(tmp_path / "records", "*.part") == []


async def test_a_process_that_hangs_does_not_hold_up_the_end_and_its_games_are_not_lost(
    record: Start, send: Any, request_json: Json, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "records"
    recorded = await record()
    await play(recorded, send, Game(request_json), 2)
    await until(lambda: written(folder) == 2)
    os.kill(recorded.process, signal.SIGSTOP)
    monkeypatch.setattr(recorder, "CLOSE_S", 0.1)
    async with asyncio.timeout(20):
        await recorded.recorder.close()
    assert len(names(folder, "*.part")) == 1
    monkeypatch.setattr(recorder, "CLOSE_S", 60.0)
    again = await record()
    await again.recorder.close()
    assert len(names(folder, "*.aborted.jsonl")) == 1
    assert names(folder, "*.part") == []


async def test_what_cannot_be_recorded_is_said(
    record: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(RecorderError, match=r"record: .*file cannot be used .File exists."):
        await record(record=str(file))
    monkeypatch.setattr(columns, "available", lambda: False)
    with pytest.raises(RecorderError, match=r"needs pyarrow.*pip install 'snakekit\[record\]'"):
        await record()


def test_the_process_reports_a_refusal_and_ignores_signals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Status] = []
    monkeypatch.setattr(writer, "_tell", told.append)
    monkeypatch.setattr(writer, "_step_back", lambda: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    (tmp_path / "file").write_text("")
    assert writer.main([str(tmp_path / "file"), "1", "1", "1"]) == 2
    assert told[0].refused == "File exists"
