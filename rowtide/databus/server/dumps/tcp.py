"""Serves dumps over TCP.

::

    client                        server
    DB.Data20260102T...Json ────►
    END                     ────►            only clients that want the end marker
                            ◄──── PONG
                            ◄──── {"Table":{...},"Action":"insert","Rows":[...]}
                            ◄──── ...
                            ◄──── {"End":true,"Rows":240000,"Offset":17}

Clients of the original, which do not send ``END``, get one row per line and no end marker. A dump that does not
exist is answered with ``ERROR`` and the reason, instead of ``PONG`` alone, which would be an empty snapshot.

Each connection is a coroutine that holds at most a chunk of a dump. A client that reads slowly delays no other client.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress

from rowtide.databus.server.dumps.folder import DumpFolder, StoredDump
from rowtide.tcp_server import TcpServer

log = logging.getLogger(__name__)

_LONGEST_LINE = 1024
"""The longest line of a request, in bytes."""
_REQUEST_S = 30.0
"""How long a client may take for its request."""
_END_S = 1.0
"""The longest wait for ``END`` before the rows."""
_LATE_END_S = 10.0
"""The longest wait for it after them; the original keeps its connection for this time."""
_STALLED_S = 600.0
"""How long a client may read nothing."""


class DumpServer(TcpServer):
    """A TCP server for dumps. When the server is closed, clients that want the end marker notice that it is missing.

    Args:
        folder: of the dumps.
    """

    def __init__(self, folder: DumpFolder) -> None:
        super().__init__(line_limit=_LONGEST_LINE)
        self._folder = folder

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client."""
        client = _text(writer.get_extra_info("peername"))
        try:
            await _Connection(self._folder, reader, writer, client).serve(self.admit)
        except TimeoutError:
            log.warning("dump client %s sends or reads nothing; it is disconnected", client)
        except OSError as error:
            log.info("dump client %s: %s", client, error)


class _Connection:
    """One client."""

    def __init__(
        self, folder: DumpFolder, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client: str
    ) -> None:
        self._folder = folder
        self._reader = reader
        self._writer = writer
        self._client = client
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    async def serve(self, admit: Callable[[], None]) -> None:
        """Answer the request.

        Args:
            admit: called when the client has sent its request.

        Raises:
            TimeoutError: the client sends no request, or does not read the answer.
            OSError: the client has disconnected.
        """
        async with asyncio.timeout(_REQUEST_S):
            request = await self._line()
        if not request.endswith(b"\n"):
            return  # gone before it has sent a name
        admit()
        name = request.rstrip(b"\r\n").decode(errors="replace")
        try:
            dump = await asyncio.to_thread(self._folder.open, name)
            reason = "there is no such dump on this server. Read its present name from ZooKeeper, and start again"
        except (OSError, ValueError) as error:
            dump, reason = None, str(error)
        if dump is None:
            log.warning("dump client %s requests dump %r: %s", self._client, name[:200], reason)
            await self._send(f"ERROR {reason}\n".encode())
            return
        try:
            await self._send(b"PONG\n")
            await self._dump(name, dump)
        finally:
            dump.close()

    async def _dump(self, name: str, dump: StoredDump) -> None:
        marked = await self._end_wanted(_END_S)
        read = dump.read if marked else dump.read_single
        while chunk := await asyncio.to_thread(read):
            await self._send(chunk)
        if marked or await self._end_wanted(_LATE_END_S):
            await self._send(dump.end_marker)
        log.info("dump client %s: dump %s was sent, %d rows", self._client, name, dump.rows)

    async def _end_wanted(self, seconds: float) -> bool:
        """Return whether the client sends ``END`` in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await self._line() == b"END\n"
        return False

    async def _line(self) -> bytes:
        try:
            return await self._reader.readline()
        except ValueError as error:
            raise ConnectionAbortedError(f"a line of its request is longer than {_LONGEST_LINE} bytes") from error

    async def _send(self, data: bytes) -> None:
        self._writer.write(data)
        async with asyncio.timeout(_STALLED_S):
            await self._writer.drain()


def _text(address: object) -> str:
    return f"{address[0]}:{address[1]}" if isinstance(address, tuple) else "without an address"
