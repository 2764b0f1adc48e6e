"""Pauses between the chunks that all connections together read from a server."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock


class Pace:
    """Spreads the reading of chunks, so that it takes only a part of the time.

    Args:
        part: the part of the time, above 0; 1 for no pauses. Chunks that are read at the same time each count.
        clock: a monotonic clock, in seconds.
        sleep: waits for some seconds.
    """

    def __init__(
        self, part: float, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._part, self._clock, self._sleep = part, clock, sleep
        self._free = 0.0
        self._lock = Lock()

    @contextmanager
    def chunk(self) -> Iterator[None]:
        """Wait until a chunk may be read, and measure the time to read it."""
        if self._part >= 1:
            yield
            return
        while (wait := self._free - self._clock()) > 0:
            self._sleep(wait)
        begun = self._clock()
        try:
            yield
        finally:
            with self._lock:
                self._free = max(self._free, begun) + (self._clock() - begun) / self._part
