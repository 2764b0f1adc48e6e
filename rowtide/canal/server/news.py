"""Edge: lets the coroutines of an event loop wait for entries that another thread puts into a store."""

import asyncio
import contextlib
from typing import Any

from rowtide.connector.delivery.event_store import Store


class News:
    """News of one store for one event loop. To be made, and used, in the loop's thread.

    Args:
        store: the store.
    """

    def __init__(self, store: Store[Any]) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: set[asyncio.Future[None]] = set()
        store.listen(self._come)

    def next(self) -> "asyncio.Future[None]":
        """A future that is done when something comes after this call. Look at the store after it, then wait."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.add(future)
        return future

    def forget(self, future: "asyncio.Future[None]") -> None:
        """Give up a future that nobody waits for any more."""
        self._waiting.discard(future)

    def _come(self) -> None:  # in the thread that puts, so only if somebody waits
        if self._waiting:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)
