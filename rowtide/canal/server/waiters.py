"""Coroutines that wait in turn for entries that another thread puts into a store."""

import asyncio
import contextlib
from collections import OrderedDict
from itertools import count

from rowtide.canal.server.destination import Destination


class Waiter:
    """A request that waits for a full batch.

    Args:
        size: its fetch size.
        number: its place in the order of the requests.

    Attributes:
        served: set when a batch is full. Another client may have taken it since.
    """

    def __init__(self, size: int, number: int) -> None:
        self.size = size
        self.number = number
        self.served: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Waiters:
    """The requests that wait at a destination, for one event loop. Create and use it in the loop's thread.

    All share one cursor, so new entries wake one request: the first whose batch is full. When it has taken its batch,
    or has ended, :meth:`wake` serves the next one. The cost does not depend on the number of waiting requests.

    Args:
        destination: the destination.
    """

    def __init__(self, destination: Destination) -> None:
        self._destination = destination
        self._loop = asyncio.get_running_loop()
        self._numbers = count()
        self._queues: dict[int, OrderedDict[int, Waiter]] = {}  # by fetch size and number
        self._waking = False
        destination.store.listen(self._come)

    def enter(self, size: int, former: Waiter | None = None) -> Waiter:
        """Wait for a full batch, after all others.

        Check the destination afterwards, then wait for ``served``, and call :meth:`leave` at the end.

        Args:
            size: the fetch size.
            former: a waiter that was served without success; the new one has its place.
        """
        waiter = Waiter(size, next(self._numbers) if former is None else former.number)
        queue = self._queues.setdefault(size, OrderedDict())
        queue[waiter.number] = waiter
        if former is not None:
            queue.move_to_end(waiter.number, last=False)
        return waiter

    def leave(self, waiter: Waiter) -> None:
        """Stop waiting."""
        queue = self._queues.get(waiter.size, OrderedDict())
        if queue.pop(waiter.number, None) is not None and not queue:
            del self._queues[waiter.size]

    def wake(self) -> None:
        """Serve the first one whose batch is full, if there is one."""
        self._waking = False
        found: list[Waiter] = []
        for size in sorted(self._queues):
            if not self._destination.full(size):
                break  # nor is any larger one
            found.append(next(iter(self._queues[size].values())))
        if found:
            first = min(found, key=lambda waiter: waiter.number)
            self.leave(first)
            if not first.served.done():
                first.served.set_result(None)

    def _come(self) -> None:  # in the thread that puts, so only if a client waits
        if self._queues and not self._waking:
            self._waking = True
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self.wake)
