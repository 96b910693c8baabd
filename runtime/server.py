"""The game's port: routes, and every mistake answered with one sentence."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec
from aiohttp import web

from snakekit import __version__
from snakekit.runtime.api import Request, RequestError, parse
from snakekit.runtime.config import ServerConfig
from snakekit.runtime.contract import MOVE_ORDER
from snakekit.runtime.engine import Answer, Engine
from snakekit.runtime.gate import gate_of
from snakekit.runtime.metrics import ENDPOINTS
from snakekit.runtime.rate import RateLimit


class Observer(Protocol):
    """Told of every request after its answer is on its way; must not wait."""

    def moved(self, body: bytes, asked: Request, answer: Answer) -> None:
        """Take note of an answered `/move`."""

    def ended(self, body: bytes, asked: Request) -> None:
        """Take note of an `/end`."""


ENGINE: web.AppKey[Engine] = web.AppKey("engine", Engine)
OBSERVERS: web.AppKey[Sequence[Observer]] = web.AppKey("observers")
PREFIX: web.AppKey[str] = web.AppKey("prefix", str)
RATE: web.AppKey[RateLimit | None] = web.AppKey("rate")
log = logging.getLogger("snakekit.server")
move_log = logging.getLogger("snakekit.move")

ANSWERS = tuple(b'{"move":"%s"}' % word.encode() for word in MOVE_ORDER)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def create_app(engine: Engine, observers: Sequence[Observer] = ()) -> web.Application:
    """Return the Battlesnake app around an engine that the caller opens and closes."""
    app = web.Application(
        middlewares=[_guard], client_max_size=engine.config.body_limit, logger=log
    )
    app[ENGINE] = engine
    app[OBSERVERS] = observers
    app[RATE] = RateLimit(engine.config.rate_limit) if engine.config.rate_limit else None
    app[PREFIX] = secret = prefix(engine.config)
    readable = {f"{secret}/": _index, "/healthz": _healthz, "/readyz": _readyz}
    if secret:
        readable[secret] = _index
    for path, handler in readable.items():
        app.router.add_get(path, handler)
        app.router.add_route("OPTIONS", path, _options("GET, HEAD, OPTIONS"))
    for path, handler in (("/start", _start), ("/move", _move), ("/end", _end)):
        app.router.add_post(secret + path, handler)
        app.router.add_route("OPTIONS", secret + path, _options("POST, OPTIONS"))
    return app


def prefix(config: ServerConfig) -> str:
    """Return what stands before the paths of the game: nothing, or `/` and the secret."""
    return f"/{config.secret_path}" if config.secret_path else ""


def info(config: ServerConfig) -> dict[str, str]:
    """Return what `GET /` answers."""
    facts = {
        "apiversion": "1",
        "author": config.author,
        "color": config.color,
        "head": config.head,
        "tail": config.tail,
        "version": config.version or __version__,
    }
    return {key: value for key, value in facts.items() if value}


def _json(payload: object, status: int = 200) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(payload), status=status, content_type="application/json"
    )


def _options(allowed: str) -> Handler:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=204, headers={"Allow": allowed})

    return answer


async def _index(request: web.Request) -> web.Response:
    return _json(info(request.app[ENGINE].config))


async def _healthz(_: web.Request) -> web.Response:
    return _json({"status": "alive"})


async def _readyz(request: web.Request) -> web.Response:
    if request.app[ENGINE].ready:
        return _json({"status": "ready"})
    return _json({"status": "not ready"}, status=503)


async def _start(request: web.Request) -> web.Response:
    engine = request.app[ENGINE]
    asked = parse(await _body(request))
    if engine.closing:
        raise _closing()
    engine.start(asked)
    return _json({})


async def _end(request: web.Request) -> web.Response:
    engine = request.app[ENGINE]
    body = await _body(request)
    asked = parse(body)
    engine.end(asked)
    for observer in request.app[OBSERVERS]:
        asyncio.get_running_loop().call_soon(observer.ended, body, asked)
    return _json({})


async def _move(request: web.Request) -> web.Response:
    gate = gate_of(request)
    arrival = gate.arrival if gate is not None else None
    if arrival is None:
        arrival = time.perf_counter()
    engine = request.app[ENGINE]
    body = await _body(request)
    asked = parse(body)
    if engine.closing and engine.is_new(asked):
        raise _closing()
    if gate is not None:
        await gate.turn(asked.timeout_ms)
    answer = await engine.move(asked, arrival)
    for observer in request.app[OBSERVERS]:
        # In the loop's next round: the answer goes out first, and an error cannot touch it.
        asyncio.get_running_loop().call_soon(observer.moved, body, asked, answer)
    if move_log.isEnabledFor(logging.DEBUG):
        _log_move(asked, answer)
    response = web.Response(body=ANSWERS[answer.move], content_type="application/json")
    if engine.closing:
        # The next move of this game can go to another instance.
        response.force_close()
    return response


def _closing() -> RequestError:
    return RequestError(503, "closing", "server: is stopping, expected new games elsewhere")


def _log_move(asked: Request, answer: Answer) -> None:
    facts: dict[str, str | int | float] = {
        "game": asked.game.id,
        "you": asked.you.id,
        "turn": asked.turn,
        "move": MOVE_ORDER[answer.move],
        "reason": str(answer.reason),
        "ms": round(answer.seconds * 1000, 2),
    }
    evaluation = answer.choice.evaluation
    if evaluation is not None and evaluation.stage is not None:
        stage = evaluation.stage
        facts |= {
            "stage": stage.name,
            "plies": stage.plies,
            "leaves": stage.leaves,
            "gap": round(stage.gap, 4),
            "oracle_rounds": stage.rounds,
            "oracle_added": stage.added,
            "solve_ms": round(stage.seconds * 1000, 2),
        }
    move_log.debug("move", extra={"facts": facts})


async def _body(request: web.Request) -> bytes:
    """Read the body.

    Raises:
        RequestError: 408 if it does not arrive, 413 if it is too large.
    """
    config = request.app[ENGINE].config
    limit, longest = config.body_limit, config.read_timeout_s
    if request.content_length is not None and request.content_length > limit:
        raise _too_large(limit)
    try:
        if request.content.is_eof():
            return await request.read()
        async with asyncio.timeout(longest):
            return await _slow_body(request)
    except web.HTTPRequestEntityTooLarge:
        raise _too_large(limit) from None
    except TimeoutError:
        text = f"body: incomplete, expected all of it within {longest:g} s"
        raise RequestError(408, "timeout", text) from None
    except web.HTTPException:
        raise
    except Exception as error:
        # aiohttp wraps what a broken transfer or compression coding raises in many types.
        if isinstance(error, ConnectionError):
            raise
        text = f"body: cannot be read ({type(error).__name__}), expected a complete JSON object"
        raise RequestError(400, "http", text) from None


async def _slow_body(request: web.Request) -> bytes:
    gate = gate_of(request)
    if gate is None:
        return await request.read()
    gate.waits_for_body()
    body = await request.read()
    gate.running()
    return body


def _too_large(limit: int) -> RequestError:
    return RequestError(413, "too_large", f"body: too large, expected at most {limit} bytes")


@web.middleware
async def _guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Time every request and turn mistakes into one sentence."""
    started = time.perf_counter()
    gate = gate_of(request)
    if gate is not None:
        gate.running()
    metrics = request.app[ENGINE].metrics
    try:
        _check_rate(request)
        return await handler(request)
    except RequestError as error:
        metrics.rejected[error.cause].inc()
        response = _json({"error": str(error)}, status=error.status)
        if error.status in (429, 503):
            response.headers["Retry-After"] = "1"
        if error.cause in ("http", "timeout", "too_large", "rate"):
            # The rest of the body may still come, so the connection cannot be used again.
            response.force_close()
        return response
    except web.HTTPException as error:
        metrics.rejected["http"].inc()
        response = _json({"error": _http_sentence(request, error.status)}, status=error.status)
        if "Allow" in error.headers:
            response.headers["Allow"] = error.headers["Allow"]
        return response
    except Exception as error:
        if isinstance(error, ConnectionError):
            raise
        log.exception("request failed")
        metrics.fallback("server", "error")
        if _endpoint(request) == "move":
            return web.Response(body=ANSWERS[0], content_type="application/json")
        return _json({})
    finally:
        if gate is not None:
            gate.answered()
        metrics.request_seconds[_endpoint(request)].observe(time.perf_counter() - started)


def _endpoint(request: web.Request) -> str:
    """Return the metric's label for a path, which holds nothing of what the client wrote."""
    path, secret = request.path, request.app[PREFIX]
    if secret and path.startswith(secret):
        path = path.removeprefix(secret)
    elif secret and path not in ("/healthz", "/readyz"):
        return "other"
    name = path.strip("/") or "index"
    return name if name in ENDPOINTS else "other"


def _check_rate(request: web.Request) -> None:
    """Count the request for its address.

    Raises:
        RequestError: 429, there were too many.
    """
    rate = request.app[RATE]
    if rate is None or request.path in ("/healthz", "/readyz"):
        return
    config = request.app[ENGINE].config
    address = request.remote or ""
    if config.behind_proxy:
        # Only the last entry is the proxy's own word, those before it are the client's.
        address = request.headers.get("X-Forwarded-For", address).rsplit(",", 1)[-1].strip()
    if not rate.allows(address):
        text = f"server: too many requests, expected at most {config.rate_limit:g} a second"
        raise RequestError(429, "rate", text)


def _http_sentence(request: web.Request, status: int) -> str:
    if status == 404 and request.app[PREFIX]:
        return "path: unknown"
    if status == 404:
        return "path: expected one of /, /start, /move, /end, /healthz, /readyz"
    if status == 405:
        return f"method: {request.method} is not for this path"
    return f"request: refused with status {status}"
