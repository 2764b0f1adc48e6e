"""A socket whose reader another thread can wake."""

import contextlib
import selectors
import socket

from rowtide.connector.source.connection.tls_socket import Socket, TlsSocket


class WakeableSocket:
    """Receives from a socket until bytes arrive, the timeout passes, or another thread calls :meth:`wake`.

    TLS allows no second thread to write while the first one reads, so a thread that has something to send wakes the
    reader, which sends it.

    Args:
        sock: the socket; its owner closes it.
        timeout: seconds to wait for bytes.
    """

    def __init__(self, sock: Socket, timeout: float) -> None:
        self._sock = sock
        self._timeout = timeout
        self._woken, self._waker = socket.socketpair()
        self._woken.setblocking(False)
        self._waker.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(sock, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)

    def settimeout(self, timeout: float) -> None:
        """Set the seconds to wait for bytes."""
        self._timeout = timeout

    def recv_into(self, buffer: memoryview) -> int:
        """Receive bytes; returns their number, 0 at the end of the connection.

        Raises:
            TimeoutError: no bytes arrived in time, or before :meth:`wake`.
        """
        if not (isinstance(self._sock, TlsSocket) and self._sock.pending()):
            ready = {key.fileobj for key, _ in self._selector.select(self._timeout)}
            if self._woken in ready:
                with contextlib.suppress(BlockingIOError):
                    self._woken.recv(4096)
            if self._sock not in ready:
                raise TimeoutError
        return self._sock.recv_into(buffer)

    def sendall(self, data: bytes) -> None:
        """Send bytes; only the reading thread may call this."""
        self._sock.sendall(data)

    def wake(self) -> None:
        """Make a :meth:`recv_into` in another thread return soon; any thread may call this."""
        with contextlib.suppress(OSError):  # it is woken already, or closed
            self._waker.send(b"\0")

    def close(self) -> None:
        """Release this object's resources; any thread may call this."""
        self._selector.close()
        self._woken.close()
        self._waker.close()
