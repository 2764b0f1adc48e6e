"""The web server of long-running commands: ``/metrics`` for Prometheus, and ``/health``."""

import contextlib
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

log = logging.getLogger(__name__)

Labels = tuple[tuple[str, str], ...]
Page = tuple[int, str, str]
"""The status, the content type and the text of an answer."""

_LONGEST_S = 30.0
"""The server disconnects a client that has not sent its request or read the response within this time."""
_MOST_CONNECTIONS = 100
"""Connections at the same time. Each takes a thread and an open file, which the command needs, too."""
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


def metric(name: str, kind: str, text: str, values: Mapping[Labels, float]) -> Iterator[str]:
    """Yield the lines of a metric, with its values by labels."""
    yield f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
    for labels, value in values.items():
        pairs = ",".join(f'{label}="{_escaped(of)}"' for label, of in labels)
        yield f"{name}{f'{{{pairs}}}' if pairs else ''} {value}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


@contextlib.contextmanager
def serving(address: tuple[str, int], pages: Mapping[str, Callable[[], Page]]) -> Iterator[int]:
    """Serve pages by their paths in the block; yields the port.

    Raises:
        OSError: the address cannot be used.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path.partition("?")[0])
            missing = HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", f"there are {' and '.join(pages)}\n"
            code, kind, text = missing if page is None else page()
            body = text.encode()
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Do nothing: requests are not logged."""

    with _Server(address, Handler) as server:
        thread = threading.Thread(target=server.serve_forever, name="web", daemon=True)
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def served(
    address: tuple[str, int], metrics: Callable[[], str], health: Callable[[], tuple[int, str]]
) -> Iterator[str]:
    """Serve the pages while the context is open; its value is the URL of the metrics.

    Args:
        address: host and port; 0 chooses a port.
        metrics: the text of ``/metrics``.
        health: the status code and the JSON text of ``/health``.

    Raises:
        OSError: the address cannot be used.
    """

    def health_page() -> Page:
        status, text = health()
        return status, "application/json; charset=utf-8", text

    def metrics_page() -> Page:
        return HTTPStatus.OK, "text/plain; version=0.0.4; charset=utf-8", metrics()

    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    with serving(address, {"/metrics": metrics_page, "/health": health_page}) as port:
        yield f"http://{host}:{port}/metrics"
