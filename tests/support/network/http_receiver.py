"""An HTTP server that keeps what it is sent, for tests of what sends telemetry."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

__all__ = ["Receiver", "receiver"]


class Receiver(ThreadingHTTPServer):
    """Answers each POST with a status, and keeps its path and body.

    Attributes:
        requests: paths and bodies, in order.
        status: of the answers.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[str, bytes]] = []
        self.status = 200

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.server_port}"

    def lineage(self) -> list[tuple[str, bytes]]:
        """The requests with OpenLineage's events."""
        return [(path, body) for path, body in self.requests if path == "/api/v1/lineage"]

    def spans(self) -> list[Span]:
        """The spans that came in OTLP."""
        found = [ExportTraceServiceRequest.FromString(body) for path, body in self.requests if path == "/v1/traces"]
        scopes = [scope for one in found for given in one.resource_spans for scope in given.scope_spans]
        return [span for scope in scopes for span in scope.spans]

    def metrics(self) -> dict[str, Metric]:
        """The newest metrics that came in OTLP, by name."""
        found = [ExportMetricsServiceRequest.FromString(body) for path, body in self.requests if path == "/v1/metrics"]
        scopes = [scope for one in found[-1:] for given in one.resource_metrics for scope in given.scope_metrics]
        return {metric.name: metric for scope in scopes for metric in scope.metrics}


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.requests.append((self.path, body))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def receiver() -> Iterator[Receiver]:
    """Run a server in a thread."""
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
