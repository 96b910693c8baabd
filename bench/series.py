"""A run of games: several at once, seats rotated, stoppable at any time."""

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from snakekit.bench.engine_client import EngineClient
from snakekit.bench.match import Game, GameReport, GameRules
from snakekit.bench.players import Player
from snakekit.bench.protocol import Json
from snakekit.bench.tally import Tally


class Watcher(Protocol):
    """What wants to know how a run goes; called on the event loop, so it has to be quick."""

    def on_turn(self, index: int, request: Json) -> None:
        """Game `index` has reached the board of `request`."""

    def on_game(self, report: GameReport) -> None:
        """A game has ended."""


@dataclass
class SeriesResult:
    """All that was played: tallies in the order of the players, games in the order of ending."""

    tallies: list[Tally]
    games: list[GameReport] = field(default_factory=list)
    seconds: float = 0.0
    stopped: bool = False


async def check_players(players: list[Player], client: EngineClient) -> None:
    """Ask every distinct server for its index once, and share the answer between its seats.

    Raises:
        PlayerError: a server is not ready; the message names it.
    """
    first: dict[str, Player] = {}
    for player in players:
        if player.url is None:
            continue
        if player.url not in first:
            await client.check_index(player)
            first[player.url] = player
        else:
            known = first[player.url]
            player.looks = known.looks
            player.apiversion, player.version = known.apiversion, known.version


class Series:
    """Plays the games of one run. Nothing is lost when it is stopped halfway."""

    def __init__(
        self,
        players: list[Player],
        rules: GameRules,
        *,
        games: int,
        parallel: int,
        seed: int,
        client: EngineClient,
        watcher: Watcher,
        out: Path | None,
    ) -> None:
        """Prepare a run of `games` games, at most `parallel` of them at once."""
        self._players, self._rules, self._seed = players, rules, seed
        self._games, self._parallel = games, parallel
        self._client, self._watcher, self._out = client, watcher, out
        self._stop = asyncio.Event()
        self._next = iter(range(games))
        self.result = SeriesResult([Tally() for _ in players])

    def stop(self) -> None:
        """Let running games end at their next turn, and start no more."""
        self._stop.set()
        self.result.stopped = True

    async def play(self) -> SeriesResult:
        """Play all games, or those until `stop`, and return the counts."""
        begun = time.perf_counter()
        # More threads than processors would steal time from each other's search budgets.
        threads = os.cpu_count() or 1
        with ThreadPoolExecutor(threads, thread_name_prefix="player") as workers:
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(self._parallel, self._games)):
                        group.create_task(self._lane(workers))
            except ExceptionGroup as group:
                # One lane's failure ends the run: the caller handles it as if there was no group.
                raise group.exceptions[0] from None
            finally:
                self.result.seconds = time.perf_counter() - begun
        return self.result

    async def _lane(self, workers: ThreadPoolExecutor) -> None:
        for index in self._next:
            if self._stop.is_set():
                return
            game = Game(
                index,
                self._players,
                self._rules,
                self._seed,
                client=self._client,
                workers=workers,
                on_turn=self._watcher.on_turn,
                out=self._out,
            )
            report = await game.play(self._stop)
            for total, tally in zip(self.result.tallies, game.tallies, strict=True):
                total.add(tally)
            self.result.games.append(report)
            self._watcher.on_game(report)


class Silent:
    """A watcher that shows nothing."""

    def on_turn(self, index: int, request: Json) -> None:
        """Ignore the turn."""

    def on_game(self, report: GameReport) -> None:
        """Ignore the game."""
