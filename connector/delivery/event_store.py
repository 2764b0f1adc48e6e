"""The event store: what the reader thread has decoded and the delivery thread has not finished yet.

An edge: threads meet here. The reader puts, the delivery thread gets, acknowledges or rolls back. Bounded are the
messages that wait to be taken (``max.queue.size``, as in Debezium) and the bytes of all that is held, what a rollback
may bring back included (``max.queue.size.in.bytes``); so a slow Kafka slows the reader down and memory does not grow.
One lock is taken per call, never per row. The ring itself is pure, see ``ring``.

``quiet`` exists because of Python's global lock: a Kafka client that takes the lock once per delivery report loses it
to a busy reader each time and waits for up to 5 ms to have it back. For the short time in which reports are served the
reader is held at its next ``put``; measured on 2 cores this is the difference between 6 000 and 130 000 messages/s.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rowtide.connector.delivery.ring import BatchRing
from rowtide.connector.errors import ConnectorError
from rowtide.connector.records.batch import Batch

DEFAULT_MAX_EVENTS = 8192
"""Debezium's default of ``max.queue.size``."""

DEFAULT_MAX_BYTES = 64 * 1024 * 1024
"""The limit if ``max.queue.size.in.bytes`` is 0: Debezium then has none, and a table of large rows may exhaust it."""

_SLOTS_PER_EVENT = 8
"""How many batches are held for each message that may wait, for those of an open transaction."""

_MAX_SLOTS = 1 << 20
_HALF = 0.5


class StoreClosed(ConnectorError):
    """The store takes no more batches: the connector is stopping, or delivery has failed (then it is the cause)."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What one ``get`` gave out.

    Attributes:
        batches: in the order of the binlog; empty if the time was over or the store is drained.
        sequence: what to acknowledge once all of them are delivered.
    """

    batches: Sequence[Batch]
    sequence: int


@dataclass(frozen=True, slots=True)
class StoreUse:
    """How full the store is, for metrics: Debezium's QueueTotalCapacity, CurrentQueueSizeInBytes and so on.

    Attributes:
        events: messages that wait to be taken.
        max_events: capacity in messages.
        held_events: messages held, those of an open transaction included.
        bytes: bytes of keys and values held.
        max_bytes: capacity in bytes.
        unread: batches that delivery has not taken yet.
        oldest_ts_ms: when the source changed the oldest rows held (milliseconds since the epoch); 0 if nothing is.
        put_blocked_s: seconds in which the reader had to wait for room, in all.
        get_blocked_s: seconds in which delivery had nothing to do, in all.
    """

    events: int
    max_events: int
    held_events: int
    bytes: int
    max_bytes: int
    unread: int
    oldest_ts_ms: int
    put_blocked_s: float
    get_blocked_s: float


class EventStore:
    """A bounded, thread-safe queue of batches with acknowledgement and rollback, for one reader and one deliverer.

    Args:
        max_events: ``max.queue.size``, in messages.
        max_bytes: ``max.queue.size.in.bytes``; 0 stands for ``DEFAULT_MAX_BYTES``.
    """

    def __init__(self, max_events: int = DEFAULT_MAX_EVENTS, max_bytes: int = 0) -> None:
        slots = 1 << (min(max_events * _SLOTS_PER_EVENT, _MAX_SLOTS) - 1).bit_length()
        self._ring = BatchRing(slots, max_events, max_bytes or DEFAULT_MAX_BYTES)
        lock = threading.Lock()
        self._room = threading.Condition(lock)
        self._news = threading.Condition(lock)
        self._closed = False
        self._failure: BaseException | None = None
        self._quiet = False
        self._put_waits = False
        self._put_blocked_s = 0.0
        self._get_blocked_s = 0.0

    def put(self, batches: Sequence[Batch], timeout: float | None = None) -> int:
        """Append batches in order, waiting for room; a batch larger than the whole store is taken when it is empty.

        Args:
            batches: what to append.
            timeout: seconds to wait for room for each next batch, ``None`` for as long as it takes.

        Returns:
            How many were taken: all, unless the time was over.

        Raises:
            StoreClosed: the store is or was meanwhile closed.
        """
        done = 0
        with self._room:
            for batch in batches:
                if not self._wait_for_room(batch, timeout):
                    break
                self._ring.put(batch)
                done += 1
            if done:
                self._news.notify()
        return done

    def _wait_for_room(self, batch: Batch, timeout: float | None) -> bool:
        if not self._closed and not self._quiet and self._ring.has_room(batch):
            return True
        self._news.notify()  # what was put before must not wait for the rest
        start = time.monotonic()
        self._put_waits = not self._ring.has_room(batch)
        self._room.wait_for(lambda: self._closed or (not self._quiet and self._ring.has_room(batch)), timeout)
        self._put_waits = False
        self._put_blocked_s += time.monotonic() - start
        if self._closed:
            raise StoreClosed("the event store is closed") from self._failure
        return not self._quiet and self._ring.has_room(batch)

    def get(self, max_events: int, timeout: float | None = None) -> Taken:
        """Take the next batches, up to ``max_events`` messages but at least one batch; waits until there is one.

        Args:
            max_events: messages wanted at most.
            timeout: seconds to wait for the first batch, ``None`` for as long as it takes, 0 for not at all.

        Returns:
            The batches; none if the time was over, or the store is closed and everything was taken.
        """
        with self._news:
            if not self._ring.unread and not self._closed and timeout != 0:
                start = time.monotonic()
                self._news.wait_for(lambda: self._closed or self._ring.unread > 0, timeout)
                self._get_blocked_s += time.monotonic() - start
            batches = self._ring.get(max_events)
            if batches:
                self._room.notify()
            return Taken(batches, self._ring.get_sequence)

    def ack(self, sequence: int) -> None:
        """Forget every batch up to ``sequence``: Kafka has them.

        Raises:
            ValueError: ``sequence`` was not given out.
        """
        with self._room:
            self._ring.ack(sequence)
            self._room.notify()

    def rollback(self) -> int:
        """Give out again, from the first one on, what was taken and not acknowledged; returns how many batches."""
        with self._news:
            back = self._ring.rollback()
            if back:
                self._news.notify()
            return back

    def close(self, failure: BaseException | None = None) -> None:
        """Take no more batches; a waiting ``put`` raises, ``get`` hands out what is left.

        Args:
            failure: why delivery gave up, if it did: the cause of what ``put`` raises.
        """
        with self._room:
            self._closed = True
            self._failure = self._failure or failure
            self._room.notify_all()
            self._news.notify_all()

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closed

    @property
    def drained(self) -> bool:
        """Whether the store is closed and everything in it was acknowledged."""
        with self._room:
            return self._closed and not self._ring.held

    @property
    def unread(self) -> int:
        """Batches that wait to be taken."""
        with self._room:
            return self._ring.unread

    @property
    def pressed(self) -> bool:
        """Whether what is taken and not acknowledged is in the reader's way: half of the capacity, or it waits."""
        with self._room:
            return self._ring.given_share >= _HALF or (self._put_waits and not self._ring.unread)

    @property
    def starved(self) -> bool:
        """Whether the reader waits for room, and nothing is left to be taken: only an acknowledgement helps."""
        with self._room:
            return self._put_waits and not self._ring.unread

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Hold the reader at its next ``put`` while the block runs; keep it short. Not to be nested."""
        self._quiet = True
        try:
            yield
        finally:
            with self._room:
                self._quiet = False
                self._room.notify()

    def use(self) -> StoreUse:
        """How full the store is."""
        with self._room:
            ring = self._ring
            return StoreUse(
                events=ring.unread_events,
                max_events=ring.max_events,
                held_events=ring.held_events,
                bytes=ring.held_bytes,
                max_bytes=ring.max_bytes,
                unread=ring.unread,
                oldest_ts_ms=ring.oldest_ts_ms,
                put_blocked_s=self._put_blocked_s,
                get_blocked_s=self._get_blocked_s,
            )
