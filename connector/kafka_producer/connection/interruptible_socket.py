"""A socket with time limits that another thread can interrupt, with or without TLS."""

import contextlib
import itertools
import os
import re
import select
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from rowtide.connector.kafka_producer.connection.errors import ConnectionFailed, Interrupted
from rowtide.connector.kafka_producer.connection.settings import Address, ConnectionSettings
from rowtide.connector.kafka_producer.wire.primitives import Bytes

_FAMILIES = {"any": socket.AF_UNSPEC, "v4": socket.AF_INET, "v6": socket.AF_INET6}
_MOST_PARTS = 64
"""Parts that one system call sends; its limit (IOV_MAX) is 1024 on Linux."""
_TLS_RECORD = 1 << 14
"""The most bytes in a record of TLS. Parts that fit into one are joined: each would have its own record."""

_CERTIFICATE_ALERT = re.compile("_ALERT_.*(CERTIFICATE|UNKNOWN_CA)")
"""Alerts of a broker about the client's certificate. Java sends that of a bad one if there is none."""

_T = TypeVar("_T")


class _Failures:
    """Reports errors of the system as :class:`ConnectionFailed`. A class, because it is entered for each request.

    Args:
        what: the operation that has failed.
    """

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, OSError):  # those of TLS and time-outs are among them
            raise ConnectionFailed(f"{self._what}: {_reason(error)}") from None


_LOST = _Failures("the connection was lost")


class InterruptibleSocket:
    """Connects, sends and receives until a deadline, or until another thread calls :meth:`interrupt`.

    Only looking up a host name cannot be interrupted; the system's resolver has its own limit.

    Args:
        settings: the options of the socket.
        clock: seconds on the same clock as the deadlines.

    Raises:
        ConnectionFailed: the process has too many files open.
    """

    def __init__(self, settings: ConnectionSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._clock = clock
        self._sock: socket.socket | None = None
        self._poll = select.poll()
        self._awaited = 0
        self._interrupted = False
        with _Failures("no socket can be opened"):
            self._woken, self._waker = socket.socketpair()
        self._waker.setblocking(False)

    def connect(self, address: Address, deadline: float) -> None:
        """Connect to one of the host's addresses, which share the time.

        Raises:
            ConnectionFailed: none can be reached in time.
            Interrupted: :meth:`interrupt` was called.
        """
        try:
            family = _FAMILIES[self._settings.family]
            found = socket.getaddrinfo(address.host, address.port, family, socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:  # of names that are too long
            raise ConnectionFailed(f"its host name cannot be looked up: {error}") from None
        problem = ConnectionFailed("its host name has no address")
        for at, (kind, _, _, _, place) in enumerate(found):
            now = self._clock()
            try:
                return self._connect(kind, place, now + (deadline - now) / (len(found) - at))
            except ConnectionFailed as error:
                problem = error
        raise problem

    def _connect(self, family: int, place: Any, deadline: float) -> None:
        self._close_socket()
        with _Failures("it cannot be reached"):
            sock = self._sock = socket.socket(family, socket.SOCK_STREAM)
            sock.setblocking(False)
            self._poll = select.poll()
            self._poll.register(self._woken, select.POLLIN)
            self._poll.register(sock, select.POLLOUT)
            self._awaited = select.POLLOUT
            self._set_options(sock)
            with contextlib.suppress(BlockingIOError):
                sock.connect(place)
            self._wait(select.POLLOUT, deadline)
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise OSError(code, os.strerror(code))

    def _set_options(self, sock: socket.socket) -> None:
        settings = self._settings
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, settings.no_delay)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, settings.keep_alive)
        for option, size in ((socket.SO_SNDBUF, settings.send_buffer), (socket.SO_RCVBUF, settings.receive_buffer)):
            if size:
                sock.setsockopt(socket.SOL_SOCKET, option, size)

    def encrypt(self, context: ssl.SSLContext, host: str, deadline: float) -> None:
        """Begin TLS.

        Raises:
            ConnectionFailed: the broker has no TLS, or its certificate is not trusted.
            Interrupted: :meth:`interrupt` was called.
        """
        with _Failures("the TLS handshake failed (is security.protocol that of the broker's listener?)"):
            sock = context.wrap_socket(self._open(), server_hostname=host, do_handshake_on_connect=False)
            self._sock = sock
            try:
                self._done(sock.do_handshake, select.POLLIN, deadline)
            except ssl.SSLCertVerificationError as error:
                raise ConnectionFailed(
                    f"its certificate cannot be verified: {error.verify_message} (see ssl.ca.location, and "
                    "ssl.endpoint.identification.algorithm for the name of the host)"
                ) from None

    def send(self, parts: Sequence[Bytes], deadline: float) -> None:
        """Send all parts, in order, without copying them.

        Raises:
            ConnectionFailed: the connection is lost, or the broker did not take them in time.
            Interrupted: :meth:`interrupt` was called.
        """
        sock = self._open()
        if isinstance(sock, ssl.SSLSocket) and sum(map(len, parts)) <= _TLS_RECORD:
            parts = (b"".join(parts),)
        waiting = deque(filter(len, parts))
        with _LOST:
            while waiting:
                sent = self._done(lambda: self._send_some(sock, waiting), select.POLLOUT, deadline)
                while waiting and sent >= len(waiting[0]):
                    sent -= len(waiting.popleft())
                if sent:
                    waiting[0] = memoryview(waiting[0])[sent:]

    def wait(self, deadline: float) -> None:
        """Wait until there is something to receive, which saves an unsuccessful attempt.

        Raises:
            ConnectionFailed: nothing arrived in time.
            Interrupted: :meth:`interrupt` was called.
        """
        if not self._is_pending():
            self._wait(select.POLLIN, deadline)

    def receive_into(self, buffer: memoryview, deadline: float) -> int:
        """Receive bytes, at least one, and return their number.

        Raises:
            ConnectionFailed: the connection is lost, or nothing arrived in time.
            Interrupted: :meth:`interrupt` was called.
        """
        sock = self._open()
        with _LOST:
            count = self._done(lambda: sock.recv_into(buffer), select.POLLIN, deadline)
        if count == 0:
            raise ConnectionFailed("it closed the connection")
        return count

    def is_quiet(self) -> bool:
        """Return whether the connection is open and nothing was received, as is expected between two requests.

        It takes one system call. Received bytes count as the end of the connection, because they do not answer a
        request.
        """
        if self._sock is None:
            return False
        if not self._is_pending() and not self._polled(select.POLLIN, 0):
            return True
        try:
            self._sock.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return True
        except OSError:
            return False
        return False

    def interrupt(self) -> None:
        """Make the call in another thread, and every later one, raise ``Interrupted``; any thread may call this."""
        self._interrupted = True
        with contextlib.suppress(OSError):  # closed, or full, so that it wakes all the same
            self._waker.send(b"\0")

    def close(self) -> None:
        """Close the connection; only the thread that uses the socket may call this."""
        self._close_socket()
        self._woken.close()
        self._waker.close()

    def _close_socket(self) -> None:
        if self._sock is not None:
            self._sock.close()
            self._sock = None

    def _open(self) -> socket.socket:
        if self._sock is None:
            raise ConnectionFailed("it is not connected")
        return self._sock

    def _is_pending(self) -> bool:
        """Return whether there are decrypted bytes that were not taken yet."""
        return isinstance(self._sock, ssl.SSLSocket) and self._sock.pending() > 0

    def _send_some(self, sock: socket.socket, parts: deque[Bytes]) -> int:
        if isinstance(sock, ssl.SSLSocket):
            return sock.send(parts[0])
        return sock.sendmsg(list(itertools.islice(parts, _MOST_PARTS)))

    def _done(self, act: Callable[[], _T], ready: int, deadline: float) -> _T:
        """Perform an operation as soon as the socket is ready for it; TLS may have to wait for the other direction."""
        while True:
            if self._interrupted:
                raise Interrupted
            try:
                return act()
            except ssl.SSLWantReadError:
                self._wait(select.POLLIN, deadline)
            except ssl.SSLWantWriteError:
                self._wait(select.POLLOUT, deadline)
            except BlockingIOError:
                self._wait(ready, deadline)

    def _wait(self, ready: int, deadline: float) -> None:
        """Wait until the socket is ready."""
        found = self._polled(ready, max(0, deadline - self._clock()) * 1000)
        if self._interrupted:
            raise Interrupted
        if not found:
            raise ConnectionFailed("it did not respond in time")

    def _polled(self, ready: int, timeout_ms: float) -> list[tuple[int, int]]:
        """Return the sockets that are ready, or that end the wait; none after the time-out."""
        if ready != self._awaited:
            self._poll.modify(self._open(), ready)
            self._awaited = ready
        return self._poll.poll(timeout_ms)


def _reason(error: OSError) -> str:
    reason = getattr(error, "reason", None) or ""  # OpenSSL's name, such as TLSV13_ALERT_CERTIFICATE_REQUIRED
    if isinstance(error, ssl.SSLError) and _CERTIFICATE_ALERT.search(reason):
        return f"it requires a client certificate, or refuses the one it got: see ssl.keystore.location ({reason})"
    return error.strerror or str(error)
