"""A proxy between a client and a server that can damage what the server says."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Self

__all__ = ["TcpProxy"]


class TcpProxy:
    """Passes on bytes; may cut connections, or flip a bit, once after so many bytes of the server's answer.

    Args:
        host: the server's.
        port: the server's.

    Attributes:
        port: where the proxy listens, on 127.0.0.1.
        cut_after: close the next connection that has brought so many bytes.
        flip_after: invert a byte, in the middle of what comes, of the next connection that has brought so many bytes.
        cuts: how many connections it has cut.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.cut_after: int | None = None
        self.flip_after: int | None = None
        self.cuts = 0
        self._sockets: list[socket.socket] = [self._listener]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for sock in self._sockets:
            _end(sock)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
            except OSError:
                return
            self._sockets += [client, server]
            threading.Thread(target=_pump, args=(client, server), daemon=True).start()
            threading.Thread(target=self._answer, args=(server, client), daemon=True).start()

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        passed = 0
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
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


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    _end(target)


def _end(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()
