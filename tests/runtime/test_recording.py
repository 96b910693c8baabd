"""Records on disk: whole files whatever happens, and bounds that are kept."""

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded_games import Game, Json, names, only, open_store, row

from snakekit.runtime import boardjson
from snakekit.runtime.decided import Decided
from snakekit.runtime.recording import columns
from snakekit.runtime.recording.event import Event, pack, unpack

pytest.importorskip("pyarrow", reason="needs snakekit[record]")


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
        again.tick()
        if names(folder, "*.part"):
            # It crashed while it wrote the last line.
            assert step == 1
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


def test_the_process_imports_little() -> None:
    code = (
        "import sys, snakekit.runtime.recording.writer\n"
        "print(sorted({'aiohttp', 'numpy', 'prometheus_client', 'pyarrow'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
