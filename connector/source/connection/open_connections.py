"""The open connections of a run, which another thread can interrupt."""

import threading
from contextvars import ContextVar, Token
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self
from weakref import WeakSet

from rowtide.connector.config.model.database import DatabaseConfig

_current: ContextVar["OpenConnections | None"] = ContextVar("open_connections", default=None)


@dataclass(frozen=True, slots=True)
class ServerSession:
    """The session of a connection on its server.

    Attributes:
        config: address and account.
        id: the id in ``SHOW PROCESSLIST``.
        port: the port of this host.
    """

    config: DatabaseConfig
    id: int
    port: int


class Interruptible(Protocol):
    """A connection that another thread can interrupt."""

    def interrupt(self) -> ServerSession | None:
        """Make the thread that uses the connection fail as if the connection were lost.

        Returns:
            The session, which the server may not have ended yet; ``None`` if the connection was closed.
        """


class ConnectionsInterrupted(Exception):
    """A connection is opened after :meth:`OpenConnections.interrupt`."""


class OpenConnections:
    """The connections that are opened in a ``with`` block, by its thread and by threads that get its context.

    A query can be silent for minutes, for example while the server sorts or waits for a lock. The thread that waits for
    it cannot notice that it should stop, so another one interrupts it.

    Attributes:
        interrupted: whether :meth:`interrupt` was called.
    """

    def __init__(self) -> None:
        self.interrupted = False
        self._open: WeakSet[Interruptible] = WeakSet()
        self._lock = threading.Lock()
        self._token: Token[OpenConnections | None] | None = None

    def __enter__(self) -> Self:
        self._token = _current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._token is not None:
            _current.reset(self._token)

    def add(self, connection: Interruptible) -> None:
        """Add a connection, unless it is already added.

        Raises:
            ConnectionsInterrupted: they were interrupted.
        """
        with self._lock:
            if self.interrupted:
                raise ConnectionsInterrupted
            self._open.add(connection)

    def interrupt(self) -> list[ServerSession]:
        """Interrupt all connections, refuse new ones, and return their sessions."""
        with self._lock:
            self.interrupted = True
            found = list(self._open)
            self._open.clear()
        return [session for connection in found if (session := connection.interrupt()) is not None]


def register(connection: Interruptible) -> None:
    """Add a connection to those of the block in which the caller runs, if it runs in one.

    Raises:
        ConnectionsInterrupted: they were interrupted.
    """
    if (connections := _current.get()) is not None:
        connections.add(connection)
