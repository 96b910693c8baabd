"""Threads that play games: lanes for local players, and one event loop for those over HTTP."""

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from snakekit.bench.arena.bout import Bout, BoutRecord
from snakekit.bench.arena.entrants import Entrant
from snakekit.bench.arena.minds import Minds
from snakekit.bench.arena.models import ModelSource
from snakekit.bench.arena.schedule import Job
from snakekit.bench.engine_client import EngineClient
from snakekit.bench.match import GameRules
from snakekit.bench.players import Player
from snakekit.bench.protocol import Customization, Kind, Turn

Result = BoutRecord | BaseException
"""What a lane reports: a finished game, or what broke the lane."""

_UNREAD = 32


@dataclass(frozen=True)
class Hall:
    """What all lanes share and only read."""

    entrants: Mapping[str, Entrant]
    sources: Mapping[str, ModelSource]
    rules: GameRules
    seed: int
    temperature: float = 0.0
    out: Path | None = None
    looks: Mapping[str, Customization] = field(default_factory=dict)

    def bout(self, job: Job) -> Bout:
        """Set up one game."""
        return Bout(job, self.entrants, self.rules, self.seed, out=self.out, looks=self.looks)

    def minds(self) -> Minds:
        """Return the local players for the calling thread."""
        return Minds(self.sources, self.temperature)


class Crew:
    """Starts the lanes, hands out jobs in order and collects finished games."""

    def __init__(
        self, hall: Hall, jobs: Sequence[Job], *, threads: int, parallel: int, remote: int
    ) -> None:
        """Prepare to play `jobs`.

        Args:
            hall: what the lanes share.
            jobs: games in the order of playing.
            threads: lanes for local games, and thinkers beside HTTP games.
            parallel: local games side by side in a lane.
            remote: games over HTTP at once.
        """
        self._hall, self._threads, self._remote = hall, threads, remote
        # Without a network nothing is gained by games side by side, which would share a lane.
        batched = any(e.has_model for e in hall.entrants.values())
        self._parallel = parallel if batched else 1
        self._local: deque[Job] = deque()
        self._over_http: deque[Job] = deque()
        for job in jobs:
            http = any(hall.entrants[name].kind == "http" for name in job.seats)
            (self._over_http if http else self._local).append(job)
        self._stop = threading.Event()
        self._lanes: list[threading.Thread] = []
        # Bounded, since lanes with quick players would otherwise run far past the game at which
        # whoever reads the results says stop.
        self.results: queue.Queue[Result] = queue.Queue(_UNREAD)

    def start(self) -> None:
        """Start playing."""
        works: list[Callable[[], None]] = []
        if self._local:
            works += [self._play_local] * min(self._threads, len(self._local))
        if self._over_http:
            works.append(lambda: asyncio.run(self._play_http()))
        for number, work in enumerate(works):
            lane = threading.Thread(
                target=self._guard, args=(work,), name=f"arena-{number}", daemon=True
            )
            self._lanes.append(lane)
            lane.start()

    def stop(self) -> None:
        """Give up running games at their next turn, and start no more."""
        self._stop.set()

    def join(self) -> None:
        """Wait until all lanes have ended."""
        for lane in self._lanes:
            lane.join()

    @property
    def alive(self) -> bool:
        """Whether any lane still plays."""
        return any(lane.is_alive() for lane in self._lanes)

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._stop.set()
            self.results.put(error)

    def _take(self, jobs: deque[Job]) -> Bout | None:
        if self._stop.is_set():
            return None
        try:
            job = jobs.popleft()
        except IndexError:
            return None
        return self._hall.bout(job)

    def _play_local(self) -> None:
        minds = self._hall.minds()
        running: list[Bout] = []
        try:
            while not self._stop.is_set():
                while len(running) < self._parallel and (bout := self._take(self._local)):
                    running.append(bout)
                if not running:
                    return
                _play_turn(minds, running)
                for bout in [bout for bout in running if bout.over]:
                    running.remove(bout)
                    self.results.put(bout.finish())
        finally:
            for bout in running:
                bout.abort()

    async def _play_http(self) -> None:
        client = EngineClient(self._hall.rules.timeout_ms)
        own = threading.local()

        def prepare() -> None:
            own.minds = self._hall.minds()

        with ThreadPoolExecutor(self._threads, "thinker", prepare) as workers:

            def think(bout: Bout) -> dict[int, int]:
                asks = bout.asks()
                return dict(zip((a.seat for a in asks), own.minds.moves(asks), strict=True))

            async def lane() -> None:
                while bout := self._take(self._over_http):
                    await self._play_bout(bout, client, workers, think)

            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(self._remote, len(self._over_http))):
                        group.create_task(lane())
            except ExceptionGroup as group:
                raise group.exceptions[0] from None
            finally:
                await client.close()

    async def _play_bout(
        self,
        bout: Bout,
        client: EngineClient,
        workers: ThreadPoolExecutor,
        think: Callable[[Bout], dict[int, int]],
    ) -> None:
        servers = {
            seat: Player(e.name, e.spec, url=e.url)
            for seat, e in enumerate(bout.entrants)
            if e.kind == "http"
        }

        async def tell(what: str, turn: Turn) -> None:
            await asyncio.gather(
                *(client.notify(p, what, turn.request(seat)) for seat, p in servers.items())
            )

        try:
            await tell("start", Turn(bout.object, bout.state, bout.seats))
            while not bout.over and not self._stop.is_set():
                moves = await _ask_servers(bout, client, servers)
                # Local players think after the servers, whose latencies they would falsify.
                moves |= await asyncio.get_running_loop().run_in_executor(workers, think, bout)
                bout.play(moves)
            await tell("end", Turn(bout.object, bout.state, bout.seats, turn=bout.state.turn + 1))
        except BaseException:
            bout.abort()
            raise
        if bout.over:
            self.results.put(bout.finish())
        else:
            bout.abort()


def _play_turn(minds: Minds, running: Sequence[Bout]) -> None:
    asked = [(bout, ask) for bout in running for ask in bout.asks()]
    moves = minds.moves([ask for _, ask in asked])
    by_bout: dict[int, dict[int, int]] = {id(bout): {} for bout in running}
    for (bout, ask), move in zip(asked, moves, strict=True):
        by_bout[id(bout)][ask.seat] = move
    for bout in running:
        bout.play(by_bout[id(bout)])


async def _ask_servers(
    bout: Bout, client: EngineClient, servers: Mapping[int, Player]
) -> dict[int, int]:
    turn = Turn(bout.object, bout.state, bout.seats)
    seats = [seat for seat in bout.state.living() if seat in servers]
    answers = await asyncio.gather(
        *(client.ask_move(servers[seat], turn.request(seat)) for seat in seats)
    )
    moves = {}
    for seat, answer in zip(seats, answers, strict=True):
        legal = bout.state.legal_mask(seat)
        bout.seats[seat].latency = str(int(answer.latency_ms))
        bout.seats[seat].shout = answer.shout
        illegal = answer.move is not None and legal != 0 and not legal >> answer.move & 1
        bout.faults[seat] += answer.kind is not Kind.OK or illegal
        if answer.move is not None:
            moves[seat] = answer.move
    return moves
