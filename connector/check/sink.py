"""Checks that a server listens at the address to which an HTTP sink posts the records."""

import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from rowtide.connector.check.findings import Finding
from rowtide.connector.config import Configuration

_TIMEOUT_S = 5.0


def sink_findings(config: Configuration) -> Iterator[Finding]:
    """Yield a finding if no server answers at the address of an HTTP sink. Nothing is posted."""
    url = urlsplit(config.delivery.sink)
    if url.scheme not in ("http", "https") or url.hostname is None:
        return
    port = url.port or (443 if url.scheme == "https" else 80)
    try:
        socket.create_connection((url.hostname, port), _TIMEOUT_S).close()
    except (OSError, UnicodeError) as error:
        message = f"nothing answers at {url.hostname}:{port}: {error}. Records wait until the server answers"
        yield Finding.warning("rowtide.sink", message)
