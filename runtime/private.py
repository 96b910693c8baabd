"""The private port: metrics, reloading the model, watching. Loopback unless asked otherwise."""

import asyncio
import logging

import msgspec
from aiohttp import web

from snakekit.runtime.backends import BackendError
from snakekit.runtime.engine import Engine
from snakekit.runtime.metrics import CONTENT_TYPE
from snakekit.runtime.watch.live import Watch, is_near

log = logging.getLogger("snakekit.server")


def create_private_app(engine: Engine, watch: Watch | None = None) -> web.Application:
    """Return the app of `GET /metrics`, `POST /reload` and, if given, the watch page."""

    async def metrics(_: web.Request) -> web.Response:
        text = await asyncio.to_thread(engine.metrics.render)
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE})

    async def reload(request: web.Request) -> web.Response:
        # Who may read metrics from afar may still not make the server work.
        if not is_near(request.remote):
            return _json({"error": "reload: expected a request from this machine"}, 403)
        # A page in the owner's browser can send requests to the loopback address as well.
        if "Origin" in request.headers or "Sec-Fetch-Site" in request.headers:
            return _json({"error": "reload: expected a request that no web page has sent"}, 403)
        if engine.reloading:
            return _json({"error": "reload: one is running already"}, 409)
        try:
            return _json(await reload_model(engine))
        except BackendError as error:
            return _json({"error": str(error)}, 422)

    app = web.Application(logger=log)
    app.router.add_get("/metrics", metrics)
    app.router.add_post("/reload", reload)
    if watch is not None:
        app.router.add_routes(watch.routes())
        app.on_shutdown.append(watch.close)
    return app


async def reload_model(engine: Engine) -> dict[str, str | int | float]:
    """Reload, log how it went, and return what runs now.

    Raises:
        BackendError: the model was refused; the old one goes on.
    """
    try:
        seconds = await engine.reload()
    except BackendError as error:
        log.error("reload refused", extra={"facts": {"error": str(error)}})
        raise
    facts = {"seconds": round(seconds, 3), **engine.described()}
    log.info("reloaded", extra={"facts": facts})
    return facts


def _json(payload: object, status: int = 200) -> web.Response:
    return web.Response(
        body=msgspec.json.encode(payload), status=status, content_type="application/json"
    )
