"""The web server of a mirror: ``/health`` and ``/metrics``."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from http import HTTPStatus

from rowtide.cli.metrics_server import Page, serving
from rowtide.connector.source.mirror.mirror import MirrorStatus
from rowtide.connector.worker.web import process_metrics
from rowtide.connector.worker.web.metrics import CONTENT_TYPE, Metric, rendered
from rowtide.schema_history.position.binlog_position import file_number


def served(status: MirrorStatus, host: str, port: int) -> AbstractContextManager[int]:
    """Serve the status of a mirror in the block, whose value is the port.

    Raises:
        OSError: the port cannot be used.
    """
    return serving((host, port), {path: partial(page, status) for path, page in PAGES.items()})


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
