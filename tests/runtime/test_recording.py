"""Recording: whole files whatever happens, bounds kept, and moves that never wait for a disk."""

import asyncio
import copy
import errno
import json
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
from hypothesis import given, settings
from hypothesis import strategies as st

from snakekit.runtime import boardjson
from snakekit.runtime.config import ServerConfig
from snakekit.runtime.decided import Decided
from snakekit.runtime.engine import Engine
from snakekit.runtime.recording import Recorder, RecorderError, columns, recorder, writer
from snakekit.runtime.recording.event import Event, Status, pack, unpack
from snakekit.runtime.recording.store import Store
from snakekit.runtime.server import create_app

pytest.importorskip("pyarrow", reason="needs snakekit[record]")

Json = dict[str, Any]
FAST = ServerConfig(backend="random", mode="hybrid", budget_ms=5, table_mb=1, log_level="error")


def row(game: str = "g", you: str = "a", turn: int = 0, **changes: Any) -> Decided:
    values: Json = {
        "at": 1_700_000_000_123, "game": game, "you": you, "turn": turn, "ruleset": "standard",
        "width": 11, "height": 11, "snakes": 2, "move": "up", "reason": "policy",
        "answer_ms": 1.5, "budget_ms": 400.0, "timeout_ms": 500.0, "latency_ms": None,
        "policy": [0.5, 0.25, 0.125, 0.125], "policy_move": "up", "value": -0.5,
        "search_scores": [3, None, -2, 0], "search_labels": ["none", "loss", "none", "win"],
        "search_distances": [0, 2, 0, 5], "search_best": "right", "search_depth": 4,
        "search_nodes": 1 << 40, "search_ms": 10.25, "search_line": ["up", "right"],
        "version": "1", "model": "standard@0123", "backend": "cpu",
    }  # fmt: skip
    return Decided(**(values | changes))


class Game:
    """Requests of one game, turn by turn."""

    def __init__(self, request: Json, game: str = "g") -> None:
        self.request = copy.deepcopy(request)
        self.request["game"]["id"] = game
        self.request["turn"] = -1

    def body(self) -> bytes:
        # As a client might: not compact, and with text beyond ASCII.
        self.request["board"]["snakes"][0]["shout"] = "zug\u2028 ä"
        self.request["you"] = self.request["board"]["snakes"][0]
        return json.dumps(self.request, indent=2, ensure_ascii=False).encode()

    def move(self) -> Event:
        self.request["turn"] += 1
        game, turn = self.request["game"]["id"], self.request["turn"]
        decision = row(game, "a", turn)
        body = self.body()
        return Event(kind="move", game=game, you="a", turn=turn, body=body, decided=decision)

    def end(self, *survivors: str) -> Event:
        self.request["turn"] += 1
        body = self.body()
        last = json.loads(body)
        last["board"]["snakes"] = [s for s in last["board"]["snakes"] if s["id"] in survivors]
        return Event(
            kind="end",
            game=last["game"]["id"],
            you="a",
            turn=last["turn"],
            body=json.dumps(last).encode(),
        )


def open_store(folder: Path, **changes: Any) -> Store:
    values: Json = {"limit_bytes": 1 << 30, "keep_s": 1e6, "idle_s": 600.0}
    return Store(folder, **(values | changes))


def names(folder: Path, pattern: str) -> list[str]:
    return sorted(path.name for path in folder.glob(pattern))


def only(folder: Path, pattern: str) -> Path:
    found = list(folder.glob(pattern))
    assert len(found) == 1, found
    return found[0]


def test_a_game_becomes_a_game_file_and_a_file_of_decisions(
    tmp_path: Path, request_json: Json
) -> None:
    game, store = Game(request_json), open_store(tmp_path)
    moves = [game.move() for _ in range(4)]
    repeated = Event(
        kind="move", game="g", you="a", turn=2, body=moves[2].body, decided=row(turn=2, move="left")
    )
    for event in (*moves[:3], repeated, moves[3], game.end("a")):
        store.take(event)
    assert names(tmp_path, "*.part") == []
    file = boardjson.read_game(only(tmp_path, "*.jsonl").read_bytes())
    assert [turn.state.turn for turn in file.turns] == [0, 1, 2, 3, 4]
    assert len(file.turns[-1].state.living()) == 1
    assert file.result == boardjson.Result(winner_id="a", winner_name="Snake a", is_draw=False)
    rows = columns.read(only(tmp_path, "*.parquet"))
    assert [r.turn for r in rows] == [0, 1, 2, 3]
    assert [r.move for r in rows] == ["up", "up", "left", "up"]
    assert rows[0] == row()
    assert store.status.games == 1
    assert store.status.bytes == sum(p.stat().st_size for p in tmp_path.glob("*-*"))
    assert all(path.stat().st_mode & 0o077 == 0 for path in tmp_path.glob("*-*"))
    store.close()


def test_an_end_that_shows_the_last_position_again_is_no_turn(
    tmp_path: Path, request_json: Json
) -> None:
    request_json["board"]["snakes"] = request_json["board"]["snakes"][:1]
    game, store = Game(request_json), open_store(tmp_path)
    store.take(game.move())
    game.request["board"]["snakes"][0]["latency"] = "77"
    store.take(game.end("a"))
    file = boardjson.read_game(only(tmp_path, "*.jsonl").read_bytes())
    assert [turn.state.turn for turn in file.turns] == [0]
    store.close()


@pytest.mark.parametrize(
    ("left", "winner", "draw"), [(["a"], "a", False), (["b"], "b", False), ([], "", True)]
)
def test_results(
    tmp_path: Path, request_json: Json, left: list[str], winner: str, draw: bool
) -> None:
    game, store = Game(request_json), open_store(tmp_path)
    store.take(game.move())
    store.take(game.end(*left))
    result = json.loads(only(tmp_path, "*.jsonl").read_bytes().splitlines()[-1])
    assert (result["winnerId"], result["isDraw"]) == (winner, draw)
    store.close()


def test_an_end_that_shows_two_snakes_and_a_game_without_news_are_kept_as_aborted(
    tmp_path: Path, request_json: Json
) -> None:
    now = [0.0]
    store = open_store(tmp_path, clock=lambda: now[0], idle_s=10.0)
    game = Game(request_json)
    store.take(game.move())
    store.take(game.end("a", "b"))
    store.take(Game(request_json, "other").move())
    now[0] = 10.0
    store.tick()
    assert len(names(tmp_path, "*.aborted.jsonl")) == 1
    now[0] = 10.1
    store.tick()
    assert len(names(tmp_path, "*.aborted.jsonl")) == 2
    for path in tmp_path.glob("*.aborted.jsonl"):
        assert boardjson.read_game(path.read_bytes()).result is None
    assert store.status.games == 2
    store.close()


@pytest.mark.parametrize("identity", ["../../../../etc/passwd", "/x", "a\0b", "..", "", "ä" * 200])
def test_ids_never_become_paths(tmp_path: Path, request_json: Json, identity: str) -> None:
    folder = tmp_path / "records"
    store = open_store(folder)
    game = Game(request_json, identity)
    store.take(game.move())
    store.take(game.end("a"))
    store.close()
    assert names(tmp_path, "*") == ["records"]
    assert len(list(folder.iterdir())) == 3
    assert columns.read(only(folder, "*.parquet"))[0].game == identity


def test_the_oldest_games_make_room(tmp_path: Path, request_json: Json) -> None:
    store = open_store(tmp_path, limit_bytes=40_000)
    for number in range(12):
        game = Game(request_json, f"game {number}")
        for event in (game.move(), game.move(), game.end("a")):
            store.take(event)
        total = sum(p.stat().st_size for p in tmp_path.glob("*-*"))
        assert total == store.status.bytes <= 40_000
    kept = {columns.read(path)[0].game for path in tmp_path.glob("*.parquet")}
    assert 1 < len(kept) < 12
    assert kept == {f"game {number}" for number in range(12 - len(kept), 12)}
    assert len(names(tmp_path, "*.jsonl")) == len(kept)
    store.close()


def test_running_games_keep_the_bound_as_well(tmp_path: Path, request_json: Json) -> None:
    store = open_store(tmp_path, limit_bytes=20_000)
    game = Game(request_json)
    for _ in range(40):
        store.take(game.move())
    assert only(tmp_path, "*.part").stat().st_size <= 20_000
    assert store.status.failed > 0
    assert "limit" in store.status.error
    store.close()


def test_old_games_go(tmp_path: Path, request_json: Json) -> None:
    store = open_store(tmp_path, keep_s=100.0)
    for name in ("old", "new"):
        game = Game(request_json, name)
        store.take(game.move())
        store.take(game.end("a"))
        if name == "old":
            for path in tmp_path.glob("*-*"):
                os.utime(path, (time.time() - 200, time.time() - 200))
    store.tick()
    assert [columns.read(p)[0].game for p in tmp_path.glob("*.parquet")] == ["new"]
    store.close()


def test_after_a_crash_a_game_goes_on_and_half_files_are_gone(
    tmp_path: Path, request_json: Json
) -> None:
    game, store = Game(request_json), open_store(tmp_path)
    done = Game(request_json, "done")
    for event in (done.move(), done.end("a"), game.move(), game.move()):
        store.take(event)
    part = only(tmp_path, "*.part")
    before = (only(tmp_path, "*.jsonl").read_bytes(), only(tmp_path, "*.parquet").read_bytes())
    # Killed while it wrote a line and a file.
    store._lock.close()
    with part.open("ab") as file:
        file.write(b'{"kind":"move","turn":2,"request":{"ga')
    (tmp_path / (part.stem + ".jsonl.tmp")).write_bytes(b"half")
    again = open_store(tmp_path)
    assert names(tmp_path, "*.tmp") == []
    assert only(tmp_path, "*.jsonl").read_bytes() == before[0]
    assert only(tmp_path, "*.parquet").read_bytes() == before[1]
    for event in (game.move(), game.move(), game.end("a")):
        again.take(event)
    again.close()
    record = boardjson.read_game((tmp_path / (part.stem + ".jsonl")).read_bytes())
    turns = [turn.state.turn for turn in record.turns]
    # Of the torn line the game loses one turn at most, the one being written.
    assert turns in ([0, 1, 3, 4], [0, 1, 2, 3, 4])
    assert record.result is not None


class CrashError(BaseException):
    """The machine stops here."""


def crash_at(monkeypatch: pytest.MonkeyPatch, step: int) -> list[int]:
    """Let the step-th call that changes the disk not happen, nor any after it."""
    done = [0]

    def stopping(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            done[0] += 1
            if done[0] >= step:
                raise CrashError
            return real(*args, **kwargs)

        return call

    for owner, name in ((os, "write"), (os, "fsync"), (Path, "replace"), (Path, "unlink")):
        monkeypatch.setattr(owner, name, stopping(getattr(owner, name)))
    monkeypatch.setattr(columns, "write", stopping(columns.write))
    return done


def whole(folder: Path) -> tuple[bytes, list[Decided]]:
    """Return the only game and its decisions; there is nothing else in the folder."""
    assert names(folder, "*.tmp") == names(folder, "*.part") == []
    return only(folder, "*.jsonl").read_bytes(), columns.read(only(folder, "*.parquet"))


def test_a_crash_at_any_step_of_finishing_loses_nothing(
    tmp_path: Path, request_json: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = Game(request_json)
    events = [game.move(), game.move(), game.move(), game.end("a")]
    store = open_store(tmp_path / "calm")
    for event in events:
        store.take(event)
    store.close()
    wanted = whole(tmp_path / "calm")
    step, crashed = 0, True
    while crashed:
        step += 1
        folder = tmp_path / f"crash{step}"
        store = open_store(folder)
        for event in events[:-1]:
            store.take(event)
        with monkeypatch.context() as patch:
            crash_at(patch, step)
            try:
                store.take(events[-1])
                crashed = False
            except CrashError:
                pass
        store._lock.close()
        again = open_store(folder)
        # Without its last line, if that is where it crashed, the engine would say it again.
        again.take(events[-1])
        again.close()
        assert whole(folder) == wanted, step
    assert step > 7


@settings(max_examples=40, deadline=None)
@given(cut=st.integers(min_value=0, max_value=10_000))
def test_a_journal_cut_anywhere_keeps_its_whole_lines(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    snakes = [{"id": "a", "name": "a", "health": 90, "body": [{"x": 1, "y": 1}]}]
    game, store = Game({"game": {}, "board": {"snakes": snakes}}), open_store(folder)
    for _ in range(4):
        store.take(game.move())
    part = only(folder, "*.part")
    store._lock.close()
    data = part.read_bytes()
    kept = data[: len(data) * cut // 10_000]
    part.write_bytes(kept)
    open_store(folder).close()
    whole_lines = kept.count(b"\n") + (kept not in (b"", data) and data[len(kept)] == 10)
    if whole_lines:
        assert [r.turn for r in whole(folder)[1]] == list(range(whole_lines))
    else:
        assert names(folder, "*-*") == []


def test_finishing_twice_gives_the_same(tmp_path: Path, request_json: Json) -> None:
    game, store = Game(request_json), open_store(tmp_path)
    for event in (game.move(), game.move()):
        store.take(event)
    part = only(tmp_path, "*.part")
    kept = part.read_bytes()
    store.close()
    first = only(tmp_path, "*.aborted.jsonl").read_bytes()
    part.write_bytes(kept)
    open_store(tmp_path).close()
    assert only(tmp_path, "*.aborted.jsonl").read_bytes() == first


def test_a_full_disk_loses_lines_but_never_tears_one(
    tmp_path: Path, request_json: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    game, store = Game(request_json), open_store(tmp_path)
    store.take(game.move())
    real, full = os.write, [True]

    def short(handle: int, data: Any) -> int:
        if full[0] and len(data) < 2500:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(handle, data[:100] if full[0] else data)

    monkeypatch.setattr(os, "write", short)
    store.take(game.move())
    assert store.status.failed == 1
    assert "space" in store.status.error
    full[0] = False
    store.take(game.move())
    full[0] = True
    store.take(game.end("a"))
    assert names(tmp_path, "*.jsonl") == []
    full[0] = False
    store.tick()
    assert names(tmp_path, "*.part") == []
    record = boardjson.read_game(only(tmp_path, "*.jsonl").read_bytes())
    assert [turn.state.turn for turn in record.turns] == [0, 2]
    store.close()


def test_two_servers_do_not_share_a_folder(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    with pytest.raises(OSError, match="another server records there"):
        open_store(tmp_path)
    store.close()
    open_store(tmp_path).close()


def test_frames_come_whole_however_they_are_cut() -> None:
    events = [
        Event(kind="move", game="g", you="a", turn=n, body=bytes(n * 99), decided=row(turn=n))
        for n in range(20)
    ]
    stream = b"".join(pack(event) for event in events)
    buffer, found = bytearray(), []
    for start in range(0, len(stream), 777):
        buffer += stream[start : start + 777]
        found += list(unpack(buffer))
    assert found == events
    assert not buffer


def test_columns_are_the_fields() -> None:
    assert tuple(columns.schema().names) == Decided.__struct_fields__


def test_something_else_is_not_read_as_decisions(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"PAR1 but not really PAR1")
    with pytest.raises(ValueError, match="not a file of decisions"):
        columns.read(path)


# The server with its recording process.


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
        await engine.open()
        parts = Recorder(engine.config, engine)
        await parts.open()
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
    turns = [turn.state.turn for turn in file.turns]
    assert turns == list(range(len(turns)))
    assert 5 < len(turns) < 40


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
    record: Start, send: Any, request_json: Json, tmp_path: Path
) -> None:
    recorded = await record()
    await play(recorded, send, Game(request_json), 2)
    await recorded.recorder.close()
    assert len(names(tmp_path / "records", "*.aborted.jsonl")) == 1
    assert names(tmp_path / "records", "*.part") == []


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
