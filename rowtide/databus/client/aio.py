"""The databus client for asyncio, which waits in a thread."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Self

from rowtide.databus.client.client import Client
from rowtide.databus.client.settings import ClientSettings
from rowtide.databus.errors import Closed
from rowtide.databus.events import Event


class AsyncClient:
    """Reads a databus topic; see :class:`Client`. Create one with :meth:`open`; only one task at a time may use it."""

    def __init__(self, client: Client, thread: ThreadPoolExecutor) -> None:
        self._client = client
        self._thread = thread
        self._next: asyncio.Future[Event] | None = None

    @classmethod
    async def open(cls, settings: ClientSettings) -> Self:
        """Create a client.

        Raises:
            DatabusError: it cannot begin; the message says what to do.
        """
        thread = ThreadPoolExecutor(1, "databus")
        try:
            client = await asyncio.get_running_loop().run_in_executor(thread, Client, settings)
        except BaseException:
            thread.shutdown(wait=False)
            raise
        return cls(client, thread)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.close()

    async def get_event(self, timeout: float | None = None) -> Event:
        """Return the next event. A call that is cancelled or times out loses no event: the next call returns it.

        Raises:
            TimeoutError: no event arrives in time.
            Closed: the client is closed.
            DatabusError: the dump or the topic cannot be read.
        """
        if self._next is None:
            self._next = asyncio.get_running_loop().run_in_executor(self._thread, self._client.get_event)
        await asyncio.wait([self._next], timeout=timeout)
        if not self._next.done():
            raise TimeoutError(f"no further event arrived within {timeout} s")
        found, self._next = self._next, None
        return found.result()

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yield events until the client is closed."""
        with suppress(Closed):
            while True:
                yield await self.get_event()

    async def ack(self, event: Event) -> None:
        """Save that an event is done, and all events before it.

        Raises:
            OffsetFileError: the offset file cannot be written.
        """
        await asyncio.to_thread(self._client.ack, event)

    async def close(self) -> None:
        """Stop."""
        if self._next is not None:
            self._next.add_done_callback(_ignored)
        await asyncio.to_thread(self._client.close)
        self._thread.shutdown(wait=False)


def _ignored(found: "asyncio.Future[Event]") -> None:
    """Consume the result of a call for which no caller waits any longer."""
    if not found.cancelled():
        found.exception()
