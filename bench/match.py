"""One game by the official protocol: start, a move of every living snake each turn, end."""

import asyncio
import hashlib
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path

from snakekit.bench.engine_client import EngineClient
from snakekit.bench.gamefile import GameWriter
from snakekit.bench.players import Mind, Player, think
from snakekit.bench.protocol import Answer, Json, Kind, Seat, Turn, game_object
from snakekit.bench.tally import Outcome, Tally
from snakekit.core import Settings, State

_UP = 0


@dataclass(frozen=True)
class GameRules:
    """What all games of a run have in common. `map` is the name that requests carry.

    `max_turns` 0 means no limit; a turn lasts at least `pace_ms` milliseconds.
    """

    width: int
    height: int
    ruleset: str
    map: str
    settings: Settings
    timeout_ms: int
    max_turns: int = 0
    pace_ms: int = 0


@dataclass(frozen=True)
class GameReport:
    """One played game. `outcomes` and `moves` are by player, in the order of the command line."""

    index: int
    game_id: str
    turns: int
    winner: str
    outcomes: dict[str, str]
    seats: list[str]
    moves: list[list[int]]
    aborted: bool
    file: str


def derive_seed(seed: int, *parts: object) -> int:
    """Return a seed of 63 bits that depends on `seed` and every part, the same on any machine."""
    text = ":".join(str(part) for part in (seed, *parts))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1


def seat_order(index: int, players: int) -> list[int]:
    """Return, for each seat of game `index`, which player sits there.

    Any `players` games in a row put every player on every seat once.
    """
    return [(seat + index) % players for seat in range(players)]


class Game:
    """One game in progress. Build it, `await play()` once, then read the tallies."""

    def __init__(
        self,
        index: int,
        players: list[Player],
        rules: GameRules,
        seed: int,
        *,
        client: EngineClient,
        workers: Executor,
        on_turn: Callable[[int, Json], None],
        out: Path | None = None,
    ) -> None:
        """Set the board up.

        Args:
            index: number of the game in its run, from 0.
            players: as given by the user; who sits where follows from `index`.
            rules: what all games share.
            seed: the run's seed. Games that differ only in who sits where share their start.
            client: the HTTP side.
            workers: threads for built-in players.
            on_turn: called with the game's index and the recorded request of every turn.
            out: folder for the game file, or None.
        """
        count = len(players)
        self._index, self._players, self._rules = index, players, rules
        self._order = seat_order(index, count)
        self._client, self._workers, self._on_turn = client, workers, on_turn
        self._map_seed = derive_seed(seed, "food", index)
        game_id = uuid.uuid4()
        self._seats = [
            Seat(str(uuid.uuid5(game_id, str(p))), players[p].name, players[p].looks)
            for p in self._order
        ]
        self._state = State.new_game(
            rules.width,
            rules.height,
            [seat.id for seat in self._seats],
            derive_seed(seed, "board", index // count),
            rules.settings,
        )
        self._minds: list[Mind | None] = []
        for p in self._order:
            sit = players[p].sit
            self._minds.append(sit(derive_seed(seed, "player", index, p)) if sit else None)
        self._last = [_UP] * count
        self._moves: list[list[int]] = [[] for _ in range(count)]
        self._game_id = str(game_id)
        self._object = game_object(
            game_id=self._game_id,
            ruleset=rules.ruleset,
            map_name=rules.map,
            timeout_ms=rules.timeout_ms,
            settings=rules.settings,
        )
        self._writer: GameWriter | None = None
        self._out = out
        self.tallies = [Tally() for _ in range(count)]

    async def play(self, stop: asyncio.Event) -> GameReport:
        """Play to the end, or until `stop` is set between two turns, and return what happened."""
        if self._out is not None:
            stem = f"game-{self._index + 1:04d}-{self._game_id[:8]}"
            self._writer = GameWriter(self._out, stem, self._object)
        try:
            return await self._play(stop)
        except BaseException:
            if self._writer is not None:
                self._writer.abort()
            raise

    async def _play(self, stop: asyncio.Event) -> GameReport:
        state = self._state
        await self._notify("start", Turn(self._object, state, self._seats))
        over = aborted = False
        while not over:
            begun = time.monotonic()
            turn = Turn(self._object, state, self._seats)
            recorded = turn.recorded()
            if self._writer is not None:
                self._writer.turn(recorded)
            self._on_turn(self._index, recorded)
            if stop.is_set():
                aborted = True
                break
            if self._rules.max_turns and state.turn >= self._rules.max_turns:
                break
            # The engine notices the end only after asking for moves once more, so the last
            # survivor gets a request alone on the board whose answer changes nothing.
            over = state.game_over()
            moves = await self._ask(turn)
            if not over:
                state.advance(moves, self._map_seed)
            if self._rules.pace_ms:
                await asyncio.sleep(begun + self._rules.pace_ms / 1000 - time.monotonic())
        end = Turn(self._object, state, self._seats, turn=state.turn + 1)
        await self._notify("end", end)
        return self._report(aborted=aborted)

    async def _notify(self, what: str, turn: Turn) -> None:
        await asyncio.gather(
            *(
                self._client.notify(self._players[p], what, turn.request(seat))
                for seat, p in enumerate(self._order)
                if self._players[p].is_http
            )
        )

    async def _ask(self, turn: Turn) -> list[int]:
        living = self._state.living()
        remote = [s for s in living if self._minds[s] is None]
        local = [s for s in living if self._minds[s] is not None]
        answers = await asyncio.gather(
            *(self._client.ask_move(self._players[self._order[s]], turn.request(s)) for s in remote)
        )
        # Built-in players think only after all servers have answered: side by side they would
        # take processor time from servers on this machine and so falsify their latencies.
        answers += await asyncio.gather(*(self._ask_mind(s) for s in local))
        for seat, answer in zip(remote + local, answers, strict=True):
            self._take(seat, answer)
        return list(self._last)

    async def _ask_mind(self, seat: int) -> Answer:
        mind = self._minds[seat]
        assert mind is not None
        loop = asyncio.get_running_loop()
        move, seconds = await loop.run_in_executor(
            self._workers, think, mind, self._state.copy(), seat
        )
        return Answer(Kind.OK, move, latency_ms=seconds * 1000)

    def _take(self, seat: int, answer: Answer) -> None:
        legal = self._state.legal_mask(seat)
        illegal = answer.move is not None and legal != 0 and not legal >> answer.move & 1
        player = self._order[seat]
        self.tallies[player].count_answer(answer, illegal_move=illegal)
        if answer.move is not None:
            self._last[seat] = answer.move
        self._moves[player].append(self._last[seat])
        self._seats[seat].latency = str(int(answer.latency_ms))
        self._seats[seat].shout = answer.shout

    def _outcomes(self) -> list[Outcome]:
        snakes = self._state.snakes()
        living = self._state.living()
        if len(snakes) == 1:
            return [Outcome.FINISHED]
        if len(living) > 1:
            return [Outcome.LOSS if s.eliminated_cause else Outcome.DRAW for s in snakes]
        if living:
            return [Outcome.WIN if seat in living else Outcome.LOSS for seat in range(len(snakes))]
        last = max(s.eliminated_on_turn for s in snakes)
        return [Outcome.DRAW if s.eliminated_on_turn == last else Outcome.LOSS for s in snakes]

    def _report(self, *, aborted: bool) -> GameReport:
        state, outcomes = self._state, self._outcomes()
        snakes = state.snakes()
        winner = next(
            (seat for seat, o in enumerate(outcomes) if o in (Outcome.WIN, Outcome.FINISHED)), None
        )
        if not aborted:
            for seat, outcome in enumerate(outcomes):
                self.tallies[self._order[seat]].count_game(
                    outcome,
                    cause=snakes[seat].eliminated_cause,
                    turns=state.turn,
                    length=len(snakes[seat].body),
                )
        file = None
        if self._writer is not None:
            won = self._seats[winner] if winner is not None else Seat("", "")
            file = (
                self._writer.abort()
                if aborted
                else self._writer.finish(won.id, won.name, is_draw=winner is None)
            )
            self._writer = None
        by_player = {self._order[seat]: outcome.value for seat, outcome in enumerate(outcomes)}
        return GameReport(
            index=self._index,
            game_id=self._game_id,
            turns=state.turn,
            winner="" if winner is None else self._seats[winner].name,
            outcomes={} if aborted else {p.name: by_player[i] for i, p in enumerate(self._players)},
            seats=[seat.name for seat in self._seats],
            moves=self._moves,
            aborted=aborted,
            file=file.name if file is not None else "",
        )
