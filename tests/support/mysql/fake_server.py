"""A MySQL server that misbehaves: it logs everybody in, and answers statements as a test says."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Self

from pymysql.constants import CLIENT

__all__ = ["SHUTDOWN", "SYNTAX_ERROR", "FakeMySQL", "Peer"]

_OK = b"\x00\x00\x00\x02\x00\x00\x00"
_QUERY = 3
_CAPABILITIES = CLIENT.PROTOCOL_41 | CLIENT.SECURE_CONNECTION | CLIENT.PLUGIN_AUTH | CLIENT.CONNECT_WITH_DB


def _error(code: int, message: str) -> bytes:
    return b"\xff" + struct.pack("<H", code) + b"#HY000" + message.encode()


SHUTDOWN = _error(1053, "Server shutdown in progress")
SYNTAX_ERROR = _error(1064, "You have an error in your SQL syntax")


class Peer:
    """One connection, from the server's side; reads and writes packets.

    Attributes:
        received: every packet of the client.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.received: list[bytes] = []
        self._sequence = 0

    def send(self, payload: bytes) -> None:
        """Send a packet."""
        self.socket.sendall(len(payload).to_bytes(3, "little") + bytes([self._sequence]) + payload)
        self._sequence += 1

    def read(self) -> bytes:
        """Read a packet; empty at the end of the connection."""
        head = self._exactly(4)
        if not head:
            return b""
        self._sequence = head[3] + 1
        self.received.append(self._exactly(int.from_bytes(head[:3], "little")))
        return self.received[-1]

    def greet(self, *, tls: bool = False, plugin: bytes = b"mysql_native_password") -> None:
        """Send the greeting."""
        capabilities = _CAPABILITIES | (CLIENT.SSL if tls else 0)
        self._sequence = 0
        self.send(
            b"\x0a8.4.0\x00" + struct.pack("<I", 7) + b"saltsalt\x00" + struct.pack("<H", capabilities & 0xFFFF)
            + b"\x2d" + struct.pack("<H", 2) + struct.pack("<H", capabilities >> 16) + b"\x15" + bytes(10)
            + b"moresaltmore\x00" + plugin + b"\x00"
        )  # fmt: skip

    def log_in(self) -> None:
        """Greet, and accept any password."""
        self.greet()
        self.read()
        self.send(_OK)

    def answer(self, answer: Callable[[str], bytes | None] = lambda _statement: b"") -> None:
        """Answer statements until the client goes: empty for OK, ``None`` to close the connection."""
        while command := self.read():
            if command[0] != _QUERY:
                return
            found = answer(command[1:].decode())
            if found is None:
                return
            self.send(found or _OK)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size and (more := self.socket.recv(size - len(data))):
            data += more
        return data


class FakeMySQL:
    """Listens on 127.0.0.1, and serves each connection in a thread.

    Args:
        serve: what happens on a connection; the connection is closed after it.

    Attributes:
        port: where it listens.
        peers: all connections so far.
    """

    def __init__(self, serve: Callable[[Peer], None]) -> None:
        self._serve = serve
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.peers: list[Peer] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for sock in (self._listener, *(peer.socket for peer in self.peers)):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                self.peers.append(Peer(sock))
                threading.Thread(target=self._run, args=(self.peers[-1],), daemon=True).start()

    def _run(self, peer: Peer) -> None:
        with contextlib.suppress(OSError):
            self._serve(peer)
            peer.socket.shutdown(socket.SHUT_RDWR)
