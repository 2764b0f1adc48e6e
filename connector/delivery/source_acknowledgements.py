"""Acknowledges transactions to the server when Kafka has their records (``rowtide.semi.sync``)."""

import threading
from collections import deque
from collections.abc import Callable

from rowtide.connector.delivery.batch_ring import INIT_SEQUENCE


class SourceAcknowledgements:
    """Matches the positions for which the server waits with the batches before them.

    The reader adds positions, and the delivery thread reports delivered batches.
    """

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()
        self._delivered = INIT_SEQUENCE

    def add(self, sequence: int, acknowledge: Callable[[], None]) -> None:
        """Call ``acknowledge``, which must not block, as soon as all batches up to ``sequence`` are delivered."""
        with self._news:
            self._waiting.append((sequence, acknowledge))
        self._acknowledge()

    def delivered(self, sequence: int) -> None:
        """Note that all batches up to ``sequence`` are delivered."""
        with self._news:
            self._delivered = max(self._delivered, sequence)
            self._news.notify_all()
        self._acknowledge()

    def wait(self, sequence: int, timeout: float) -> bool:
        """Wait until all batches up to ``sequence`` are delivered, and return whether they are."""
        with self._news:
            return self._news.wait_for(lambda: self._delivered >= sequence, timeout)

    def forget(self) -> None:
        """Drop the unacknowledged positions, because their stream has ended."""
        with self._news:
            self._waiting.clear()

    def _acknowledge(self) -> None:
        last: Callable[[], None] | None = None
        with self._news:
            while self._waiting and self._waiting[0][0] <= self._delivered:
                last = self._waiting.popleft()[1]
            if last is not None:  # it includes those before it
                last()  # with the lock: a later one of another thread must not come first
