"""The command line `snakekit arena`."""

import asyncio
import json
import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest
from fake_snake import FakeSnake

from snakekit.__main__ import main
from snakekit.bench.arena.store import GAMES, read_games
from snakekit.bench.gamefile import read_game

PLAYERS = ["greedy", "random", "search:depth=1"]
QUICK = ["--bootstrap", "100", "--max-turns", "80"]


def test_tables_page_and_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, report, page = tmp_path / "arena", tmp_path / "r.json", tmp_path / "sub" / "p.html"
    files = ["--out", str(out), "--json", str(report), "--html", str(page), "--save-games"]
    assert main(["arena", *PLAYERS, "--games", "18", *QUICK, *files]) == 0
    shown = capsys.readouterr().out
    for words in ("Ratings", "Elo", "95 %", "Deaths", "Points of row", "cycles:", "a minute"):
        assert words in shown
    assert max(len(line) for line in shown.splitlines() if str(out) not in line) <= 80
    content = json.loads(report.read_text())
    by_name = {result["name"]: result for result in content["results"]}
    assert by_name["arena.mixed.games_per_min"]["value"] > 0
    assert by_name["arena.greedy.elo"]["samples"] == 12
    assert by_name["arena.cyclicity"]["better"] == "lower"
    assert content["payoff"]["points"][0][0] is None
    for player in content["players"]:
        assert player["wins"] + player["draws"] + player["losses"] == 12
        assert player["elo_95"][0] < player["elo"] < player["elo_95"][1]
    assert len(read_games(out / GAMES)) == 18
    saved = sorted((out / "games").glob("*.jsonl"))
    assert len(saved) == 18
    assert read_game(saved[0]).result is not None
    _check_page(page.read_text(encoding="utf-8"))


def _check_page(text: str) -> None:
    assert text.count("<svg") == 2
    assert "heat map" in text
    assert "prefers-color-scheme:dark" in text
    # Nothing that a browser could fetch or run.
    assert not re.search(r"<script|<link|<img|\bsrc=|\bhref=|url\(|@import|https?://", text)


def test_names_cannot_break_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "p.html"
    names = ["<script>=greedy", "[bold]&[red]=random"]
    args = ["--games", "2", "--out", str(tmp_path / "a"), "--html", str(page), *QUICK]
    assert main(["arena", *names, *args]) == 0
    _check_page(page.read_text(encoding="utf-8"))
    assert "[bold]&[red]" in capsys.readouterr().out


def test_resume_plays_on_and_repeats_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, part = str(tmp_path / "whole"), str(tmp_path / "part")
    four = ["policy", "hot=policy:@1", *PLAYERS, "--mode", "four", "--seed", "7", *QUICK]
    assert main(["arena", *four, "--games", "12", "--out", whole]) == 0
    threads = ["--threads", "3", "--parallel", "2"]
    assert main(["arena", *four, "--games", "4", "--out", part, *threads]) == 0
    # The players, the mode and the seed come from the arena itself.
    assert main(["arena", "--resume", "--out", part, "--games", "12"]) == 0
    assert "played 8 games" in capsys.readouterr().out
    found = [sorted(read_games(Path(f) / GAMES), key=lambda r: r.game) for f in (whole, part)]
    assert found[0] == found[1]
    assert main(["arena", "--resume", "--out", part, "--games", "12"]) == 0
    assert "played" not in capsys.readouterr().out
    assert main(["arena", "--resume", "--out", part, "--seed", "8"]) == 2
    assert "seed was 7" in capsys.readouterr().err


def test_sprt_stops_early_and_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["--sprt", "0,100", "--games", "2000", *QUICK]
    assert main(["arena", "greedy", "random", *args, "--out", str(tmp_path / "a")]) == 0
    assert "first is stronger" in capsys.readouterr().out
    # A dozen pairs decide; quick lanes may not run far ahead of the test.
    assert len(read_games(tmp_path / "a" / GAMES)) < 100
    assert main(["arena", "random", "greedy", *args, "--out", str(tmp_path / "b")]) == 1
    assert "first is not stronger" in capsys.readouterr().out


async def test_over_http(snake: FakeSnake, tmp_path: Path) -> None:
    args = ["arena", f"web={snake.url}", "greedy", "random", "--games", "6", *QUICK]
    args += ["--timeout-ms", "5000", "--out", str(tmp_path / "a")]
    assert await asyncio.to_thread(main, args) == 0
    assert len(read_games(tmp_path / "a" / GAMES)) == 6


def test_ctrl_c_keeps_games_and_says_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a"

    def interrupt() -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until and not (
            (out / GAMES).exists() and (out / GAMES).stat().st_size
        ):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    code = main(["arena", "greedy", "random", "--games", "100000", "--out", str(out), *QUICK])
    err = capsys.readouterr().err
    assert code == 1
    assert "stopped after" in err
    assert f"--resume --out {out} --games 100000" in err
    assert len(read_games(out / GAMES)) >= 1


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], "2 to 64 players, found 0"),
        (["greedy"], "2 to 64 players, found 1"),
        (["greedy", "sprinter"], "sprinter"),
        (["greedy", "search:depth=99"], "depth: expected 1 to 64 turns, found '99'"),
        (["greedy", "search:0"], "1 to 60000 milliseconds"),
        (["greedy", "hybrid:standard"], "1 to 60000 milliseconds"),
        (["greedy", "policy:missing.onnx"], "no such model file or checkpoint"),
        (["greedy", "policy:{tmp}"], "no checkpoint in it"),
        (["greedy", "random", "--ruleset", "solo"], "rules for several snakes"),
        (["greedy", "random", "--mode", "four"], "needs at least 4 players, found 2"),
        (["greedy", "random", "--mode", "nine"], "mode"),
        (["greedy", "random", "--games", "0"], "games"),
        (["greedy", "random", "--anchor", "me"], "no player is called 'me'"),
        (["greedy", "random", "--sprt", "20"], "ELO0,ELO1"),
        (["greedy", "random", "--sprt", "20,0"], "ELO0,ELO1"),
        (["greedy", "random", "policy", "--sprt", "0,20"], "exactly 2 players, found 3"),
        (["greedy", "random", "--resume"], "--out FOLDER"),
        (["greedy", "random", "--resume", "--out", "{tmp}"], "cannot be read"),
        (["greedy", "random", "--json", "{tmp}"], "json"),
        (["greedy", "random", "--map", "solo_maze"], "at most 1"),
        (["greedy", "http://127.0.0.1:9"], "cannot be reached"),
        (["--run", "{tmp}"], "at least 2 checkpoints in it, found 0"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(
    args: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    args = [arg.replace("{tmp}", str(tmp_path)) for arg in args]
    if "--out" not in args and "--resume" not in args:
        args += ["--out", str(tmp_path / "arena")]
    assert main(["arena", *args]) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
