"""Edge: the web server of a worker, which serves rowtide's own pages and none of Faust's."""

import errno
import logging
import socket
from collections.abc import Iterable
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler
from faust.web.base import BlueprintManager
from faust.web.drivers.aiohttp import Web as FaustWeb

from rowtide.connector.worker.web.connect_rest import error

log = logging.getLogger(__name__)

_UNANSWERED_S = 1.0
"""How long a stop waits for a request that is being answered, or whose body has not come, before it cancels it."""
_ALL_INTERFACES = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class WebServer(FaustWeb):
    """Serves a list of pages at ``web_bind`` and ``web_port`` of the app's settings.

    Faust's own pages are left out: its ``/`` answers OK while the connector has failed.

    Args:
        app: the Faust app.
        pages: the pages.
        any_port: whether a free port is taken if ``web_port`` is in use.
    """

    logger = logging.getLogger("mode.rowtide")

    def __init__(self, app: Any, pages: Iterable[web.RouteDef], *, any_port: bool) -> None:
        super().__init__(app)
        self.blueprints = BlueprintManager()
        self.web_app.add_routes(pages)
        self.web_app.middlewares.append(json_errors)
        self._runner = web.AppRunner(self.web_app, access_log=None, shutdown_timeout=_UNANSWERED_S)
        self._any_port = any_port

    def _new_transport_tcp(self) -> web.BaseSite:
        conf = self.app.conf
        if not self._any_port:
            return super()._new_transport_tcp()
        return web.SockSite(self._runner, _listen(conf.web_bind, conf.web_port))

    async def start_server(self) -> None:
        """Listen, and log the address."""
        await super().start_server()
        host, port = self._runner.addresses[0][:2]
        log.info("the state of the connector is at %s/health", url(host, port))


@web.middleware
async def json_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer unknown paths and methods in Kafka Connect's form."""
    try:
        return await handler(request)
    except web.HTTPException as failure:
        response = error(failure.status, f"HTTP {failure.status} {failure.reason}")
        if "Allow" in failure.headers:
            response.headers["Allow"] = failure.headers["Allow"]
        return response


def url(host: str, port: int) -> str:
    """The URL of a server on this machine; for one that listens on all interfaces, that of the loopback interface."""
    host = _ALL_INTERFACES.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _listen(host: str, port: int) -> socket.socket:
    """Listen on a port, or on a free one if it is in use.

    The socket that is tried is the one that serves: workers that start at the same time cannot take the same port.
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
