"""The pages of the web server, beside those of ``connect_rest``."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from rowtide.connector.worker.status import Status, health
from rowtide.connector.worker.web import jmx_metrics, metrics

StatusSource = Callable[[], Awaitable[Status]]
"""Returns the current status of the connector."""


def pages(status: StatusSource, status_at_once: StatusSource) -> list[web.RouteDef]:
    """All pages of a connector.

    Args:
        status: the status for people and Prometheus.
        status_at_once: the status for probes, which often have a time limit of one second.
    """

    async def page_health(_request: web.Request) -> web.Response:
        now = await status()
        return web.json_response(health(now), status=200 if now.healthy else 503)

    async def page_metrics(_request: web.Request) -> web.Response:
        return _text(metrics.render([await status()]))

    async def page_jmx_metrics(_request: web.Request) -> web.Response:
        return _text(jmx_metrics.render([await status()]))

    async def page_live(_request: web.Request) -> web.Response:
        return _probe(await status_at_once(), lambda now: now.state != "FAILED")

    async def page_ready(_request: web.Request) -> web.Response:
        return _probe(await status_at_once(), lambda now: now.ready)

    return [
        web.get("/health", page_health),
        web.get("/health/live", page_live),
        web.get("/health/ready", page_ready),
        web.get("/metrics", page_metrics),
        web.get("/metrics/debezium", page_jmx_metrics),
    ]


def _probe(now: Status, passes: Callable[[Status], bool]) -> web.Response:
    up = passes(now)
    body = {"status": "UP" if up else "DOWN", "state": now.state, "error": now.problem}
    return web.json_response(body, status=200 if up else 503)


def _text(text: str) -> web.Response:
    return web.Response(body=text.encode(), headers={"Content-Type": metrics.CONTENT_TYPE})
