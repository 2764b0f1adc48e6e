"""Edge: the bytes of a connection to the server, for a buffered reader."""

import io
import select
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any


class SocketReader(io.RawIOBase):
    """Reads a socket, and calls ``check`` with the seconds of silence whenever the socket's time limit passes.

    ``socket.makefile`` cannot be used again after a time-out. A read of a TLS socket returns one TLS record, which has
    16 KB at most; this one returns all that have arrived, so that the rows of a snapshot come in larger batches.
    """

    def __init__(self, sock: socket.socket, check: Callable[[float], None]) -> None:
        self._sock = sock
        self._check = check
        self._arrived = select.poll()
        self._arrived.register(sock, select.POLLIN)
        self._error: OSError | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._error is not None:
            raise self._error
        begin = time.monotonic()
        while True:
            try:
                count = self._sock.recv_into(buffer)
            except TimeoutError:
                self._check(time.monotonic() - begin)
            else:
                break
        if count and isinstance(self._sock, ssl.SSLSocket):
            count += self._more(self._sock, memoryview(buffer)[count:])
        return count

    def _more(self, sock: ssl.SSLSocket, space: memoryview) -> int:
        """Read the further records that have arrived; the next read finds the end of the connection or its error."""
        count = 0
        while count < len(space) and (sock.pending() or self._arrived.poll(0)):
            try:
                received = sock.recv_into(space[count:])
            except TimeoutError:  # a part of a record has arrived
                break
            except OSError as error:
                self._error = error
                break
            if not received:
                break
            count += received
        return count
