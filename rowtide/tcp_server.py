"""Edge: the base of TCP servers, whose connections are coroutines."""

import asyncio
import ssl
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import NamedTuple

__all__ = ["Address", "TcpServer"]

_CLOSE_S = 5.0
"""How long a client may take to read the rest of its answer when its connection is closed."""


class Address(NamedTuple):
    """Where the server listens."""

    host: str
    port: int


class TcpServer(ABC):
    """A TCP server in an event loop. Each connection is a task, so a client that is slow or silent holds up nobody.

    Args:
        tls: for TLS connections; ``None`` for plain text.
        line_limit: the longest line that ``StreamReader.readuntil`` and ``readline`` accept, in bytes.
    """

    def __init__(self, tls: ssl.SSLContext | None = None, line_limit: int = 1 << 16) -> None:
        self._tls = tls
        self._line_limit = line_limit
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @abstractmethod
    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client. Its connection is closed when this returns, or is cancelled by :meth:`close`."""

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
        """Accept no more connections, and close those that are open."""
        if self._server is not None:
            self._server.close()
        tasks = list(self._connections)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._connections)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A task of our own: if this were a coroutine, asyncio would log the CancelledError of each one at a stop.
        task = asyncio.create_task(self._connection(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self.serve(reader, writer)
        finally:
            await _end(writer)


async def _end(writer: asyncio.StreamWriter) -> None:
    """Close a connection; what its client does not read soon is dropped."""
    writer.close()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_CLOSE_S):
            await writer.wait_closed()
    writer.transport.abort()
