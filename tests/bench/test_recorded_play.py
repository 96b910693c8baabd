"""The server's own records against the game files of the match runner that played it."""

from pathlib import Path

import pytest

from snakekit.__main__ import main
from snakekit.bench.gamefile import GameRecord, read_game
from snakekit.bench.served import served
from snakekit.runtime import boardjson
from snakekit.runtime.recording import columns

pytest.importorskip("pyarrow", reason="needs snakekit[record]")

OPTIONS = ["--backend", "random", "--mode", "hybrid", "--budget-ms", "3", "--table-mb", "1"]


def boards(game: GameRecord, you: str) -> dict[int, object]:
    """Return the boards on which `you` lives, by turn."""
    return {
        turn["turn"]: turn["board"]
        for turn in game.turns
        if any(snake["id"] == you for snake in turn["board"]["snakes"])
    }


def position(game: GameRecord) -> object:
    """Return the last position; the latency of the last answer only the `/end` tells."""
    board = game.turns[-1]["board"]
    snakes = [(snake["id"], snake["health"], snake["body"]) for snake in board["snakes"]]
    return snakes, board["food"], board["hazards"]


def test_a_record_is_what_the_match_runner_wrote(tmp_path: Path) -> None:
    records, games = tmp_path / "records", tmp_path / "games"
    with served([*OPTIONS, "--record", str(records)]) as place:
        for others in (["random", "greedy"], []):
            command = ["play", place.url, *others, "--games", "2", "--seed", "3"]
            assert main([*command, "--out", str(games)]) == 0
    files = {
        game.game["id"]: (path, game)
        for path in records.glob("*.jsonl")
        for game in [read_game(path)]
    }
    played = [read_game(path) for path in games.glob("*.jsonl")]
    assert len(files) == len(played) == 4
    for theirs in played:
        path, ours = files[theirs.game["id"]]
        boardjson.read_game(path.read_bytes())
        assert ours.game == theirs.game
        you = ours.turns[0]["you"]["id"]
        assert boards(ours, you) == boards(theirs, you)
        assert ours.result == theirs.result
        assert len(ours.turns) <= len(theirs.turns)
        assert ours.turns[-1]["turn"] == theirs.turns[-1]["turn"]
        assert position(ours) == position(theirs)
        rows = columns.read(path.with_name(path.name.split(".")[0] + ".parquet"))
        assert [row.turn for row in rows] == sorted(boards(theirs, you))
        assert all(row.answer_ms < row.timeout_ms for row in rows)
