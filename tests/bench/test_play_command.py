"""The command lines `snakekit play` and `snakekit bench server`."""

import asyncio
import json
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from fake_snake import FakeSnake

from snakekit.__main__ import main
from snakekit.bench.game_options import MapName
from snakekit.bench.play import PlayConfig
from snakekit.bench.scenarios import read_buckets
from snakekit.core import MAPS, RULESETS


def test_play_prints_tables_and_writes_the_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "result.json"
    code = main(["play", "a=greedy", "random", "--games", "4", "--json", str(report)])
    out = capsys.readouterr().out
    assert code == 0
    for words in ("Results", "win rate", "Deaths", "time-outs", "p99", "played 4 games"):
        assert words in out
    assert max(len(line) for line in out.splitlines()) <= 80
    content = json.loads(report.read_text())
    assert set(content) == {"environment", "results", "players", "games"}
    assert {"cpu", "versions", "commit"} <= set(content["environment"])
    by_name = {result["name"]: result for result in content["results"]}
    rate = by_name["play.a.win_rate"]
    assert set(rate) == {"name", "value", "unit", "better", "samples", "params"}
    assert rate["samples"] == 4
    assert rate["value"] == content["players"][0]["wins"] / 4
    assert by_name["play.random.latency_p99_ms"]["better"] == "lower"
    assert len(content["games"]) == 4


async def test_play_over_http(
    snake: FakeSnake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Generous on purpose: the server shares its loop with pytest on a busy machine.
    args = ["play", snake.url, "random", "--games", "2", "--max-turns", "5", "--require-clean"]
    args += ["--timeout-ms", "5000", "--out", str(tmp_path / "games")]
    code = await asyncio.to_thread(main, args)
    captured = capsys.readouterr()
    assert code == 0, captured.err
    assert "apiversion 1" in captured.err
    assert len(list((tmp_path / "games").glob("*.jsonl"))) == 2


async def test_require_clean_and_win_rate_fail_with_1(
    snake: FakeSnake, capsys: pytest.CaptureFixture[str]
) -> None:
    snake.moves = lambda request: "?"
    args = ["play", snake.url, "random", "--require-clean", "--min-win-rate", "1"]
    assert await asyncio.to_thread(main, args) == 1
    captured = capsys.readouterr()
    assert "moves with a time-out" in captured.err
    assert "expected at least 100.0%" in captured.err
    assert "first bad answer: not JSON" in captured.out


async def test_allow_unready_plays_on(snake: FakeSnake) -> None:
    snake.index_status = 503
    args = ["play", snake.url, "random", "--max-turns", "3"]
    assert await asyncio.to_thread(main, args) == 2
    assert await asyncio.to_thread(main, [*args, "--allow-unready"]) == 0


def test_all_maps_and_rulesets_are_offered() -> None:
    assert get_args(MapName) == MAPS
    found = get_args(get_args(get_type_hints(PlayConfig, include_extras=True)["ruleset"])[0])
    assert sorted(found) == sorted(RULESETS)


@pytest.mark.parametrize(
    "args",
    [
        ["--map", "hz_spiral", "--ruleset", "royale", "--shrink-every", "2"],
        ["--map", "royale", "--shrink-every", "3", "--hazard-damage", "30"],
        ["--map", "arcade_maze", "--width", "19", "--height", "21"],
    ],
)
def test_a_game_on_another_map_shows_its_hazards(args: list[str], tmp_path: Path) -> None:
    out = ["--out", str(tmp_path), "--max-turns", "12"]
    assert main(["play", "greedy", "greedy", *args, *out]) == 0
    (file,) = tmp_path.glob("*.jsonl")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines[0]["map"] == args[1]
    assert any(line["board"]["hazards"] for line in lines[1:-1])


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["sprinter"], "sprinter"),
        (["random"] * 9, "1 to 8 players, found 9"),
        (["random", "--width", "2"], "width"),
        (["random", "--height", "26"], "height"),
        (["random", "--games", "0"], "games"),
        (["random", "--ruleset", "chess"], "ruleset"),
        (["random", "--map", "moon"], "map"),
        (["random", "random", "--map", "arcade_maze"], "only 19x21"),
        (["random", "random", "--map", "solo_maze"], "at most 1"),
        (["random", "search:never"], "search:MS"),
        (["policy:missing.onnx", "random"], "no such model file"),
        (["http://127.0.0.1:9", "random"], "cannot be reached"),
        (["random", "random", "--json", "."], "json"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(
    args: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["play", *args]) == 2
    captured = capsys.readouterr()
    assert words in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""


async def test_bench_server(
    snake: FakeSnake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "server.json"
    args = ["bench", "server", "--url", snake.url, "--requests", "40", "--json", str(report)]
    args += ["--scenario", "single"]
    code = await asyncio.to_thread(main, args)
    captured = capsys.readouterr()
    assert code == 0, captured.err
    assert "server.policy.p50_ms" in captured.out
    names = [result["name"] for result in json.loads(report.read_text())["results"]]
    assert {"server.policy.p50_ms", "server.policy.p99_ms"} <= set(names)
    assert len(snake.requests("move")) == 60
    assert all(r["you"]["id"].endswith("-0") for r in snake.requests("move"))


def test_bench_server_unreachable(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "server", "--url", "http://127.0.0.1:9"]) == 2
    assert "cannot be reached" in capsys.readouterr().err


def test_histogram_bounds() -> None:
    def text(low: int, high: int) -> str:
        return (
            "# TYPE snakekit_move_seconds histogram\n"
            f'snakekit_move_seconds_bucket{{le="0.001"}} {low}\n'
            f'snakekit_move_seconds_bucket{{le="0.005"}} {high}\n'
            f'snakekit_move_seconds_bucket{{le="+Inf"}} {high}\n'
        )

    before = read_buckets(text(90, 100), "snakekit_move_seconds")
    after = read_buckets(text(185, 200), "snakekit_move_seconds").since(before)
    assert after.total == 100
    assert after.bound(0.95) == 0.001
    assert after.bound(0.99) == 0.005
