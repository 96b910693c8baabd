"""The server as a process: ports, signals, readiness, draining, the end."""

import asyncio
import contextlib
import ctypes
import gc
import logging
import os
import resource
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import cast

from aiohttp import web

from snakekit.runtime.backends import BackendError
from snakekit.runtime.config import ServerConfig
from snakekit.runtime.engine import Engine
from snakekit.runtime.gate import GatedRunner, Gatekeeper
from snakekit.runtime.metrics import Metrics
from snakekit.runtime.private import create_private_app, reload_model
from snakekit.runtime.recording.recorder import Recorder
from snakekit.runtime.server import Observer, create_app, prefix
from snakekit.runtime.watch.live import Watch

log = logging.getLogger("snakekit.server")

SHUTDOWN_S = 2.0
"""Longest time for what runs at the end, besides the longest search."""
QUIET_S = 1.5
"""A drained server ends when no move has come for so long."""
OPEN_FIRST_S = 0.5
LAG_PERIOD_S = 0.5
SPARE_FILES = 64
ACCEPTED = 64
"""Connections accepted in one round of the loop."""
BACKLOG = 2048
"""Connections that the system keeps; what overflows comes again only after a second."""


def make_keeper(config: ServerConfig, metrics: Metrics) -> Gatekeeper:
    """Return what bounds the connections of the game's port."""
    return Gatekeeper(
        metrics,
        path=prefix(config),
        read_timeout_s=config.read_timeout_s,
        keepalive_s=config.keepalive_s,
        connections=min(config.connections_limit, max(16, _open_files() - SPARE_FILES)),
    )


def make_runner(
    engine: Engine, keeper: Gatekeeper, observers: Sequence[Observer] = ()
) -> GatedRunner:
    """Return the runner of the game's port, as it is also used in tests."""
    return GatedRunner(
        create_app(engine, observers),
        keeper,
        access_log=None,
        shutdown_timeout=SHUTDOWN_S + engine.config.budget_ms / 1000,
        handler_cancellation=True,
        keepalive_timeout=engine.config.keepalive_s,
        lingering_time=min(engine.config.read_timeout_s, 10.0),
    )


def _open_files() -> int:
    """Allow as many open files as the system permits and return how many that is."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return wanted if soft == resource.RLIM_INFINITY else soft


async def serve(config: ServerConfig) -> None:
    """Serve until SIGINT or SIGTERM; a second one ends at once. SIGHUP reloads the model.

    Raises:
        BackendError: an address, the model or the backend cannot be had.
        RecorderError: nothing can be recorded, though it was asked for.
    """
    engine = Engine(config)
    observers: list[Observer] = []
    signals = _Signals(engine)
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
        keeper = make_keeper(config, engine.metrics)
        host, port = await stack.enter_async_context(
            _site(make_runner(engine, keeper, observers), "port", config.host, config.port)
        )
        measured = "off"
        if config.metrics:
            app = create_private_app(engine, watch)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_S)
            address = await stack.enter_async_context(
                _site(runner, "metrics_port", config.metrics_host, config.metrics_port)
            )
            measured = f"http://{_shown(*address)}/metrics"
        for work in (_watch_loop(engine), keeper.sweep()):
            stack.push_async_callback(_cancel, asyncio.create_task(work))
        print(
            f"snakekit listens on http://{_shown(host, port)} mode={config.mode} "
            f"model={_model_name(config)} backend={config.backend} metrics={measured}",
            flush=True,
        )
        stopping = asyncio.create_task(signals.stop.wait())
        stack.push_async_callback(_cancel, stopping)
        await asyncio.wait((opening, stopping), return_when=asyncio.FIRST_COMPLETED)
        if opening.done():
            log.info("ready", extra={"facts": opening.result()})
            await stopping
        log.info("stopping")
        await _drain(engine, signals)


class _Signals:
    """What the process has been told by signals."""

    def __init__(self, engine: Engine) -> None:
        self.stop = asyncio.Event()
        self.at_once = asyncio.Event()
        self._engine = engine
        self._reload: asyncio.Task[None] | None = None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._end)
        loop.add_signal_handler(signal.SIGHUP, self._hang_up)

    def _end(self) -> None:
        if self.stop.is_set():
            self.at_once.set()
        self.stop.set()

    def _hang_up(self) -> None:
        if self._reload is None or self._reload.done():
            self._reload = asyncio.create_task(self._reload_model())

    async def _reload_model(self) -> None:
        # What went wrong is in the log.
        with contextlib.suppress(BackendError):
            await reload_model(self._engine)


async def _drain(engine: Engine, signals: _Signals) -> None:
    """Take no new games and play the running ones on, for a while."""
    engine.refuse_new_games()
    end = time.perf_counter() + engine.config.drain_s
    while (now := time.perf_counter()) < end and engine.playing(now, QUIET_S):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(signals.at_once.wait(), min(0.1, end - now))
            return


async def _open(engine: Engine) -> dict[str, str | int | float]:
    """Open the engine and return what the log says about it."""
    started = time.perf_counter()
    await engine.open()
    seconds = round(time.perf_counter() - started, 3)
    # What lives now lives to the end: the collector need not look at it during moves.
    gc.collect()
    gc.freeze()
    return {"seconds": seconds, **engine.described()}


async def _watch_loop(engine: Engine) -> None:
    """Measure how late the loop wakes up, and tidy up when nobody plays."""
    tidied_at = 0.0
    while True:
        before = time.perf_counter()
        await asyncio.sleep(LAG_PERIOD_S)
        now = time.perf_counter()
        engine.metrics.loop_lag_seconds.observe(max(0.0, now - before - LAG_PERIOD_S))
        engine.games.expire(now)
        if tidied_at < engine.moved_at < now - QUIET_S:
            tidied_at = now
            _tidy()


def _tidy() -> None:
    """Give memory back to the system; takes some ten milliseconds."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


@contextlib.asynccontextmanager
async def _site(
    runner: web.AppRunner, name: str, host: str, port: int
) -> AsyncIterator[tuple[str, int]]:
    """Serve and give host and port as bound.

    Raises:
        BackendError: the address cannot be had.
    """
    await runner.setup()
    server: asyncio.Server | None = None
    try:
        try:
            server = await asyncio.get_running_loop().create_server(
                cast("Callable[[], asyncio.Protocol]", runner.server), host, port, backlog=ACCEPTED
            )
            for listening in server.sockets:
                with socket.fromfd(listening.fileno(), listening.family, listening.type) as again:
                    again.listen(BACKLOG)
        except (OSError, UnicodeError) as error:
            number: int | None = getattr(error, "errno", None)
            reason = os.strerror(number) if number and number > 0 else "no such address"
            raise BackendError(
                f"{name}: cannot listen on {host}:{port} ({reason}); expected a free port and an "
                "address of this machine"
            ) from None
        bound = server.sockets[0].getsockname()
        yield bound[0], bound[1]
    finally:
        if server is not None:
            server.close()
        await runner.cleanup()


async def _cancel(task: "asyncio.Task[object]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _model_name(config: ServerConfig) -> str:
    if config.mode == "search" or config.backend == "random":
        return "none"
    return config.model or "standard"


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
