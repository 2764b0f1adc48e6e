"""Edge: the bytes of a connection to the server, for a buffered reader."""

import io
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
        timeout = sock.gettimeout()
        sock.settimeout(0)
        try:
            while count < len(space) and (received := sock.recv_into(space[count:])):
                count += received
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):  # nothing, or a part of a record
            pass
        except OSError as error:
            self._error = error
        finally:
            sock.settimeout(timeout)
        return count
