"""The web server of a mirror: ``/health`` and ``/metrics``."""

import contextlib
import json
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from rowtide.connector.source.mirror.mirror import MirrorStatus
from rowtide.connector.worker.web import process_metrics
from rowtide.connector.worker.web.metrics import CONTENT_TYPE, Metric, rendered
from rowtide.schema_history.position.binlog_position import file_number

log = logging.getLogger(__name__)


_LONGEST_S = 30.0
"""The server disconnects a client that has not sent its request or read the response within this time."""
_MOST_CONNECTIONS = 100
"""Connections at the same time. Each takes a thread and an open file, which the mirror needs, too."""
_ACCEPT_AGAIN_S = 0.5


class _Server(ThreadingHTTPServer):
    """Serves each connection in a thread, with a limited number of connections and a limited time for each."""

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self._open: dict[socket.socket, float] = {}

    def get_request(self) -> tuple[socket.socket, object]:
        """Accept a connection. If that is not possible, such as with too many open files, pause before the next try."""
        try:
            return super().get_request()
        except OSError as error:
            log.warning("the web server cannot accept a connection: %s", error.strerror or error)
            time.sleep(_ACCEPT_AGAIN_S)
            raise

    def verify_request(self, request: socket.socket, _address: object) -> bool:  # type: ignore[override]
        """Return whether another connection is allowed."""
        if len(self._open) >= _MOST_CONNECTIONS:
            return False
        self._open[request] = time.monotonic()
        return True

    def service_actions(self) -> None:
        """Close the connections that take too long; this is called twice a second."""
        for connection, begin in list(self._open.items()):
            if time.monotonic() - begin > _LONGEST_S:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, request: socket.socket) -> None:  # type: ignore[override]
        """Close a connection."""
        self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, *_: object) -> None:
        """Ignore a client that has disconnected before its answer. Other errors have a traceback in the log."""
        if not isinstance(sys.exception(), ConnectionError):
            log.exception("a request to the web server cannot be answered")


@contextlib.contextmanager
def served(status: MirrorStatus, host: str, port: int) -> Iterator[int]:
    """Serve the status of a mirror in the block; yields the port.

    Raises:
        OSError: the port cannot be used.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = PAGES.get(self.path.partition("?")[0])
            code, kind, text = (HTTPStatus.NOT_FOUND, "text/plain", "not found\n") if page is None else page(status)
            body = text.encode()
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Do nothing: requests are not logged."""

    with _Server((host, port), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, name="mirror/web", daemon=True)
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()


Page = tuple[HTTPStatus, str, str]
"""The status, the content type and the text of an answer."""


def health(status: MirrorStatus) -> Page:
    """Return the state as JSON; 503 while no stream is open."""
    fields = {
        "status": "UP" if status.connected else "DOWN",
        "error": status.error,
        "position": {"file": status.file, "pos": status.pos},
        "files": status.files,
        "bytes": status.bytes,
        "last_event_at": status.event_at or None,
        "reconnects": status.reconnects,
    }
    code = HTTPStatus.OK if status.connected else HTTPStatus.SERVICE_UNAVAILABLE
    return code, "application/json", json.dumps(fields) + "\n"


def metrics(status: MirrorStatus) -> Page:
    """Return the state in Prometheus' text format."""
    number = file_number(status.file) or 0
    found = (
        Metric("connected", "gauge", "Whether the server is connected.", [({}, int(status.connected))]),
        Metric("file_number", "gauge", "The number of the file that is written.", [({}, number)]),
        Metric("position_bytes", "gauge", "The size of the file that is written.", [({}, status.pos)]),
        Metric("files", "gauge", "The number of files.", [({}, status.files)]),
        Metric("bytes", "gauge", "The size of all files.", [({}, status.bytes)]),
        Metric("copied_bytes_total", "counter", "Bytes written since the start.", [({}, status.copied_bytes)]),
        Metric("reconnects_total", "counter", "How often the connection was lost.", [({}, status.reconnects)]),
        Metric(
            "last_event_timestamp_seconds",
            "gauge",
            "When the server logged the last event, in seconds since the epoch.",
            [({}, status.event_at)],
        ),
    )
    return HTTPStatus.OK, CONTENT_TYPE, rendered("rowtide_mirror_", [({}, found)]) + process_metrics.render()


PAGES: dict[str, Callable[[MirrorStatus], Page]] = {"/health": health, "/metrics": metrics}
