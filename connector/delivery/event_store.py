"""The event store: a bounded, thread-safe queue of batches between the reader and their consumer.

The reader puts batches; the consumer, which is the delivery loop or a program with ``rowtide.Engine``, gets them and
then acknowledges them or rolls back. Two limits apply: ``max.queue.size`` to the messages that wait to be taken, as in
Debezium, and ``max.queue.size.in.bytes`` to the bytes of all batches that are not acknowledged. A slow consumer slows
the reader down instead of filling memory. Each call takes the lock once, never once per row. The ring is in
``batch_ring``.

``quiet`` exists because of Python's global interpreter lock: a Kafka client that takes the lock once per delivery
report loses it to a busy reader each time, and waits up to 5 ms to get it back. While reports are served, the reader
waits at its next ``put``; measured on 2 cores, this is the difference between 6 000 and 130 000 messages/s.

A program may take batches in its main thread, where Ctrl-C raises KeyboardInterrupt almost anywhere. So the lock is
taken by ``with self._lock``, which cannot be interrupted halfway, and the consumer waits for a ``Bell``: entering a
``Condition``, or waiting for it, can leave the lock locked forever.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic

from rowtide.connector.delivery.batch_ring import BatchRing, Stored
from rowtide.connector.errors import ConnectorError
from rowtide.connector.records.batch import Batch

DEFAULT_MAX_EVENTS = 8192
"""Debezium's default of ``max.queue.size``."""

DEFAULT_MAX_BYTES = 64 * 1024 * 1024
"""The limit if ``max.queue.size.in.bytes`` is 0. Debezium has none then, and large rows can exhaust its memory."""

_SLOTS_PER_EVENT = 8
"""Slots for batches per message of ``max.queue.size``; batches of an open transaction occupy slots, too."""

_MAX_SLOTS = 1 << 20
_HALF = 0.5


class StoreClosed(ConnectorError):
    """The store is closed: the connector stops, or delivery has failed, in which case the failure is the cause."""


@dataclass(frozen=True, slots=True)
class Taken(Generic[Stored]):
    """The result of one ``get``.

    Attributes:
        batches: in the order of the binlog; empty after a time-out, or if the store is closed and empty.
        sequence: the number to acknowledge when all of them are delivered.
    """

    batches: Sequence[Stored]
    sequence: int


@dataclass(frozen=True, slots=True)
class StoreUse:
    """Use of the store, for metrics such as Debezium's QueueTotalCapacity and CurrentQueueSizeInBytes.

    Attributes:
        events: messages that wait to be taken.
        max_events: capacity in messages.
        held_events: messages that are not acknowledged.
        bytes: bytes of keys and values that are not acknowledged.
        max_bytes: capacity in bytes.
        unread: batches that delivery has not taken yet.
        oldest_ts_ms: when the source changed the oldest rows that are not acknowledged (milliseconds since the epoch);
            0 if there are none.
        put_blocked_s: total time in which the reader waited for space, in seconds.
        get_blocked_s: total time in which delivery waited for batches, in seconds.
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


class Bell:
    """Wakes a waiting thread; ringing it before the thread waits has the same effect. It is safe with Ctrl-C."""

    def __init__(self) -> None:
        self._silent = threading.Lock()
        self._silent.acquire()

    def ring(self) -> None:
        """End one ``wait``. Two threads must not ring at the same time."""
        if self._silent.locked():
            self._silent.release()

    def wait(self, timeout: float | None) -> bool:
        """Wait until it is rung, at most this many seconds, and return whether it was."""
        return self._silent.acquire(timeout=-1 if timeout is None else timeout)


class Store(Generic[Stored]):
    """A bounded, thread-safe queue of batches with acknowledgement and rollback, for one reader and one consumer.

    Args:
        max_events: ``max.queue.size``, in messages.
        max_bytes: ``max.queue.size.in.bytes``; 0 stands for ``DEFAULT_MAX_BYTES``.
    """

    def __init__(self, max_events: int = DEFAULT_MAX_EVENTS, max_bytes: int = 0) -> None:
        slots = 1 << (min(max_events * _SLOTS_PER_EVENT, _MAX_SLOTS) - 1).bit_length()
        self._ring: BatchRing[Stored] = BatchRing(slots, max_events, max_bytes or DEFAULT_MAX_BYTES)
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._news = Bell()
        self._listeners: list[Callable[[], None]] = []
        self._woken = False
        self._closed = False
        self._failure: BaseException | None = None
        self._quiet = False
        self._put_waits = False
        self._put_blocked_s = 0.0
        self._get_blocked_s = 0.0

    def put(self, batches: Sequence[Stored], timeout: float | None = None) -> int:
        """Append batches in order, and wait for space.

        A batch larger than the store is accepted when the store is empty.

        Args:
            batches: the batches.
            timeout: seconds to wait for space for each batch; ``None`` to wait without limit.

        Returns:
            The number of accepted batches: all of them, except after a time-out.

        Raises:
            StoreClosed: the store is closed.
        """
        done = 0
        with self._lock:
            for batch in batches:
                if not self._wait_for_room(batch, timeout):
                    break
                self._ring.put(batch)
                done += 1
            if done:
                self._tell()
        return done

    def _tell(self) -> None:
        self._news.ring()
        for listener in self._listeners:
            listener()

    def _wait_for_room(self, batch: Stored, timeout: float | None) -> bool:
        if not self._closed and not self._quiet and self._ring.has_room(batch):
            return True
        self._tell()  # the consumer need not wait for the rest
        start = time.monotonic()
        self._put_waits = not self._ring.has_room(batch)
        # ``quiet`` takes no lock and may begin again right after this; it only matters that it had ended.
        ready = self._room.wait_for(lambda: self._closed or (not self._quiet and self._ring.has_room(batch)), timeout)
        self._put_waits = False
        self._put_blocked_s += time.monotonic() - start
        if self._closed:
            raise StoreClosed("the event store is closed") from self._failure
        return ready

    def get(self, max_events: int, timeout: float | None = None) -> Taken[Stored]:
        """Take the next batches: up to ``max_events`` messages or changes, but at least one batch.

        Args:
            max_events: the maximum number of messages or changes.
            timeout: seconds to wait for the first batch; ``None`` to wait without limit, 0 not to wait.

        Returns:
            The batches; none after a time-out, or if the store is closed and empty.
        """
        self.wait(timeout)
        with self._lock:
            batches = self._ring.get(max_events)
            if batches:
                self._room.notify()
            return Taken(batches, self._ring.get_sequence)

    def get_while(self, fits: Callable[[Stored], bool]) -> Taken[Stored]:
        """Take the next batches without waiting, up to the first one that does not fit.

        Args:
            fits: called once for each batch, in order, until it returns ``False``; it must not use the store.
        """
        with self._lock:
            batches = self._ring.get_while(fits)
            if batches:
                self._room.notify()
            return Taken(batches, self._ring.get_sequence)

    def wait(self, timeout: float | None = None) -> None:
        """Wait as ``get`` does, but take nothing."""
        if self._ring.unread or self._closed or timeout == 0:
            return
        start = time.monotonic()
        left = timeout
        while self._news.wait(left) and not (self._ring.unread or self._closed or self._woken):
            left = None if timeout is None else max(0.0, timeout - (time.monotonic() - start))
        self._woken = False
        if self._closed:
            with self._lock:
                self._news.ring()  # for another thread that waits
        self._get_blocked_s += time.monotonic() - start

    def wake(self) -> None:
        """End a ``wait`` or ``get``, or the next one; any thread may call this."""
        with self._lock:
            self._woken = True
            self._news.ring()

    def ack(self, sequence: int) -> None:
        """Free every batch up to ``sequence``, because they are delivered.

        Raises:
            ValueError: ``sequence`` was not taken.
        """
        with self._lock:
            self._ring.ack(sequence)
            self._room.notify()

    def rollback(self) -> int:
        """Make all taken but unacknowledged batches available again, and return their number."""
        with self._lock:
            back = self._ring.rollback()
            if back:
                self._tell()
            return back

    def close(self, failure: BaseException | None = None) -> None:
        """Refuse further batches: a waiting ``put`` raises, and ``get`` returns the remaining ones.

        Args:
            failure: the failure of delivery, if any; it becomes the cause of the error that ``put`` raises.
        """
        with self._lock:
            self._closed = True
            self._failure = self._failure or failure
            self._room.notify_all()
            self._tell()

    def listen(self, listener: Callable[[], None]) -> None:
        """Call ``listener`` whenever there may be something new for the consumer: batches, or the end of the store.

        It is called in the thread that adds them, which holds the store's lock: it must neither wait nor use the store.
        """
        with self._lock:
            self._listeners.append(listener)

    @property
    def closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._closed

    @property
    def drained(self) -> bool:
        """Whether the store is closed and all batches are acknowledged."""
        with self._lock:
            return self._closed and not self._ring.held

    @property
    def unread(self) -> int:
        """The number of batches that are not taken yet."""
        with self._lock:
            return self._ring.unread

    @property
    def last_sequence(self) -> int:
        """The sequence of the last batch that was put; -1 before the first one."""
        with self._lock:
            return self._ring.put_sequence

    @property
    def acknowledged(self) -> int:
        """The sequence up to which all batches are acknowledged; -1 before the first one."""
        with self._lock:
            return self._ring.ack_sequence

    @property
    def unread_bytes(self) -> int:
        """The bytes that are not taken yet."""
        with self._lock:
            return self._ring.unread_bytes

    @property
    def pressed(self) -> bool:
        """Whether unacknowledged batches use half of the capacity, or the reader waits for their space."""
        with self._lock:
            return self._ring.given_share >= _HALF or (self._put_waits and not self._ring.unread)

    @property
    def overflows(self) -> bool:
        """Whether the reader waits for space while there are batches to take."""
        with self._lock:
            return self._put_waits and self._ring.unread > 0

    @property
    def starved(self) -> bool:
        """Whether the reader waits for space while there is no batch to take, so that only ``ack`` frees space."""
        with self._lock:
            return self._put_waits and not self._ring.unread

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Hold the reader at its next ``put`` while the block runs. Keep it short; do not nest it."""
        self._quiet = True
        try:
            yield
        finally:
            with self._lock:
                self._quiet = False
                self._room.notify()

    def use(self) -> StoreUse:
        """Return the use of the store."""
        with self._lock:
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


class EventStore(Store[Batch]):
    """The store between the reader and the delivery of messages."""
