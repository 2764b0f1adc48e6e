"""A TCP proxy on the loopback interface whose connections can be cut, reset, frozen, lost, slowed down and refused.

It runs an event loop in its own thread. All methods may be called from any other thread, and return when the fault is
in effect.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
import socket
import struct
import threading
from collections.abc import Coroutine, Iterable
from typing import Any, Self

from rowtide_stack.ports import HOST, free_port

__all__ = ["Direction", "Link"]

_CHUNK = 65536
_SHARE = 0.05
"""The seconds for which a slow link sends at once."""
_RESET = struct.pack("ii", 1, 0)
"""The value of SO_LINGER with which a close sends RST instead of FIN."""


class Direction(enum.Enum):
    """The way that bytes go."""

    TO_SERVER = "to the server"
    TO_CLIENT = "to the client"


class Link:
    """The way from a client to a server. ``with`` opens and closes it.

    Args:
        host: the host of the server.
        port: the port of the server.

    Attributes:
        port: the port on which clients reach the server.
        cuts: the number of connections that `cut_after` has cut.
    """

    def __init__(self, host: str, port: int) -> None:
        self.port = free_port()
        self.cuts = 0
        self._target = (host, port)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._listener: socket.socket | None = None
        self._tasks = set[asyncio.Task[None]]()
        self._connections: set[_Connection] = set()
        self._flows = {way: asyncio.Event() for way in Direction}
        self._cut: tuple[Direction, int, bool] | None = None
        self._rate: float | None = None
        self._accept_delay = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        self.heal()
        return self

    def __exit__(self, *_: object) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut_after(self, count: int, way: Direction, *, reset: bool) -> None:
        """Cut the connection that carries the last of the next ``count`` bytes, after that byte.

        Args:
            count: the number of bytes, over all connections.
            way: the direction in which they are counted.
            reset: end the connection with RST instead of FIN.
        """
        self._do(self._set(cut=(way, count, reset)))

    def reset(self) -> None:
        """End all connections with RST."""
        self._do(self._reset())

    def freeze(self, *ways: Direction) -> None:
        """Hold back all bytes, also those of new connections, until `heal`."""
        self._do(self._set(frozen=ways))

    def lose(self, *ways: Direction) -> None:
        """Discard all further bytes of the present connections, and do not forward their end; new ones work.

        This is what remains of a connection after a router has forgotten it: `heal` does not bring it back.
        """
        self._do(self._lose(ways))

    def slow(self, rate: float) -> None:
        """Forward so many bytes per second in each direction of each connection, until `heal`."""
        self._do(self._set(rate=rate))

    def delay_accept(self, seconds: float) -> None:
        """Reset all connections; forward the bytes of new ones only after this time, until `heal`."""
        self._do(self._set(accept_delay=seconds))
        self.reset()

    def refuse(self) -> None:
        """Reset all connections and refuse new ones, until `heal`."""
        self._do(self._refuse())

    def redirect(self, host: str, port: int) -> None:
        """Reset all connections, and forward new ones to another server."""
        self._target = (host, port)
        self.reset()

    def heal(self) -> None:
        """End all faults. Lost connections stay lost."""
        self._do(self._heal())

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _set(
        self,
        cut: tuple[Direction, int, bool] | None = None,
        rate: float | None = None,
        accept_delay: float = 0.0,
        frozen: Iterable[Direction] = (),
    ) -> None:
        self._cut, self._rate, self._accept_delay = cut, rate, accept_delay
        for way, flows in self._flows.items():
            if way in frozen:
                flows.clear()
            else:
                flows.set()

    async def _heal(self) -> None:
        await self._set()
        if self._listener is None:
            self._listener = socket.create_server((HOST, self.port))
            self._listener.setblocking(False)
            self._start(self._accept(self._listener))

    async def _reset(self) -> None:
        for connection in list(self._connections):
            connection.end(reset=True)

    async def _lose(self, ways: Iterable[Direction]) -> None:
        for connection in self._connections:
            connection.lost.update(ways)

    async def _refuse(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            self._loop.remove_reader(listener)
            listener.close()
        await self._reset()

    async def _close(self) -> None:
        await self._refuse()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):  # `refuse` has closed it
            while True:
                client, _ = await self._loop.sock_accept(listener)
                self._start(self._serve(client))

    async def _serve(self, accepted: socket.socket) -> None:
        client, to_client = await asyncio.open_connection(sock=accepted)
        connection = _Connection()
        connection.add(Direction.TO_CLIENT, to_client)
        self._connections.add(connection)
        if self._listener is None:  # `refuse` came first
            connection.end(reset=True)
        try:
            await asyncio.sleep(self._accept_delay)
            server, to_server = await asyncio.open_connection(*self._target)
            connection.add(Direction.TO_SERVER, to_server)
            await asyncio.gather(
                self._forward(connection, client, Direction.TO_SERVER),
                self._forward(connection, server, Direction.TO_CLIENT),
            )
        except OSError:
            connection.end(reset=True)
        finally:
            self._connections.discard(connection)
            connection.end(reset=False)

    async def _forward(self, connection: _Connection, source: asyncio.StreamReader, way: Direction) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(_CHUNK):
                await self._flows[way].wait()
                if way not in connection.lost:
                    await self._send(connection, data, way)
        await self._flows[way].wait()
        if not connection.lost:
            connection.end(reset=False)

    async def _send(self, connection: _Connection, data: bytes, way: Direction) -> None:
        sink = connection.sinks[way]
        cut = self._cut
        if cut is not None and cut[0] is way:
            _, left, reset = cut
            if left <= len(data):
                self._cut = None
                self.cuts += 1
                sink.write(data[:left])
                await sink.drain()
                connection.end(reset=reset)
                return
            self._cut = (way, left - len(data), reset)
        while data:
            if sink.is_closing():  # a fault has ended the connection since the last part
                return
            part = data if self._rate is None else data[: max(1, int(self._rate * _SHARE))]
            sink.write(part)
            await sink.drain()
            data = data[len(part) :]
            if self._rate is not None:
                await asyncio.sleep(len(part) / self._rate)


class _Connection:
    """A client's connection and, after it, the one to the server."""

    def __init__(self) -> None:
        self.sinks: dict[Direction, asyncio.StreamWriter] = {}
        self.lost = set[Direction]()
        self._ended = False

    def add(self, way: Direction, sink: asyncio.StreamWriter) -> None:
        """Add a connection; it is closed at once if the other one has ended meanwhile."""
        sink.transport.set_write_buffer_limits(high=0)  # `drain` waits until the kernel has everything
        self.sinks[way] = sink
        if self._ended:
            _end(sink, reset=True)

    def end(self, *, reset: bool) -> None:
        """Close both connections."""
        self._ended = True
        for sink in self.sinks.values():
            _end(sink, reset=reset)


def _end(sink: asyncio.StreamWriter, *, reset: bool) -> None:
    if not reset:
        sink.close()
        return
    sock = sink.get_extra_info("socket")
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    sink.transport.abort()
