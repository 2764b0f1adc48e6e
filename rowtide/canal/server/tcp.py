"""Serves destinations over TCP.

Each connection is a coroutine that holds at most one request and one batch. A client that does not read its answer, or
sends nothing, delays no other client.
"""

import asyncio
import contextlib
import logging
import secrets
import ssl
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any
from weakref import WeakKeyDictionary

from rowtide.canal.server.authentication import Credentials
from rowtide.canal.server.destination import DEFAULT_FETCH_SIZE, Destination
from rowtide.canal.server.packets import FrameMemory, Get, Request, Subscription, Unsubscription
from rowtide.canal.server.session import SEED_BYTES, Answer, CanalSession, SessionClosed, perform
from rowtide.canal.server.waiters import Waiter, Waiters
from rowtide.tcp_server import TcpServer

log = logging.getLogger(__name__)

_READ_BYTES = 1 << 16
_LOGIN_S = 30.0
"""How long a client may take to authenticate."""


class CanalServer(TcpServer):
    """A TCP server for Canal's clients. Unacknowledged entries stay in the store when the server is closed.

    Args:
        destinations: by their names; they may come and go while the server runs.
        credentials: which clients are admitted.
        tls: for TLS connections, which Canal itself does not have; ``None`` for plain text.
        most: the limit of connections; ``None`` to derive it from the limit of open files.
    """

    def __init__(
        self,
        destinations: Mapping[str, Destination],
        credentials: Credentials,
        tls: ssl.SSLContext | None = None,
        most: int | None = None,
    ) -> None:
        super().__init__(tls, most=most)
        self._destinations = destinations
        self._credentials = credentials
        self._memory = FrameMemory()
        self._waiters: WeakKeyDictionary[Destination, Waiters] = WeakKeyDictionary()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client."""
        peer, own = _text(writer.get_extra_info("peername")), _text(writer.get_extra_info("sockname"))
        channel = f"[id: 0x{secrets.token_hex(4)}, {peer} => {own}]"
        session = CanalSession(self._credentials, secrets.token_bytes(SEED_BYTES), channel, self._memory)
        connection = _Connection(self._destinations, self._waiters, session, channel, reader, writer)
        try:
            with contextlib.suppress(OSError):  # the client has gone; it rolls back when it connects again
                await connection.serve(self.admit)
        finally:
            session.close()


class _Connection:
    """One client."""

    def __init__(
        self,
        destinations: Mapping[str, Destination],
        waiters: MutableMapping[Destination, Waiters],
        session: CanalSession,
        channel: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._destinations = destinations
        self._waiters = waiters
        self._reader = reader
        self._writer = writer
        self._channel = channel
        self._session = session
        self._received: asyncio.Task[bytes] | None = None

    async def serve(self, admit: Callable[[], None]) -> None:
        """Serve the client.

        Args:
            admit: called when the client has logged in.

        Raises:
            OSError: the client has disconnected.
        """
        await self._send(self._session.greeting())
        timeout = _LOGIN_S
        try:
            while data := await self._receive(timeout):
                for found in self._session.receive(data):
                    if isinstance(found, SessionClosed):
                        self._report(found)
                        return
                    answer = found if isinstance(found, Answer) else await self._perform(found)
                    if answer is not None:
                        await self._send(answer)
                    timeout = self._session.read_timeout_s
                if self._session.admitted:
                    admit()
        except TimeoutError:
            log.info("Canal client %s sent nothing for %.0f s; its connection is closed", self._channel, timeout)
        finally:
            if self._received is not None:
                self._received.cancel()

    def _report(self, closed: SessionClosed) -> None:
        if closed is SessionClosed.MALFORMED:
            log.warning(
                "Canal client %s sent bytes that are not a packet, or too many; its connection is closed",
                self._channel,
            )
        else:
            log.warning("Canal client %s is not admitted: wrong user or password", self._channel)

    async def _receive(self, timeout: float) -> bytes:
        """Return the next bytes, or no bytes at the end of the connection.

        Raises:
            TimeoutError: nothing came.
        """
        task = self._reading()
        done, _ = await asyncio.wait({task}, timeout=timeout)
        if not done:
            raise TimeoutError
        self._received = None
        return task.result()

    def _reading(self) -> asyncio.Task[bytes]:
        if self._received is None:
            self._received = asyncio.ensure_future(self._reader.read(_READ_BYTES))
        return self._received

    async def _send(self, answer: Answer) -> None:
        self._writer.write(answer)
        async with asyncio.timeout(self._session.read_timeout_s):
            await self._writer.drain()

    async def _perform(self, request: Request) -> Answer | None:
        if isinstance(request, Get) and request.timeout_s >= 0:
            return await self._get(request)
        if isinstance(request, Subscription | Unsubscription):  # they wait for their storage
            return await asyncio.to_thread(perform, request, self._session, self._destinations)
        return perform(request, self._session, self._destinations)

    async def _get(self, request: Get) -> Answer | None:
        """Wait for a full batch, the time-out, or the end of the connection, unless the request must fail."""
        destination = self._destinations.get(request.destination)
        if destination is None or request.fetch_size < 0 or not destination.has_subscriber(request.client_id):
            return perform(request, self._session, self._destinations)
        waiters = self._waiters.get(destination)
        if waiters is None:
            waiters = self._waiters[destination] = Waiters(destination)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(request.timeout_s or None):
                    await self._wait(request.fetch_size or DEFAULT_FETCH_SIZE, destination, waiters)
            return perform(request, self._session, self._destinations)
        finally:
            waiters.wake()  # what is left may be a full batch for another one

    async def _wait(self, size: int, destination: Destination, waiters: Waiters) -> None:
        waiter: Waiter | None = None
        while True:
            waiter = waiters.enter(size, waiter)
            try:
                if destination.full(size):
                    return
                await self._until(waiter.served)
            finally:
                waiters.leave(waiter)

    async def _until(self, served: "asyncio.Future[None]") -> None:
        """Wait for a full batch, and notice if the client disconnects. Anything else that it sends is read later."""
        reading = self._reading()
        either: set[asyncio.Future[Any]] = {served, reading}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if reading.done():
            if not reading.result():
                raise ConnectionResetError("the client has closed the connection")
            await served


def _text(address: object) -> str:
    return f"/{address[0]}:{address[1]}" if isinstance(address, tuple) else "/"
