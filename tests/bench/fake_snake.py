"""A Battlesnake server on 127.0.0.1 that answers whatever a test wants."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from snakekit.bench.engine_client import EngineClient
from snakekit.bench.match import GameReport, GameRules
from snakekit.bench.players import parse_players
from snakekit.bench.series import Series, SeriesResult, Silent, check_players
from snakekit.core import Settings

Reply = web.Response | float | str | dict[str, Any]


class FakeSnake:
    """Records every request. `moves` is asked for each /move reply.

    A dict is the JSON answer, a str the raw body, a float sleeps that many seconds first.
    """

    def __init__(self) -> None:
        self.index: Any = {"apiversion": "1", "color": "#123456", "head": "evil", "tail": "bolt"}
        self.index_status = 200
        self.moves: Callable[[dict[str, Any]], Reply] = lambda request: {"move": safe_word(request)}
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self.headers: list[str] = []
        app = web.Application()
        app.router.add_get("/", self._index)
        app.router.add_post("/{what}", self._post)
        self._server = TestServer(app, host="127.0.0.1")
        self.url = ""

    async def start(self) -> None:
        await self._server.start_server()
        self.url = str(self._server.make_url("")).rstrip("/")

    async def close(self) -> None:
        await self._server.close()

    def requests(self, what: str) -> list[dict[str, Any]]:
        return [request for name, request in self.seen if name == what]

    async def _index(self, request: web.Request) -> web.Response:
        return web.Response(
            text=json.dumps(self.index), status=self.index_status, content_type="application/json"
        )

    async def _post(self, request: web.Request) -> web.Response:
        what = request.match_info["what"]
        self.headers.append(request.headers["Content-Type"])
        self.seen.append((what, await request.json()))
        if what != "move":
            # Nobody reads these answers, so they may be anything.
            return web.Response(status=500)
        reply = self.moves(self.seen[-1][1])
        if isinstance(reply, float):
            await asyncio.sleep(reply)
            reply = {"move": "up"}
        if isinstance(reply, web.Response):
            return reply
        text = reply if isinstance(reply, str) else json.dumps(reply)
        return web.Response(text=text, content_type="application/json")


def safe_word(request: dict[str, Any]) -> str:
    """A move that stays on the board and off every body; `up` if there is none."""
    board, head = request["board"], request["you"]["head"]
    taken = {(p["x"], p["y"]) for s in board["snakes"] for p in s["body"]}
    for word, (dx, dy) in {"up": (0, 1), "right": (1, 0), "down": (0, -1), "left": (-1, 0)}.items():
        x, y = head["x"] + dx, head["y"] + dy
        if 0 <= x < board["width"] and 0 <= y < board["height"] and (x, y) not in taken:
            return word
    return "up"


def rules(**changes: Any) -> GameRules:
    values: dict[str, Any] = {
        "width": 11,
        "height": 11,
        "ruleset": "standard",
        "map": "standard",
        "settings": Settings(),
        "timeout_ms": 500,
    }
    return GameRules(**(values | changes))


class StopAt:
    """Stops the run when game `index` reaches `turn`, as Ctrl-C does."""

    series: Series

    def __init__(self, index: int, turn: int) -> None:
        self._at = (index, turn)

    def on_turn(self, index: int, request: dict[str, Any]) -> None:
        if (index, request["turn"]) == self._at:
            self.series.stop()

    def on_game(self, report: GameReport) -> None:
        pass


async def play(specs: list[str], **options: Any) -> SeriesResult:
    """Play games as the command does, without its terminal."""
    game_rules = options.pop("rules", rules())
    watcher = options.pop("watcher", Silent())
    values: dict[str, Any] = {"games": 1, "parallel": 1, "seed": 1, "out": None}
    players = parse_players(specs)
    client = EngineClient(game_rules.timeout_ms)
    try:
        await check_players(players, client)
        series = Series(players, game_rules, client=client, watcher=watcher, **(values | options))
        if isinstance(watcher, StopAt):
            watcher.series = series
        return await series.play()
    finally:
        await client.close()
