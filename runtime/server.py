"""The HTTP server: routes, errors in one sentence, metrics on their own port, shutdown."""

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from importlib import metadata
from typing import Protocol

import msgspec
from aiohttp import web

from snakekit import __version__
from snakekit.runtime import metrics as metric_names
from snakekit.runtime.api import Request, RequestError, parse
from snakekit.runtime.backends import BackendError
from snakekit.runtime.config import ServerConfig
from snakekit.runtime.contract import MOVE_ORDER
from snakekit.runtime.engine import Answer, Engine
from snakekit.runtime.metrics import Metrics
from snakekit.runtime.recording import Recorder
from snakekit.runtime.watch import Watch


class Observer(Protocol):
    """Told of every request after its answer is on its way; must not wait."""

    def moved(self, body: bytes, asked: Request, answer: Answer) -> None:
        """Take note of an answered `/move`."""

    def ended(self, body: bytes, asked: Request) -> None:
        """Take note of an `/end`."""


ENGINE: web.AppKey[Engine] = web.AppKey("engine", Engine)
OBSERVERS: web.AppKey[Sequence[Observer]] = web.AppKey("observers")
log = logging.getLogger("snakekit.server")
move_log = logging.getLogger("snakekit.move")

BODY_TIMEOUT_S = 10.0
SHUTDOWN_S = 2.0
OPEN_FIRST_S = 0.5
LAG_PERIOD_S = 0.5
ANSWERS = tuple(b'{"move":"%s"}' % word.encode() for word in MOVE_ORDER)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def create_app(engine: Engine, observers: Sequence[Observer] = ()) -> web.Application:
    """Return the Battlesnake app around an engine that the caller opens and closes."""
    app = web.Application(
        middlewares=[_guard], client_max_size=engine.config.body_limit, logger=log
    )
    app[ENGINE] = engine
    app[OBSERVERS] = observers
    app.router.add_get("/", _index)
    app.router.add_get("/healthz", _healthz)
    app.router.add_get("/readyz", _readyz)
    app.router.add_post("/start", _start)
    app.router.add_post("/move", _move)
    app.router.add_post("/end", _end)
    for path, allowed in (
        *((p, "GET, HEAD, OPTIONS") for p in ("/", "/healthz", "/readyz")),
        *((p, "POST, OPTIONS") for p in ("/start", "/move", "/end")),
    ):
        app.router.add_route("OPTIONS", path, _options(allowed))
    return app


def create_metrics_app(metrics: Metrics, watch: Watch | None = None) -> web.Application:
    """Return the app of the private port: `GET /metrics` and, if given, the watch page."""

    async def show(_: web.Request) -> web.Response:
        text = await asyncio.to_thread(metrics.render)
        return web.Response(body=text, headers={"Content-Type": metric_names.CONTENT_TYPE})

    app = web.Application(logger=log)
    app.router.add_get("/metrics", show)
    if watch is not None:
        app.router.add_routes(watch.routes())
        app.on_shutdown.append(watch.close)
    return app


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
    engine.start(parse(await _body(request)))
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
    arrival = time.perf_counter()
    engine = request.app[ENGINE]
    body = await _body(request)
    asked = parse(body)
    answer = await engine.move(asked, arrival)
    for observer in request.app[OBSERVERS]:
        # In the loop's next round: the answer goes out first, and an error cannot touch it.
        asyncio.get_running_loop().call_soon(observer.moved, body, asked, answer)
    if move_log.isEnabledFor(logging.DEBUG):
        _log_move(asked, MOVE_ORDER[answer.move], answer.reason, answer.seconds)
    return web.Response(body=ANSWERS[answer.move], content_type="application/json")


def _log_move(asked: Request, move: str, reason: str, seconds: float) -> None:
    facts = {
        "game": asked.game.id,
        "you": asked.you.id,
        "turn": asked.turn,
        "move": move,
        "reason": str(reason),
        "ms": round(seconds * 1000, 2),
    }
    move_log.debug("move", extra={"facts": facts})


async def _body(request: web.Request) -> bytes:
    """Read the body.

    Raises:
        RequestError: 408 if it does not arrive, 413 if it is too large.
    """
    limit = request.app[ENGINE].config.body_limit
    if request.content_length is not None and request.content_length > limit:
        raise _too_large(limit)
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise _too_large(limit) from None
    except TimeoutError:
        text = f"body: incomplete, expected all of it within {BODY_TIMEOUT_S:g} s"
        raise RequestError(408, "timeout", text) from None
    except web.HTTPException:
        raise
    except Exception as error:
        # aiohttp wraps what a broken transfer or compression coding raises in many types.
        if isinstance(error, ConnectionError):
            raise
        text = f"body: cannot be read ({type(error).__name__}), expected a complete JSON object"
        raise RequestError(400, "http", text) from None


def _too_large(limit: int) -> RequestError:
    return RequestError(413, "too_large", f"body: too large, expected at most {limit} bytes")


@web.middleware
async def _guard(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Time every request and turn mistakes into one sentence."""
    started = time.perf_counter()
    metrics = request.app[ENGINE].metrics
    try:
        return await handler(request)
    except RequestError as error:
        metrics.rejected[error.cause].inc()
        response = _json({"error": str(error)}, status=error.status)
        if error.cause in ("http", "timeout", "too_large"):
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
        if request.path == "/move":
            return web.Response(body=ANSWERS[0], content_type="application/json")
        return _json({})
    finally:
        name = request.path.strip("/") or "index"
        timer = metrics.request_seconds.get(name, metrics.request_seconds["other"])
        timer.observe(time.perf_counter() - started)


def _http_sentence(request: web.Request, status: int) -> str:
    if status == 404:
        return "path: expected one of /, /start, /move, /end, /healthz, /readyz"
    if status == 405:
        return f"method: {request.method} is not for this path"
    return f"request: refused with status {status}"


async def _watch_loop(metrics: Metrics) -> None:
    while True:
        before = time.perf_counter()
        await asyncio.sleep(LAG_PERIOD_S)
        metrics.loop_lag_seconds.observe(max(0.0, time.perf_counter() - before - LAG_PERIOD_S))


@contextlib.asynccontextmanager
async def _site(
    app: web.Application, name: str, host: str, port: int
) -> AsyncIterator[tuple[str, int]]:
    """Serve `app` and give host and port as bound.

    Raises:
        BackendError: the address cannot be had.
    """
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_S)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except (OSError, UnicodeError) as error:
            number: int | None = getattr(error, "errno", None)
            reason = os.strerror(number) if number and number > 0 else "no such address"
            raise BackendError(
                f"{name}: cannot listen on {host}:{port} ({reason}); expected a free port and an "
                "address of this machine"
            ) from None
        bound = runner.addresses[0]
        yield bound[0], bound[1]
    finally:
        await runner.cleanup()


async def serve(config: ServerConfig) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises:
        BackendError: an address, the model or the backend cannot be had.
        RecorderError: nothing can be recorded, though it was asked for.
    """
    engine = Engine(config)
    observers: list[Observer] = []
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(engine.close)
        opening = asyncio.create_task(_open(engine))
        stack.push_async_callback(_cancel, opening)
        if config.record:
            recorder = Recorder(config, engine)
            stack.push_async_callback(recorder.close)
            await recorder.open()
            observers.append(recorder)
        watch = Watch(engine) if config.metrics and config.watch else None
        if watch is not None:
            observers.append(watch)
        # A model that cannot be used is mostly known before a port opens, a slow one is not
        # waited for.
        await asyncio.wait((opening,), timeout=OPEN_FIRST_S)
        if opening.done():
            opening.result()
        host, port = await stack.enter_async_context(
            _site(create_app(engine, observers), "port", config.host, config.port)
        )
        measured = "off"
        if config.metrics:
            app = create_metrics_app(engine.metrics, watch)
            address = await stack.enter_async_context(
                _site(app, "metrics_port", config.metrics_host, config.metrics_port)
            )
            measured = f"http://{_shown(*address)}/metrics"
        lag = asyncio.create_task(_watch_loop(engine.metrics))
        stack.push_async_callback(_cancel, lag)
        print(
            f"snakekit listens on http://{_shown(host, port)} mode={config.mode} "
            f"model={_model_name(config)} backend={config.backend} metrics={measured}",
            flush=True,
        )
        stopping = asyncio.create_task(stop.wait())
        stack.push_async_callback(_cancel, stopping)
        await asyncio.wait((opening, stopping), return_when=asyncio.FIRST_COMPLETED)
        if opening.done():
            log.info("ready", extra={"facts": opening.result()})
            await stopping
        log.info("stopping")
        engine.ready = False


async def _open(engine: Engine) -> dict[str, str | int | float]:
    """Open the engine and return what the log says about it."""
    started = time.perf_counter()
    await engine.open()
    seconds = round(time.perf_counter() - started, 3)
    # What lives now lives to the end: the collector need not look at it during moves.
    gc.collect()
    gc.freeze()
    return {"seconds": seconds, **_described(engine)}


async def _cancel(task: "asyncio.Task[object]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _model_name(config: ServerConfig) -> str:
    if config.mode == "search" or config.backend == "random":
        return "none"
    return config.model or "standard"


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _described(engine: Engine) -> dict[str, str | int]:
    """Return facts about the model and backend for the log."""
    if engine.card is None or engine.backend_info is None:
        return {"model": "none", "mode": engine.config.mode}
    runtime = {}
    if "onnxruntime" in sys.modules:
        with contextlib.suppress(metadata.PackageNotFoundError):
            runtime = {"onnxruntime": metadata.version("onnxruntime")}
    return {
        "mode": engine.config.mode,
        "model": engine.card.name,
        "step": engine.card.step,
        "encoder": engine.card.encoder,
        "backend": engine.backend_info.actual,
        "precision": engine.backend_info.precision,
        **runtime,
    }
