"""The base of TCP servers, whose connections are coroutines."""

import asyncio
import logging
import resource
import ssl
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import NamedTuple

__all__ = ["Address", "TcpServer"]

log = logging.getLogger(__name__)

_MOST_CONNECTIONS = 1000
_OTHER_FILES = 150
"""Files that the process needs for other purposes, with the connections that are accepted at the same time."""
_REPORT_S = 60.0
"""The least time between two log lines about too many connections, in seconds."""
_CLOSE_S = 5.0
"""How long a client may take to read the rest of its answer when its connection is closed."""


class Address(NamedTuple):
    """The address at which the server listens."""

    host: str
    port: int


class TcpServer(ABC):
    """A TCP server in an event loop. Each connection is a task, so a slow or silent client delays no other client.

    The number of connections is limited: to half of the files that the process may open, minus those that it needs
    itself. Beyond the limit, the oldest connection that is not admitted is closed; if all are admitted, the new one is
    refused.

    Args:
        tls: for TLS connections; ``None`` for plain text.
        line_limit: the longest line that ``StreamReader.readuntil`` and ``readline`` accept, in bytes.
        most: the limit of connections; ``None`` to derive it from the limit of open files.
    """

    def __init__(
        self, tls: ssl.SSLContext | None = None, line_limit: int = 1 << 16, *, most: int | None = None
    ) -> None:
        self._tls = tls
        self._line_limit = line_limit
        self._most = most or _connections_for(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._waiting: dict[asyncio.Task[None], asyncio.StreamWriter] = {}  # to be admitted, the oldest first
        self._report_at = 0.0

    @abstractmethod
    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client. Its connection is closed when this returns, or is cancelled by :meth:`close`."""

    def admit(self) -> None:
        """Count the client that the current task serves as admitted: it has logged in, or sent its request."""
        task = asyncio.current_task()
        if task is not None:
            self._waiting.pop(task, None)

    async def start(self, host: str, port: int) -> Address:
        """Listen.

        Args:
            host: the address, of IPv4 or IPv6; ``""`` for all addresses.
            port: the port; 0 for a free one.

        Returns:
            The address.

        Raises:
            OSError: the server cannot listen there.
        """
        self._server = await asyncio.start_server(
            self._accept, host or None, port, ssl=self._tls, limit=self._line_limit
        )
        found = self._server.sockets[0].getsockname()
        return Address(found[0], found[1])

    async def close(self) -> None:
        """Stop accepting connections, and close the open ones."""
        if self._server is not None:
            self._server.close()
        tasks = list(self._connections)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def connections(self) -> int:
        """The number of connected clients."""
        return len(self._connections)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= self._most and not self._make_place():
            writer.transport.abort()
            return
        # A separate task: for a coroutine, asyncio would log the CancelledError of each connection at a stop.
        task = asyncio.create_task(self._connection(reader, writer))
        self._connections.add(task)
        self._waiting[task] = writer
        task.add_done_callback(self._forget)

    def _make_place(self) -> bool:
        """Close the oldest connection that is not admitted. Returns whether there is one."""
        now = asyncio.get_running_loop().time()
        if now >= self._report_at:
            self._report_at = now + _REPORT_S
            log.warning(
                "there are %d connections, and no more are accepted: a new one replaces one that is not logged in. "
                "Raise the limit of open files (ulimit -n) if so many clients are expected",
                len(self._connections),
            )
        if not self._waiting:
            return False
        task = next(iter(self._waiting))
        self._waiting.pop(task).transport.abort()
        self._connections.discard(task)
        task.cancel()
        return True

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._connections.discard(task)
        self._waiting.pop(task, None)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self.serve(reader, writer)
        finally:
            await _end(writer)


async def _end(writer: asyncio.StreamWriter) -> None:
    """Close a connection, and drop unsent data that its client does not read soon."""
    writer.close()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_CLOSE_S):
            await writer.wait_closed()
    writer.transport.abort()


def _connections_for(files: int) -> int:
    """Return the limit of connections for a limit of open files."""
    if files == resource.RLIM_INFINITY:
        return _MOST_CONNECTIONS
    return max(4, min(_MOST_CONNECTIONS, (files - _OTHER_FILES) // 2))
