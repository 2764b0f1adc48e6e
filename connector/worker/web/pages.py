"""The pages of the web server other than those of ``connect_rest``."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from aiohttp import web

from rowtide.connector.worker.status import Status, combined_health, probe
from rowtide.connector.worker.web import jmx_metrics, metrics, process_metrics


class Source(Protocol):
    """A connector with a status."""

    async def status(self) -> Status:
        """Return the status for people and Prometheus."""
        ...

    async def status_at_once(self) -> Status:
        """Return the status for probes, which often have a time limit of one second."""
        ...


def pages(sources: Collection[Source], *, several: bool) -> list[web.RouteDef]:
    """Return all pages of the connectors of a worker.

    Args:
        sources: the connectors, which may come and go.
        several: whether the worker may have several: then answers name each, however many there are.
    """

    async def statuses() -> list[Status]:
        return await asyncio.gather(*(source.status() for source in sources))

    async def page_health(_request: web.Request) -> web.Response:
        now = await statuses()
        return web.json_response(
            combined_health(now, several=several), status=200 if all(one.healthy for one in now) else 503
        )

    async def page_metrics(_request: web.Request) -> web.Response:
        return _text(metrics.render(await statuses()) + process_metrics.render())

    async def page_jmx_metrics(request: web.Request) -> web.Response:
        lowercase = request.query.get("lowercase", "").lower() == "true"
        return _text(jmx_metrics.render(await statuses(), lowercase=lowercase))

    async def page_live(_request: web.Request) -> web.Response:
        return await answered(lambda now: not now or any(one.state != "FAILED" for one in now))

    async def page_ready(_request: web.Request) -> web.Response:
        return await answered(lambda now: all(one.ready for one in now))

    async def answered(passes: Callable[[Sequence[Status]], bool]) -> web.Response:
        now = [await source.status_at_once() for source in sources]
        up = passes(now)
        return web.json_response(probe(now, up=up, several=several), status=200 if up else 503)

    return [
        web.get("/health", page_health),
        web.get("/health/live", page_live),
        web.get("/health/ready", page_ready),
        web.get("/metrics", page_metrics),
        web.get("/metrics/debezium", page_jmx_metrics),
    ]


def _text(text: str) -> web.Response:
    return web.Response(body=text.encode(), headers={"Content-Type": metrics.CONTENT_TYPE})
