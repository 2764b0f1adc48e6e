"""A server's socket with TLS, and the client's at its other end."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from rowtide_stack.servers.tls import TlsFiles

from rowtide.connector.source.connection.tls_socket import TlsSocket


@contextmanager
def tls_sockets(folder: Path) -> Iterator[tuple[ssl.SSLSocket, TlsSocket]]:
    """The ends of the server and of the client; the certificates are made in ``folder``."""
    files = TlsFiles.make(folder)
    accepting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    accepting.load_cert_chain(files.folder / "server.pem", files.folder / "server.key")
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    server, client = socket.socketpair()
    ends: list[ssl.SSLSocket] = []
    accept: Callable[[], None] = lambda: ends.append(accepting.wrap_socket(server, server_side=True))  # noqa: E731
    thread = threading.Thread(target=accept)
    thread.start()
    tls = TlsSocket(client, trusting, "localhost")
    thread.join()
    with closing(ends[0]), closing(tls):
        yield ends[0], tls
