"""The bytes of a connection to the server, for a buffered reader."""

import io
import time
from collections.abc import Callable
from typing import Any, Protocol


class Receiver(Protocol):
    """The part of a socket that a reader needs."""

    def recv_into(self, buffer: memoryview, /) -> int:
        """Receive bytes; returns their number, 0 at the end of the connection."""


class SocketReader(io.RawIOBase):
    """Reads a socket, and calls ``check`` with the seconds of silence whenever the socket's time limit passes.

    ``socket.makefile`` cannot be used again after a time-out.
    """

    def __init__(self, sock: Receiver, check: Callable[[float], None]) -> None:
        self._sock = sock
        self._check = check

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        begin = time.monotonic()
        while True:
            try:
                return self._sock.recv_into(memoryview(buffer))
            except TimeoutError:
                self._check(time.monotonic() - begin)
