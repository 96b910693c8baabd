"""Seats, seeds, counts, files and pictures of whole runs."""

import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from fake_snake import FakeSnake, StopAt, play, rules
from rich.console import Console

from snakekit.bench import picture
from snakekit.bench.board_view import SeenBoard, board_panel, board_text, heading
from snakekit.bench.gamefile import GameFileError, read_game
from snakekit.bench.match import GameReport, seat_order
from snakekit.bench.players import PlayerError, parse_player, parse_players
from snakekit.bench.screen import Screen
from snakekit.bench.table import summary
from snakekit.bench.tally import Outcome, percentile
from snakekit.core import Snake, State
from snakekit.trainer.stats import wilson


@pytest.mark.parametrize("players", [1, 2, 3, 4, 8])
def test_everyone_sits_everywhere_equally(players: int) -> None:
    orders = [seat_order(game, players) for game in range(3 * players)]
    for seat in range(players):
        sitting = [order[seat] for order in orders]
        assert [sitting.count(p) for p in range(players)] == [3] * players


async def test_rotated_games_share_their_start(tmp_path: Path) -> None:
    result = await play(["random", "greedy"], games=4, out=tmp_path)
    starts = [_bodies(read_game(tmp_path / g.file).turns[0]) for g in result.games]
    assert starts[0] == starts[1]
    assert result.games[0].seats == list(reversed(result.games[1].seats))


def _bodies(request: dict[str, Any]) -> list[Any]:
    return [snake["body"] for snake in request["board"]["snakes"]]


def _files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


async def test_same_seed_same_games() -> None:
    specs = ["random", "greedy", "search:depth=1", "random"]
    first = await play(specs, games=3, seed=7)
    again = await play(specs, games=3, seed=7, parallel=3)
    other = await play(specs, games=3, seed=8)
    assert [g.moves for g in first.games] == [g.moves for g in _sorted(again.games)]
    assert [g.moves for g in first.games] != [g.moves for g in other.games]
    assert len({str(g.moves) for g in first.games}) == 3


def _sorted(games: list[GameReport]) -> list[GameReport]:
    return sorted(games, key=lambda game: game.index)


async def test_counts_add_up() -> None:
    result = await play(["random", "random", "greedy"], games=6)
    outcomes = [tally.outcomes for tally in result.tallies]
    assert all(tally.games == 6 for tally in result.tallies)
    wins = sum(o[Outcome.WIN] for o in outcomes)
    drawn_games = sum("draw" in g.outcomes.values() for g in result.games)
    assert wins + drawn_games == 6
    for player, tally in enumerate(result.tallies):
        assert tally.moves == len(tally.latencies_ms)
        assert tally.moves == sum(len(g.moves[player]) for g in result.games)
        assert sum(tally.deaths.values()) == 6 - tally.outcomes[Outcome.WIN]
        assert tally.faults == 0


async def test_game_file_is_the_official_form(tmp_path: Path) -> None:
    result = await play(["a=greedy", "b=random"], out=tmp_path)
    (path,) = _files(tmp_path)
    assert path.suffix == ".jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert set(lines[0]) == {"id", "ruleset", "map", "timeout", "source"}
    assert [line["turn"] for line in lines[1:-1]] == list(range(result.games[0].turns + 1))
    assert all(set(line) == {"game", "turn", "board", "you"} for line in lines[1:-1])
    assert set(lines[-1]) == {"winnerId", "winnerName", "isDraw"}
    assert lines[-1]["winnerName"] == result.games[0].winner
    assert lines[-1]["isDraw"] == (result.games[0].winner == "")
    record = read_game(path)
    assert record.result == lines[-1]
    assert len(record.turns) == len(lines) - 2


async def test_stopping_keeps_what_was_played(tmp_path: Path, snake: FakeSnake) -> None:
    specs = [snake.url, "greedy"]
    result = await play(specs, games=9, out=tmp_path, watcher=StopAt(1, 2))
    assert result.stopped
    assert [g.aborted for g in result.games] == [False, True]
    assert all(tally.games == 1 for tally in result.tallies)
    names = [path.name for path in _files(tmp_path)]
    assert [name.endswith(".aborted.jsonl") for name in names] == [False, True]
    record = read_game(tmp_path / names[1])
    assert record.result is None
    assert [turn["turn"] for turn in record.turns] == [0, 1, 2]
    assert len(snake.requests("end")) == 2
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(summary(parse_players(specs), result))
    assert "stopped after 1 game" in console.export_text()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "line 1"),
        ("{]", "line 1"),
        ('{"ruleset": {}}\n[1]', "line 2"),
        ('{"ruleset": {}}\n{"a": 1}\n{"isDraw": true}', "expected a board"),
    ],
)
def test_bad_game_files_are_named(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "game.jsonl"
    path.write_text(content)
    with pytest.raises(GameFileError, match=words):
        read_game(path)


def test_players_are_parsed() -> None:
    players = parse_players(["x=http://h:1/", "random", "random", "search:depth=3", "y=search:50"])
    assert [p.name for p in players] == ["x", "random", "random#2", "search:depth=3", "y"]
    assert players[0].url == "http://h:1"
    assert len({p.looks.color for p in players}) == 5


@pytest.mark.parametrize(
    "spec",
    [
        "fast",
        "search",
        "search:",
        "search:0",
        "search:abc",
        "search:depth=0",
        "search:nodes=0",
        "http://",
        "policy:no",
    ],
)
def test_bad_players_are_refused(spec: str) -> None:
    with pytest.raises(PlayerError) as error:
        parse_player(spec)
    assert spec in str(error.value)
    assert "\n" not in str(error.value)


async def test_policy_plays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Always:
        def best(self, state: State, seat: int, *, equilibrium: bool = False) -> int:
            return 1

    model = tmp_path / "model.onnx"
    model.write_bytes(b"")
    monkeypatch.setattr("snakekit.runtime.policy.Policy.load", lambda path: Always())
    result = await play([f"policy:{model}", "random"])
    assert set(result.games[0].moves[0]) == {1}
    assert result.tallies[0].deaths["wall-collision"] == 1


def test_statistics() -> None:
    values = [float(v) for v in range(1, 101)]
    assert [percentile(values, s) for s in (0.0, 0.5, 0.99, 1.0)] == [1, 50, 99, 100]
    assert math.isnan(percentile([], 0.5))
    # Published values for 8 of 10.
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 0) == (0, 1)
    assert wilson(5, 5)[1] == 1


def _board() -> State:
    return State(
        5,
        5,
        [Snake("one", 50, [(1, 1), (1, 0), (0, 0)]), Snake("two", 9, [(3, 3), (4, 3), (4, 4)])],
        [(2, 2)],
        [(0, 4)],
    )


def test_board_text_shows_heads_food_and_hazard() -> None:
    rows = board_text(_board()).plain.splitlines()
    assert len(rows) == 7
    assert all(len(row) == 13 for row in rows)
    assert rows[1].startswith("│ ░░")
    assert "B◀b " in rows[2]
    assert "● " in rows[3]
    assert "A▲" in rows[4]


def test_heading_on_wrapped_boards() -> None:
    assert heading([(0, 3), (10, 3)]) == (1, 0)
    assert heading([(4, 10), (4, 0)]) == (0, -1)
    assert heading([(4, 4), (4, 4)]) == (0, 1)
    assert heading([(4, 4)]) == (0, 1)


async def test_screen_draws_on_a_terminal() -> None:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=100, height=40)
    with Screen(console, 2, view=True) as screen:
        await play(["random", "greedy"], games=2, watcher=screen, rules=rules(max_turns=4))
    assert "game 2, turn 4" in file.getvalue()
    assert "▲" in file.getvalue()


async def test_picture_of_a_turn(tmp_path: Path) -> None:
    result = await play(["<a&b>=greedy", "random"], out=tmp_path)
    game, out = tmp_path / result.games[0].file, tmp_path / "board.svg"
    assert picture.main([str(game), "-1", str(out)]) == 0
    text = out.read_text()
    assert "prefers-color-scheme:dark" in text
    assert "<a&b>" not in text
    assert picture.main([str(game), "99999", str(out)]) == 2
    assert picture.main([str(tmp_path / "none"), "0", str(out)]) == 2


def test_panel_renders() -> None:
    file = io.StringIO()
    Console(file=file, width=80).print(board_panel(SeenBoard.from_state(_board()), "now, "))
    assert "now, turn 0" in file.getvalue()
