"""A socket with TLS that receives in bulk."""

import contextlib
import io
import socket
import ssl
from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from rowtide.connector.source.connection.socket_reader import SocketReader

_CHUNK = 1 << 18
"""Encrypted bytes of one read, about sixteen records of TLS."""

_T = TypeVar("_T")


class TlsSocket:
    """TLS over a connected socket.

    An ``ssl.SSLSocket`` returns one record of TLS for each call, 16 KB at most, for which it reads the socket twice.
    This class reads everything that has arrived, and returns all records in it.

    Only one thread may receive and send. Another one may call :meth:`shutdown`.

    Args:
        sock: a socket that is connected and blocking or with a time-out; it is closed with this object.
        context: certificates and checks.
        server_hostname: the name for which the server's certificate is checked, if the context checks it.

    Raises:
        OSError: the handshake failed (``ssl.SSLError``), the connection is lost, or the server is silent.
    """

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, server_hostname: str) -> None:
        self._sock = sock
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        # typeshed lacks the type for reading into a memoryview
        self._tls: Any = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_hostname)
        self._encrypted = memoryview(bytearray(_CHUNK))
        self._ended = False
        self._error: OSError | None = None
        try:
            self._done(self._tls.do_handshake)
        finally:
            with contextlib.suppress(OSError):  # the alert of a failure is of no use to us
                self._flush()

    def recv_into(self, buffer: memoryview) -> int:
        """Receive all bytes that have arrived, at least one; returns their number, 0 at the end of the connection.

        The end may come without a message of TLS, as with every client of MySQL: packets show where the data ends.

        Raises:
            TimeoutError: no complete record came in time.
            OSError: the connection is lost, or a record cannot be decrypted (``ssl.SSLError``); raised after the last
                bytes before it.
        """
        while not (count := self._decrypt(buffer)) and not self._ended:
            self._receive()
        return count

    def _decrypt(self, buffer: memoryview) -> int:
        if self._error is not None:
            raise self._error
        count = 0
        try:
            while count < len(buffer) and not self._ended:
                record = self._tls.read(len(buffer) - count, buffer[count:])
                count += record
                self._ended = not record  # the server has ended TLS
        except ssl.SSLWantReadError:  # nothing, or a part of a record
            pass
        except ssl.SSLEOFError:
            self._ended = True
        except ssl.SSLError as error:
            self._error = error
            if not count:
                raise
        return count

    def pending(self) -> bool:
        """Return whether unreceived bytes have arrived."""
        return bool(self._tls.pending() or self._incoming.pending)

    def sendall(self, data: bytes) -> None:
        """Send bytes.

        Raises:
            OSError: the connection is lost, or the server did not take them in time.
        """
        rest = memoryview(data)
        while rest:
            rest = rest[self._done(lambda: self._tls.write(rest)) :]  # noqa: B023 - it is called immediately
            self._flush()

    def _done(self, act: Callable[[], _T]) -> _T:
        """Perform an operation before which TLS may have to exchange messages."""
        while True:
            try:
                return act()
            except ssl.SSLWantReadError:
                self._receive()

    def _receive(self) -> None:
        self._flush()
        if count := self._sock.recv_into(self._encrypted):
            self._incoming.write(self._encrypted[:count])
        else:
            self._incoming.write_eof()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._sock.sendall(self._outgoing.read())

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return a buffered reader, for PyMySQL; ``mode`` is ``"rb"``."""
        if mode != "rb":
            raise ValueError(f"only 'rb' is possible, not {mode!r}")
        return io.BufferedReader(SocketReader(self, _out_of_time))

    def fileno(self) -> int:
        """Return the descriptor, for waiting."""
        return self._sock.fileno()

    def settimeout(self, timeout: float | None) -> None:
        """Set the seconds to wait in each call for the server; ``None`` forever."""
        self._sock.settimeout(timeout)

    def setsockopt(self, level: int, option: int, value: int) -> None:
        """Set an option of the socket."""
        self._sock.setsockopt(level, option, value)

    def getsockname(self) -> Any:
        """Return the socket's own address."""
        return self._sock.getsockname()

    def shutdown(self, how: int) -> None:
        """End the connection for a thread that waits for it; any thread may call this."""
        self._sock.shutdown(how)

    def close(self) -> None:
        """Close the connection, without a message of TLS."""
        self._sock.close()


Socket: TypeAlias = socket.socket | TlsSocket
"""A socket without TLS or with it."""


def _out_of_time(silent_s: float) -> None:
    raise TimeoutError(f"no answer for {silent_s:.0f} s")
