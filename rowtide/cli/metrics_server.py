"""The web server of long-running commands: ``/metrics`` for Prometheus, and ``/health``."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Labels = tuple[tuple[str, str], ...]


def metric(name: str, kind: str, text: str, values: Mapping[Labels, float]) -> Iterator[str]:
    """Yield the lines of a metric, with its values by labels."""
    yield f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
    for labels, value in values.items():
        pairs = ",".join(f'{label}="{_escaped(of)}"' for label, of in labels)
        yield f"{name}{f'{{{pairs}}}' if pairs else ''} {value}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


@contextmanager
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

    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            status, kind, text = 404, "text/plain", "there are /metrics and /health\n"
            if self.path == "/metrics":
                status, kind, text = 200, "text/plain; version=0.0.4", metrics()
            elif self.path == "/health":
                (status, text), kind = health(), "application/json"
            content = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_arguments: object) -> None:
            """Print nothing: the terminal shows the command's own lines."""

    server = ThreadingHTTPServer(address, Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    host = f"[{address[0]}]" if ":" in address[0] else address[0]
    try:
        yield f"http://{host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
