"""Playing: the same games however they are played, over HTTP too, and resumed exactly."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from fake_snake import FakeSnake, rules

from snakekit.bench.arena.bout import BoutRecord, places_of
from snakekit.bench.arena.entrants import parse_entrants
from snakekit.bench.arena.lanes import Crew, Hall
from snakekit.bench.arena.minds import sample
from snakekit.bench.arena.models import CHUNK, ModelSource
from snakekit.bench.arena.schedule import Job, schedule
from snakekit.bench.arena.store import GAMES, Plan, Store, StoreError, read_games
from snakekit.bench.gamefile import read_game
from snakekit.runtime.backends.random_play import RandomBackend, random_card


class FakeNet(RandomBackend):
    """A model whose answer depends on the observation alone."""

    def infer(self, batch: np.ndarray) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
        assert len(batch) == CHUNK
        sums = batch.astype(np.int64).reshape(len(batch), -1) @ np.arange(batch[0].size)
        logits = np.stack([(sums * k % 97) / 10 for k in (3, 5, 7, 11)], 1).astype(np.float32)
        return logits, np.zeros(len(batch), np.float32)


def hall(specs: Sequence[str], **options: object) -> Hall:
    entrants = parse_entrants(specs)
    source = ModelSource("fake", random_card(), FakeNet)
    values: dict[str, object] = {
        "entrants": {e.name: e for e in entrants},
        "sources": {e.name: source for e in entrants if e.has_model},
        "rules": rules(max_turns=60),
        "seed": 3,
    }
    return Hall(**(values | options))  # type: ignore[arg-type]


def play(place: Hall, jobs: Sequence[Job], threads: int = 1, parallel: int = 4) -> list[BoutRecord]:
    crew = Crew(place, jobs, threads=threads, parallel=parallel, remote=2)
    crew.start()
    crew.join()
    found = []
    while not crew.results.empty():
        item = crew.results.get()
        if isinstance(item, BaseException):
            raise item
        found.append(item)
    return sorted(found, key=lambda record: record.game)


SPECS = ["greedy", "random", "search:nodes=40", "policy:x", "hot=policy:x@0.7", "hybrid:x:depth=1"]


def test_games_do_not_depend_on_how_they_are_played() -> None:
    place = hall(SPECS)
    jobs = schedule(list(place.entrants), 4, 24, seed=1)
    first = play(place, jobs)
    assert [record.game for record in first] == list(range(24))
    assert first == play(place, jobs, threads=3, parallel=7)
    assert first == play(place, jobs[::-1], threads=1, parallel=1)
    assert first != play(hall(SPECS, seed=4), jobs)


def test_the_games_of_a_block_share_their_start(tmp_path: Path) -> None:
    place = hall(["greedy", "random", "a=greedy"], out=tmp_path)
    found = play(place, schedule(list(place.entrants), 3, 6, seed=1))
    assert len({record.seed for record in found}) == 2
    boards = [read_game(tmp_path / record.file).turns[0]["board"] for record in found]
    starts = [[s["body"] for s in b["snakes"]] + b["food"] for b in boards]
    assert starts[0] == starts[1] == starts[2] != starts[3]
    assert starts[3] == starts[4] == starts[5]
    for seat in range(3):
        assert {record.seats[seat] for record in found[:3]} == set(place.entrants)


def test_records_agree_with_the_saved_games(tmp_path: Path) -> None:
    place = hall(["greedy", "random", "search:depth=1"], out=tmp_path)
    for record in play(place, schedule(list(place.entrants), 2, 12, seed=2)):
        game = read_game(tmp_path / record.file)
        assert game.result is not None
        last = game.turns[-1]
        assert last["turn"] == record.turns
        alive = {snake["name"] for snake in last["board"]["snakes"]}
        assert alive == {n for n, d in zip(record.seats, record.died, strict=True) if d == 0}
        firsts = [n for n, p in zip(record.seats, record.places, strict=True) if p == 1]
        assert game.result["isDraw"] == (len(firsts) > 1)
        if len(firsts) == 1:
            assert game.result["winnerName"] == firsts[0]
        for cause, died in zip(record.causes, record.died, strict=True):
            assert (cause == "") == (died == 0)
        assert record.cut == (len(alive) > 1)


def test_places() -> None:
    assert places_of([0, 5, 9, 5]) == [1, 3, 2, 3]
    assert places_of([0, 0, 9]) == [1, 1, 3]
    assert places_of([7, 7]) == [1, 1]


def test_temperature_draws_in_proportion() -> None:
    drawn = [sample([2.0, 0.0, 9.0, 1.0], 0b1011, 2.0, key) for key in range(4000)]
    shares = np.bincount(drawn, minlength=4) / len(drawn)
    weights = np.exp([1.0, 0.0, -np.inf, 0.5])
    assert shares == pytest.approx(weights / weights.sum(), abs=0.03)
    assert sample([0.0, 1e6, 0.0, 0.0], 0b1111, 0.01, 1) == 1


def test_a_model_that_gives_no_numbers_still_plays(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = np.full((CHUNK, 4), np.nan, np.float32)
    monkeypatch.setattr(FakeNet, "infer", lambda self, batch: (nothing, nothing[:, 0]))
    place = hall(["policy:x", "hot=policy:x@1", "hybrid:x:depth=1"])
    assert len(play(place, schedule(list(place.entrants), 2, 6, seed=1))) == 6


def test_what_breaks_a_lane_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: FakeNet, batch: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(FakeNet, "infer", fail)
    place = hall(["policy:x", "random"])
    with pytest.raises(RuntimeError, match="out of order"):
        play(place, schedule(list(place.entrants), 2, 6, seed=1))


async def test_servers_take_part(snake: FakeSnake) -> None:
    place = hall([f"web={snake.url}", "greedy", "policy:x"], rules=rules(timeout_ms=5000))
    jobs = schedule(list(place.entrants), 3, 3, seed=1)
    found = await asyncio.to_thread(play, place, jobs)
    assert len(found) == 3
    assert all(record.faults == [0, 0, 0] for record in found)
    assert len(snake.requests("start")) == len(snake.requests("end")) == 3
    asked = snake.requests("move")
    assert all(request["you"]["name"] == "web" for request in asked)
    for record in found:
        turns = [r["turn"] for r in asked if r["you"]["id"].startswith(f"{record.game}-")]
        seat = record.seats.index("web")
        assert turns == list(range(record.died[seat] or record.turns))


async def test_a_broken_server_goes_straight_on_and_is_counted(snake: FakeSnake) -> None:
    snake.moves = lambda request: "?"
    place = hall([f"web={snake.url}", "greedy"], rules=rules(timeout_ms=5000))
    for record in await asyncio.to_thread(play, place, schedule(list(place.entrants), 2, 2, 1)):
        seat = record.seats.index("web")
        assert record.places[seat] == 2
        assert record.faults[seat] == record.died[seat] > 0
        assert record.faults[1 - seat] == 0


def plan(**options: object) -> Plan:
    return Plan(players=["a", "b"], fingerprints={"a": "1"}, options={"seed": 1} | options)


def test_a_resumed_arena_plays_the_same_games(tmp_path: Path) -> None:
    place = hall(["greedy", "random", "policy:x"])
    jobs = schedule(list(place.entrants), 2, 12, seed=1)
    whole = play(place, jobs)
    with Store(tmp_path, plan(), resume=False) as store:
        for record in play(place, [jobs[n] for n in (0, 3, 4)]):
            store.add(record)
    # A crash in the middle of a line.
    with (tmp_path / GAMES).open("ab") as file:
        file.write(b'{"game":7,"blo')
    with Store(tmp_path, plan(), resume=True) as store:
        done = {record.game for record in store.records}
        assert done == {0, 3, 4}
        for record in play(place, [job for job in jobs if job.game not in done], threads=2):
            store.add(record)
    assert sorted(read_games(tmp_path / GAMES), key=lambda record: record.game) == whole


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (plan(seed=2), "seed was 1"),
        (Plan(players=["a"], fingerprints={"a": "1"}, options={"seed": 1}), "with the players a b"),
        (
            Plan(players=["a", "b"], fingerprints={"a": "2"}, options={"seed": 1}),
            "model of player a",
        ),
    ],
)
def test_another_arena_is_not_resumed(tmp_path: Path, other: Plan, words: str) -> None:
    Store(tmp_path, plan(), resume=False).__exit__(None, None, None)
    with pytest.raises(StoreError, match=words):
        Store(tmp_path, other, resume=True)
    with pytest.raises(StoreError, match="holds an arena already"):
        Store(tmp_path, plan(), resume=False)


def test_damaged_games_are_named(tmp_path: Path) -> None:
    path = tmp_path / GAMES
    path.write_text("{}\n")
    with pytest.raises(StoreError, match="line 1: not a game"):
        read_games(path)
