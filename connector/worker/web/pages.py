"""The pages of the web server."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from rowtide.connector.worker.status import Status, health
from rowtide.connector.worker.web.metrics import CONTENT_TYPE, render

StatusSource = Callable[[], Awaitable[Status]]
"""Returns the current status of the connector."""


def pages(status: StatusSource) -> list[web.RouteDef]:
    """All pages of a connector."""

    async def page_health(_request: web.Request) -> web.Response:
        now = await status()
        return web.json_response(health(now), status=200 if now.healthy else 503)

    async def page_metrics(_request: web.Request) -> web.Response:
        text = render(await status())
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE})

    return [web.get("/health", page_health), web.get("/metrics", page_metrics)]
