"""A proxy between a client and a server that can cut, freeze, swallow or damage connections."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from typing import Self

__all__ = ["TcpProxy"]


class TcpProxy:
    """Forwards bytes, and on request cuts or freezes connections, or inverts a byte from the server.

    Args:
        host: the host of the server.
        port: the port of the server.

    Attributes:
        port: the port of the proxy on 127.0.0.1.
        cut_after: close the next connection that has received this number of bytes.
        flip_after: invert a byte in the next data of the first connection that has received this number of bytes.
        cut_at: close the next connection on which the client sends this text, without forwarding it.
        freeze_at: set ``frozen`` when the client sends this text, which is not forwarded before ``frozen`` is cleared.
        frozen: while set, nothing is forwarded in either direction, also on new connections, which are accepted.
        cuts: the number of connections that were cut.
        hold: holds the first data of a client for which it is true, and what follows on that connection.
        held: set while something is held; cleared, it is forwarded.
        answered: set when the server has answered what was held.
        vanished: the number of times that the server has vanished.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.cut_after: int | None = None
        self.flip_after: int | None = None
        self.cut_at: bytes | None = None
        self.freeze_at: bytes | None = None
        self.frozen = threading.Event()
        self.cuts = 0
        self.vanished = 0
        self.hold: Callable[[bytes], bool] = lambda _data: False
        self.held = threading.Event()
        self.answered = threading.Event()
        self._holding: socket.socket | None = None
        self._sockets: list[socket.socket] = [self._listener]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def redirect(self, host: str, port: int) -> None:
        """Cut all connections, and forward new ones to another server."""
        self._server = (host, port)
        for sock in self._sockets[1:]:
            _end(sock)

    def vanish(self) -> None:
        """Let both sides of all connections hear nothing more, nor of an end; new connections reach the server."""
        self.vanished += 1

    def __exit__(self, *_: object) -> None:
        for sock in self._sockets:
            _end(sock)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._server)
            except OSError:
                client.close()
                continue
            self._sockets += [client, server]
            threading.Thread(target=self._ask, args=(client, server), daemon=True).start()
            threading.Thread(target=self._answer, args=(server, client), daemon=True).start()

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        before = self.vanished
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if self.vanished > before:
                    continue
                if self.freeze_at is not None and self.freeze_at in data:
                    self.freeze_at = None
                    self.frozen.set()
                self._wait_while_frozen()
                if self.cut_at is not None and self.cut_at in data:
                    self.cut_at = None
                    self.cuts += 1
                    break
                if self._holding is None and self.hold(data):
                    self._holding = server
                    self.held.set()
                    while self.held.is_set():
                        time.sleep(0.05)
                    server.sendall(data)
                    self.answered.wait()  # the client may have gone
                    continue
                server.sendall(data)
        _end(server)
        _end(client)

    def _wait_while_frozen(self) -> None:
        while self.frozen.is_set():
            time.sleep(0.05)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        before, passed = self.vanished, 0
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if self.vanished > before:
                    continue
                if server is self._holding:
                    self.answered.set()
                self._wait_while_frozen()
                begin, passed = passed, passed + len(data)
                cut, flip = self.cut_after, self.flip_after
                if cut is not None and passed > cut:
                    self.cut_after = None
                    self.cuts += 1
                    client.sendall(data[: max(0, cut - begin)])
                    break
                if flip is not None and passed > flip:
                    self.flip_after = None
                    place = max(len(data) // 2, flip - begin)
                    data = data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]
                client.sendall(data)
        _end(server)
        _end(client)


def _end(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()
