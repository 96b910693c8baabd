"""`snakekit replay`: every kind of game file, keys, pages, and one sentence for what is none."""

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from snakekit.__main__ import main
from snakekit.bench import replay
from snakekit.bench.replay import Cursor, load
from snakekit.runtime.recording import columns
from snakekit.runtime.recording.event import Event
from snakekit.runtime.recording.store import Store

CHROMIUM = shutil.which("chromium")


def played(tmp_path: Path) -> Path:
    """Return a game file of the match runner."""
    command = ["play", "greedy", "random", "--games", "1", "--seed", "5", "--max-turns", "40"]
    assert main([*command, "--out", str(tmp_path)]) == 0
    (path,) = tmp_path.glob("*.jsonl")
    return path


def decided(turn: int) -> Any:
    from snakekit.runtime.decided import Decided

    return Decided(
        at=1, game="g", you="a", turn=turn, ruleset="standard", width=7, height=7, snakes=1,
        move="left", reason="search_win", answer_ms=12.5, budget_ms=400, timeout_ms=500,
        latency_ms=40, policy=[0.7, 0.1, 0.15, 0.05], policy_move="up", value=0.25,
        search_scores=[10, None, 900, -3], search_labels=["none", "none", "win", "loss"],
        search_distances=[0, 0, 5, 3], search_best="left", search_depth=6, search_nodes=1234,
        search_ms=10.0, search_line=["left", "up"], version="1", model="m\x1b]0;x@1", backend="cpu",
    )  # fmt: skip


def recorded(folder: Path, name: str = "Snake a") -> Path:
    """Return a game file of the server's recorder, with decisions beside it."""
    store = Store(folder, limit_bytes=1 << 30, keep_s=1e9, idle_s=1e9)
    body = [{"x": 3, "y": 3}, {"x": 3, "y": 2}, {"x": 3, "y": 1}]
    snake = {"id": "a", "name": name, "health": 80, "body": body, "head": body[0], "length": 3}
    board = {"width": 7, "height": 7, "snakes": [snake], "food": [], "hazards": []}
    game = {"id": "g", "ruleset": {"name": "solo"}, "timeout": 500}
    for turn in (0, 1, 2):
        request = {"game": game, "turn": turn, "board": board, "you": snake}
        body_bytes = json.dumps(request).encode()
        store.take(
            Event(kind="move", game="g", you="a", turn=turn, body=body_bytes, decided=decided(turn))
        )
    store.close()
    (path,) = folder.glob("*.jsonl")
    return path


@pytest.fixture(params=["played", "recorded"])
def game_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    makers: dict[str, Callable[[Path], Path]] = {"played": played, "recorded": recorded}
    if request.param == "recorded":
        pytest.importorskip("pyarrow", reason="needs snakekit[record]")
    return makers[request.param](tmp_path)


def test_a_turn_is_shown(game_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["replay", str(game_file), "--turn", "2"]) == 0
    out = capsys.readouterr().out
    assert "turn 2" in out
    assert out.count("│") >= 14
    assert main(["replay", str(game_file), "--turn", "-1"]) == 0
    assert re.search(r"won by|a draw|ends before the game does", capsys.readouterr().out)


def test_decisions_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow", reason="needs snakekit[record]")
    path = recorded(tmp_path, name="evil\x1b]0;title\x07")
    assert main(["replay", str(path), "--turn", "1"]) == 0
    out = capsys.readouterr().out
    for words in ("◀ left  search win", "12.5 ms of 400 ms", "70.0%", "win in 5", "loss in 3"):
        assert words in out
    assert "\x1b" not in out
    assert "evil?]0;title?" in out


def test_without_pyarrow_boards_are_shown_and_it_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyarrow", reason="needs snakekit[record]")
    path = recorded(tmp_path)
    monkeypatch.setattr(columns, "available", lambda: False)
    assert main(["replay", str(path)]) == 0
    out, err = capsys.readouterr()
    assert out.count("turn ") == 3
    assert "decisions are not shown: needs pyarrow" in err


def test_every_turn_is_on_the_page(game_file: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["replay", str(game_file), "--html", str(page)]) == 0
    found = re.search(r'id="frames">(.*?)</script>', page.read_text(), re.DOTALL)
    assert found
    frames = json.loads(found[1])
    lines = game_file.read_bytes().splitlines()
    boards = [json.loads(line)["board"] for line in lines if b'"board"' in line]
    assert [frame["board"] for frame in frames] == boards
    assert [frame["over"] for frame in frames] == [False] * (len(frames) - 1) + [True]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "line 1: expected a game"),
        ("{}\n", "line 1: expected a game"),
        ('{"ruleset":{}}\n', "there are no turns"),
        ('{"ruleset":{}}\n{"board":{"snakes":[{}]},"turn":0}\n', "line 2: not a board"),
        ('{"ruleset":{}}\n{"board":7}\n', "line 2: not a board"),
        ('{"ruleset":{}}\nnot json\n', "line 2"),
    ],
)
def test_what_is_no_game_is_refused(
    tmp_path: Path, text: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "game.jsonl"
    path.write_text(text)
    assert main(["replay", str(path)]) == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert len(err.splitlines()) == 1
    assert main(["replay", str(tmp_path / "none")]) == 2


def test_a_turn_that_is_not_there_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(played(tmp_path)), "--turn", "999"]) == 2
    assert "there is no turn 999" in capsys.readouterr().err


def test_keys(tmp_path: Path) -> None:
    cursor = Cursor(load(played(tmp_path)))

    def after(*keys: bytes) -> int:
        for key in keys:
            assert cursor.press(key)
        return cursor.index

    assert after(b"n", b"\x1b[C", b" ") == 3
    assert after(b"p") == 2
    assert after(b"1", b"7", b"\n") == 17
    assert after(b"\x1b[5~") == 7
    last = after(b"\x1b[F")
    assert last == cursor._replay.size - 1
    assert after(b"n") == last
    assert after(b"9", b"9", b"9", b"9", b"\r") == last
    assert after(b"\x1b[H", b"p", b"?") == 0
    assert after(b"5", b"n") == 1
    assert not cursor.press(b"q")
    assert replay.split(b"12\r\x1b[C\x1b[6~q") == [b"1", b"2", b"\r", b"\x1b[C", b"\x1b[6~", b"q"]
    assert not all(cursor.press(key) for key in replay.split(b""))


def test_on_a_terminal_keys_step_and_the_terminal_is_left_as_it_was(tmp_path: Path) -> None:
    path = played(tmp_path)
    ours, theirs = pty.openpty()
    import termios

    before = termios.tcgetattr(theirs)
    process = subprocess.Popen(
        [sys.executable, "-m", "snakekit", "replay", str(path)],
        stdin=theirs, stdout=theirs, stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"},
    )  # fmt: skip
    seen = b""

    def until(words: bytes) -> None:
        nonlocal seen
        end = time.monotonic() + 30
        while words not in seen:
            assert time.monotonic() < end, seen
            if select.select([ours], [], [], 0.1)[0]:
                seen += os.read(ours, 65536)

    try:
        until(b"turn 0")
        os.write(ours, b"\x1b[C")
        until(b"turn 1")
        os.write(ours, b"12\r")
        until(b"turn 12")
        os.write(ours, b"q")
        assert process.wait(20) == 0
        assert termios.tcgetattr(theirs) == before
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)


def test_a_view_fits_a_narrow_terminal(tmp_path: Path) -> None:
    console = Console(width=60, file=open(os.devnull, "w"))  # noqa: SIM115
    with console.file:
        console.print(load(played(tmp_path)).view(0))
    assert replay.STRIDE == 10


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="the browser chromium is not installed")
def test_a_browser_draws_the_page(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="needs snakekit[record]")
    page = tmp_path / "page.html"
    name = "</script><img src=x onerror=alert(1)>"
    assert main(["replay", str(recorded(tmp_path / "games", name)), "--html", str(page)]) == 0
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--disable-background-networking", f"--user-data-dir={tmp_path / 'profile'}",
        "--dump-dom", page.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout.count('class="square"') == 49
    assert "<h2>turn 0</h2>" in done.stdout
    assert '<td class="win">win in 5</td>' in done.stdout
    assert "&lt;img src=x" in done.stdout
