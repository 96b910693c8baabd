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


@pytest.mark.parametrize("others", [["random", "greedy"], []])
def test_a_record_is_what_the_match_runner_wrote(tmp_path: Path, others: list[str]) -> None:
    records, games = tmp_path / "records", tmp_path / "games"
    with served([*OPTIONS, "--record", str(records)]) as place:
        command = ["play", place.url, *others, "--games", "2"]
        assert main([*command, "--out", str(games), "--seed", "3"]) == 0
    files = {
        game.game["id"]: (path, game)
        for path in records.glob("*.jsonl")
        for game in [read_game(path)]
    }
    played = [read_game(path) for path in games.glob("*.jsonl")]
    assert len(files) == len(played) == 2
    for theirs in played:
        path, ours = files[theirs.game["id"]]
        boardjson.read_game(path.read_bytes())
        assert ours.game == theirs.game
        you = ours.turns[0]["you"]["id"]
        assert boards(ours, you) == boards(theirs, you)
        assert ours.result == theirs.result
        assert ours.turns[-1]["turn"] == theirs.turns[-1]["turn"]
        assert ours.turns[-1]["board"] == theirs.turns[-1]["board"]
        rows = columns.read(path.with_name(path.name.split(".")[0] + ".parquet"))
        assert [row.turn for row in rows] == sorted(boards(theirs, you))
        assert all(row.answer_ms < row.timeout_ms for row in rows)
