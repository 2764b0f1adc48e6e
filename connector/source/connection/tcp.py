"""Opens a TCP connection; another thread can end the wait for a name or a host that does not answer."""

import contextlib
import os
import select
import socket
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeAlias

_Address: TypeAlias = tuple[Any, ...]
"""An item of the result of ``socket.getaddrinfo``."""


def open_tcp(host: str, port: int, timeout: float, waiting: Callable[[socket.socket], None]) -> socket.socket:
    """Connect to one of a host's addresses, like ``socket.create_connection``; the socket has no time limit then.

    Args:
        host: name or address.
        port: the port.
        timeout: seconds for each address.
        waiting: called before each wait, with a socket: its ``shutdown`` in another thread ends the wait. An error that
            it raises ends the attempt.

    Raises:
        OSError: the host is unknown, or no address can be reached.
    """
    failure = OSError(f"{host} has no address")
    for family, kind, protocol, _, place in _addresses(host, port, waiting):
        with contextlib.ExitStack() as unless_connected:
            try:
                sock = unless_connected.enter_context(socket.socket(family, kind, protocol))
                sock.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    sock.connect(place)
                waiting(sock)
                _await(sock, timeout)
            except OSError as error:
                failure = error
            else:
                unless_connected.pop_all()
                sock.setblocking(True)
                return sock
    raise failure


def _addresses(host: str, port: int, waiting: Callable[[socket.socket], None]) -> Sequence[_Address]:
    """Look up a host.

    The system's resolver has its own time limit, and cannot be interrupted, so it is called in another thread. Its end
    of a pair of sockets is closed when it is done.
    """
    found = Future[Sequence[_Address]]()
    ours, theirs = socket.socketpair()

    def look_up() -> None:
        with theirs:
            try:
                found.set_result(socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM))
            except (OSError, UnicodeError) as error:
                found.set_exception(error)

    with ours:
        threading.Thread(target=look_up, name="look-up", daemon=True).start()
        waiting(ours)
        poll = select.poll()
        poll.register(ours, select.POLLIN)
        poll.poll()
    if not found.done():
        raise ConnectionAbortedError("resolving its name was interrupted")
    try:
        return found.result()
    except UnicodeError as error:  # a part of the name is empty, or longer than 63 characters
        raise OSError(f"{host} is not a host name: {error}") from error


def _await(sock: socket.socket, timeout: float) -> None:
    """Wait until the socket is connected."""
    poll = select.poll()
    poll.register(sock, select.POLLOUT)
    if not poll.poll(timeout * 1000):
        raise TimeoutError("timed out")
    code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        raise OSError(code, os.strerror(code))
