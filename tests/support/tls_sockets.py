"""Two connected sockets with TLS between them."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from rowtide_stack.servers.tls import TlsFiles


@contextmanager
def tls_sockets(folder: Path) -> Iterator[tuple[ssl.SSLSocket, ssl.SSLSocket]]:
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
    wrapped = trusting.wrap_socket(client)
    thread.join()
    with closing(ends[0]), closing(wrapped):
        yield ends[0], wrapped
