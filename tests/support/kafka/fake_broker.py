"""A Kafka broker that does as a test says: it answers requests, or sends something else."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any, Self

from rowtide.connector.kafka_producer.wire.apis import APIS
from rowtide.connector.kafka_producer.wire.frames import SentRequest
from rowtide.connector.kafka_producer.wire.messages.opening import ApiRange, ApiVersionsAnswer
from tests.support.kafka.wire import answer_bytes

__all__ = ["VERSIONS", "FakeBroker", "Peer"]

VERSIONS = ApiVersionsAnswer(
    error=0,
    api_keys=tuple(ApiRange(api_key=api.key, min_version=api.lowest, max_version=api.highest) for api in APIS),
)
_APIS = {api.key: api for api in APIS}


class Peer:
    """One connection, from the broker's side.

    Attributes:
        requests: the names of the requests that came.
        body: the last request, with its header and without its length.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.requests: list[str] = []
        self.body = b""

    def read(self) -> SentRequest:
        """Wait for a request; raises ``EOFError`` at the end of the connection."""
        body = self.body = self._exactly(int.from_bytes(self._exactly(4), "big"))
        api = _APIS[int.from_bytes(body[:2], "big")]
        self.requests.append(api.name)
        return SentRequest(api, int.from_bytes(body[2:4], "big"), int.from_bytes(body[4:8], "big"))

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self.socket.recv(min(size - len(data), 1 << 16))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)

    def answer(self, message: Any) -> None:
        """Wait for a request, and answer it."""
        self.send(answer_bytes(self.read(), message))

    def send(self, frame: bytes) -> None:
        """Send an answer."""
        self.socket.sendall(len(frame).to_bytes(4, "big") + frame)

    def opened(self) -> Self:
        """Answer the first request of a connection without a login."""
        self.answer(VERSIONS)
        return self


class FakeBroker:
    """Serves each connection with a function of the test, and closes it then.

    Args:
        serve: what to do with each connection.
        context: of TLS; ``None`` for plain text.

    Attributes:
        address: ``host:port``.
        peers: the connections, in order.
    """

    def __init__(self, serve: Callable[[Peer], object], context: ssl.SSLContext | None = None) -> None:
        self._serve = serve
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.address = f"127.0.0.1:{self.port}"
        self.peers: list[Peer] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for peer in self.peers:
            with contextlib.suppress(OSError):
                peer.socket.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            peer = Peer(sock)
            thread = threading.Thread(target=self._run, args=(peer,), daemon=True)
            self._threads.append(thread)
            self.peers.append(peer)
            thread.start()

    def _run(self, peer: Peer) -> None:
        with contextlib.suppress(OSError, EOFError), peer.socket as sock:
            if self._context is not None:
                peer.socket = self._context.wrap_socket(sock, server_side=True)
            with peer.socket:
                self._serve(peer)
