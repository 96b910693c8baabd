"""HTTP towards Battlesnake servers, with the time-outs of the official engine."""

import asyncio
import time

import aiohttp
import msgspec

from snakekit.bench.players import Player, PlayerError
from snakekit.bench.protocol import Answer, Customization, Json, Kind, read_answer

INDEX_TIMEOUT_S = 5.0
_HEADERS = {"Content-Type": "application/json"}


class EngineClient:
    """Sends the four kinds of request; one for all games of a run, on one event loop."""

    def __init__(self, timeout_ms: int) -> None:
        """Keep `timeout_ms`, the longest one request may take, in milliseconds."""
        self._timeout_s = timeout_ms / 1000
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            headers=_HEADERS,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def check_index(self, player: Player) -> None:
        """Ask `GET /` and take over the player's looks and versions.

        Raises:
            PlayerError: no answer within `INDEX_TIMEOUT_S` seconds, or not a Battlesnake's.
        """
        where = f"player {player.name} ({player.url})"
        try:
            async with asyncio.timeout(INDEX_TIMEOUT_S):
                async with self._session.get(f"{player.url}/") as response:
                    body = await response.read()
        except TimeoutError:
            raise PlayerError(f"{where}: no answer to GET / in {INDEX_TIMEOUT_S:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            reason = str(error) or type(error).__name__
            raise PlayerError(f"{where}: cannot be reached: {reason}") from None
        if response.status != 200:
            raise PlayerError(f"{where}: GET / answers with status {response.status}, not 200")
        try:
            index = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise PlayerError(f"{where}: GET / does not answer with JSON") from None
        version = index.get("apiversion") if isinstance(index, dict) else None
        if version != "1":
            raise PlayerError(f'{where}: GET / says apiversion {version!r}, expected "1"')
        player.apiversion, player.version = "1", _text(index, "version", "")
        player.looks = Customization(
            color=_text(index, "color", player.looks.color),
            head=_text(index, "head", "default"),
            tail=_text(index, "tail", "default"),
        )

    async def notify(self, player: Player, what: str, request: Json) -> None:
        """Send `/start` or `/end`; the answer, even a failure, is ignored as the engine does."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._post(f"{player.url}/{what}", msgspec.json.encode(request))
        except (TimeoutError, aiohttp.ClientError, OSError):
            return

    async def ask_move(self, player: Player, request: Json) -> Answer:
        """Send `/move` and judge the answer; never raises for anything a server does."""
        body = msgspec.json.encode(request)
        begun = time.perf_counter()
        try:
            async with asyncio.timeout(self._timeout_s):
                try:
                    status, answer = await self._post(f"{player.url}/move", body)
                except aiohttp.ServerDisconnectedError:
                    # The server closed an idle connection just as it was used again; the
                    # engine's HTTP client sends the request once more, too.
                    status, answer = await self._post(f"{player.url}/move", body)
        except TimeoutError:
            return Answer(Kind.TIMEOUT, latency_ms=_since(begun), detail="no answer in time")
        except (aiohttp.ClientError, OSError) as error:
            detail = str(error) or type(error).__name__
            return Answer(Kind.HTTP_ERROR, latency_ms=_since(begun), detail=detail)
        return read_answer(status, answer, _since(begun))

    async def _post(self, url: str, body: bytes) -> tuple[int, bytes]:
        async with self._session.post(url, data=body) as response:
            return response.status, await response.read()


def _since(begun: float) -> float:
    return (time.perf_counter() - begun) * 1000


def _text(index: Json, key: str, default: str) -> str:
    value = index.get(key)
    return value if isinstance(value, str) and value else default
