"""The web server of a worker, which serves rowtide's own pages and none of Faust's."""

import asyncio
import errno
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler
from faust.web.base import BlueprintManager
from faust.web.drivers.aiohttp import Web as FaustWeb

from rowtide.connector.worker.web.connect_rest import error

log = logging.getLogger(__name__)

_UNANSWERED_S = 1.0
"""How long a stop waits for requests that are not answered, or whose body has not arrived, before it cancels them."""
_MOST_CONNECTIONS = 100
"""Connections at the same time. Each takes an open file, and the connectors need some, too."""
_SILENT_S = 30
"""How long a connection may have no complete request, how long a body may take, and how long an answer may wait."""
_ALL_INTERFACES = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class WebServer(FaustWeb):
    """Serves a list of pages at ``web_bind`` and ``web_port`` of the app's settings.

    Faust's own pages are omitted: its ``/`` answers OK while the connector has failed.

    Args:
        app: the Faust app.
        pages: the pages.
        any_port: whether to take a free port if ``web_port`` is in use.
        running: what runs next to it, as a context of the application.
        on_stop: called before it waits for answers that are being sent.

    Attributes:
        port: its port; ``None`` before it starts.
        on_listening: called when it has the port.
    """

    logger = logging.getLogger("mode.rowtide")

    def __init__(
        self,
        app: Any,
        pages: Iterable[web.RouteDef],
        *,
        any_port: bool,
        running: Callable[[web.Application], AsyncIterator[None]] | None = None,
        on_stop: Callable[[web.Application], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(app)
        self.blueprints = BlueprintManager()
        self.web_app.add_routes(pages)
        self.web_app.middlewares.extend((json_errors, limited))
        self.web_app.on_response_prepare.append(without_charset)
        if running is not None:
            self.web_app.cleanup_ctx.append(running)
        if on_stop is not None:
            self.web_app.on_shutdown.append(on_stop)
        self._runner = _Runner(
            self.web_app, access_log=None, shutdown_timeout=_UNANSWERED_S, keepalive_timeout=_SILENT_S
        )
        self._any_port = any_port
        self.port: int | None = None
        self.on_listening: Callable[[], None] = lambda: None

    def _new_transport_tcp(self) -> web.BaseSite:
        conf = self.app.conf
        if not self._any_port:
            return super()._new_transport_tcp()
        return web.SockSite(self._runner, _listen(conf.web_bind, conf.web_port), ssl_context=conf.web_ssl_context)

    async def start_server(self) -> None:
        """Listen, and log the address."""
        await super().start_server()
        host, port = self._runner.addresses[0][:2]
        self.port = port
        self.on_listening()
        place = url(host, port, tls=self.app.conf.web_ssl_context is not None)
        also = ", and at every other address of this machine" if host in _ALL_INTERFACES else ""
        log.info("the state of the connector is at %s/health%s", place, also)


class _Runner(web.AppRunner):
    """Runs a server whose number of connections is limited."""

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        return _LimitedServer(made.request_handler, request_factory=made.request_factory, **self._kwargs)


class _LimitedServer(web.Server):
    """Closes connections beyond the limit. The runner's settings limit the time of a request."""

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Accept a connection, or close it."""
        super().connection_made(handler, transport)
        if len(self.connections) > _MOST_CONNECTIONS:
            transport.abort()


async def without_charset(_request: web.Request, response: web.StreamResponse) -> None:
    """Name no character set of JSON, as Kafka Connect does not: it has only one."""
    if response.content_type == "application/json":
        response.charset = None


@web.middleware
async def limited(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Disconnect a client that does not send the rest of its request, or does not read its answer."""
    try:
        async with asyncio.timeout(_SILENT_S):
            await request.read()
    except TimeoutError:
        return error(HTTPStatus.REQUEST_TIMEOUT, f"the body did not arrive within {_SILENT_S} s")
    response = await handler(request)
    try:
        async with asyncio.timeout(_SILENT_S):
            await response.prepare(request)
            await response.write_eof()
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
    except ConnectionError:
        pass  # the client has gone, such as an open page that was closed
    return response


@web.middleware
async def json_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer unknown paths and methods in Kafka Connect's form."""
    try:
        return await handler(request)
    except web.HTTPException as failure:
        if request.method == "OPTIONS" and failure.status == HTTPStatus.METHOD_NOT_ALLOWED:
            return web.Response(text=failure.headers["Allow"], headers={"Allow": failure.headers["Allow"]})
        response = error(failure.status, f"HTTP {failure.status} {failure.reason}")
        if "Allow" in failure.headers:
            response.headers["Allow"] = failure.headers["Allow"]
        return response


def url(host: str, port: int, *, tls: bool = False) -> str:
    """Return the URL of a server on this machine.

    If it listens on all interfaces, the URL has the loopback address.
    """
    host = _ALL_INTERFACES.get(host, host)
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def _listen(host: str, port: int) -> socket.socket:
    """Listen on a port, or on a free one if it is in use.

    The same socket is tried and then used, so workers that start at the same time cannot take the same port.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
    listening = socket.create_server((host, 0), family=family)
    log.warning("port %d is in use: the web server listens on port %d", port, listening.getsockname()[1])
    return listening
