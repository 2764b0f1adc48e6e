"""A Kafka producer that waits when its memory is full, and remembers its failure.

::

    send ──► open batches ──► Sender (state machine) ──► Brokers (a thread each)
                                    ▲                        │
                                    └──────── results ───────┘

The state machine is used under a lock, by the thread that sends messages and by those of the brokers.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from rowtide.connector.kafka_producer.batches.builder import RecordTooLarge
from rowtide.connector.kafka_producer.batches.partitions import StickyPartition, split_by_key
from rowtide.connector.kafka_producer.brokers import Result
from rowtide.connector.kafka_producer.errors import (
    BrokerUnavailable,
    KafkaProducerError,
    ProducerFailed,
    ProducerInterrupted,
    RecordRejected,
    Rejection,
)
from rowtide.connector.kafka_producer.machine import Sender
from rowtide.connector.kafka_producer.machine.messages import Outgoing, TopicPartition
from rowtide.connector.kafka_producer.machine.transactions import State
from rowtide.connector.kafka_producer.open_batches import ClosedBatch, OpenBatches
from rowtide.connector.kafka_producer.records import BY_KEY, Record, Records
from rowtide.connector.kafka_producer.results import StateChecked, take
from rowtide.connector.kafka_producer.settings import ProducerSettings

log = logging.getLogger(__name__)

_LOOK_S = 0.05
_LOG_EVERY_S = 30.0
_HAS_TRANSACTION = (State.OPEN, State.COMMITTING)
_NO_ROOM = "there was no space for more messages"


class RequestSender(Protocol):
    """Sends requests to brokers; see :class:`..brokers.Brokers`."""

    def send(self, outgoing: Outgoing) -> None: ...
    def close(self) -> None: ...


class Producer:
    """A producer. One thread uses it, and any thread may call :meth:`interrupt`.

    Args:
        settings: its settings.
        brokers: creates the connections, given the function that receives the results.
        clock: seconds of a monotonic clock.
        wall_clock: seconds since the epoch.
    """

    def __init__(
        self,
        settings: ProducerSettings,
        brokers: Callable[[Callable[[Outgoing, Result], None]], RequestSender],
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.transactional_id = settings.sender.transactional_id
        self.transaction_timeout_s = settings.sender.transaction_timeout_ms / 1000
        self._settings = settings
        self._clock = clock
        self._wall_clock = wall_clock
        self._sender = Sender(settings.sender)
        self._open = OpenBatches(settings.limits, settings.codec)
        self._sticky: dict[str, StickyPartition] = {}
        self._failure: KafkaProducerError | None = None
        self._held = 0
        self._changed = threading.Condition()
        self._awaited: Callable[[], bool] | None = None
        self._call_when_due: Callable[[], None] = lambda: None
        self._interrupted = False
        self._brokers = brokers(self._finished)

    @property
    def producer_id(self) -> int | None:
        """The id that Kafka gave the producer; ``None`` before."""
        return self._sender.producer_id

    @property
    def problem(self) -> str | None:
        """The last error that was retried, until a sink resets it."""
        return self._sender.problem.text

    @problem.setter
    def problem(self, text: str | None) -> None:
        self._sender.problem.text = text

    @property
    def waiting(self) -> int:
        """The number of unacknowledged messages."""
        return self._sender.waiting + self._open.count

    def send(self, sent: Sequence[Records]) -> None:
        """Add all records to batches, in order, and wait while the memory is full.

        Raises:
            KafkaProducerError: a record is rejected, an earlier one failed, or ``interrupt`` was called while waiting.
        """
        partitions = self._partitions({one.topic for one in sent if one.partition == BY_KEY})
        for topic, partition, records, timestamp_ms in sent:
            self._send(topic, partition, records, timestamp_ms, partitions)
        if self._lingered():
            self._close_open()
            self.poll()
        self.check()

    def _send(
        self,
        topic: str,
        partition: int,
        messages: Sequence[Record],
        timestamp_ms: int,
        partitions: Mapping[str, int],
    ) -> None:
        self._make_room(len(messages))
        timestamp_ms = timestamp_ms or int(self._wall_clock() * 1000)
        if partition != BY_KEY:
            self._append(TopicPartition(topic, partition), messages, timestamp_ms)
        elif partitions[topic] == 1:
            self._append(TopicPartition(topic, 0), messages, timestamp_ms)
        else:
            self._divide(topic, partitions[topic], messages, timestamp_ms)

    def _divide(self, topic: str, partitions: int, messages: Sequence[Record], timestamp_ms: int) -> None:
        """Add messages to the partitions of their keys, or without keys to the same one for a while."""
        sticky = self._sticky.get(topic)
        if sticky is None:
            sticky = self._sticky[topic] = StickyPartition(self._settings.limits.batch_size)
        unkeyed = sticky.choose(partitions, lambda: self._available(topic))
        for number, found in split_by_key(messages, partitions, unkeyed).items():
            batch_complete = self._append(TopicPartition(topic, number), found, timestamp_ms)
            if number == unkeyed:
                size = sum(len(value or b"") for key, value, _headers in found if key is None)
                sticky.sent(size, batch_complete=batch_complete)

    def _append(self, place: TopicPartition, messages: Sequence[Record], timestamp_ms: int) -> bool:
        """Add messages to the open batch of a partition, and return whether a batch became full."""
        full = False
        try:
            for closed in self._open.append(place, messages, timestamp_ms, self._clock()):
                full = True
                self._add(closed)
                self.poll()
        except RecordTooLarge as error:
            key, value, _headers = messages[error.index]
            size = len(key or b"") + len(value or b"")
            raise RecordRejected(place.topic, key, size, Rejection.TOO_LARGE, str(error)) from error
        return full

    def _make_room(self, count: int) -> None:
        """Wait until there is space for this number of messages.

        Incomplete batches are sent only if they take most of the space, or if nothing else is in transit: otherwise all
        batches of many partitions would be small while the broker is slow.
        """
        messages, memory = self._settings.messages, self._settings.memory

        def is_room() -> bool:
            return self.waiting + count <= messages and self._held + self._open.size < memory

        while self.waiting and not is_room():
            if 2 * self._open.count >= messages or 2 * self._open.size >= memory or not self._sender.waiting:
                self._close_open()
            self._until(lambda: is_room() or not self._sender.waiting, _NO_ROOM)

    def _partitions(self, topics: Collection[str]) -> dict[str, int]:
        """Return the numbers of partitions of topics, after waiting until all are looked up together."""

        def missing() -> list[str]:
            counts = {topic: self._sender.partitions(topic) for topic in topics}
            found.update((topic, count) for topic, count in counts.items() if count is not None)
            return [topic for topic, count in counts.items() if count is None]

        found: dict[str, int] = {}
        with self._changed:
            unknown = missing()
        if unknown:
            self._until(lambda: not missing(), f"{', '.join(map(repr, unknown[:3]))} were looked up")
        return found

    def _available(self, topic: str) -> list[int]:
        with self._changed:
            return self._sender.available(topic)

    def _add(self, closed: ClosedBatch) -> None:
        if self._held and self._held + closed.raw_size > self._settings.memory:
            room = self._settings.memory - closed.raw_size
            self._until(lambda: self._held <= max(0, room), _NO_ROOM)
        with self._changed, StateChecked("send a message"):
            self._sender.add(closed, self._clock())
            self._held += closed.raw_size

    def _lingered(self) -> bool:
        opened = self._open.opened_at
        return opened is not None and self._clock() - opened >= self._settings.linger_s

    def _close_open(self) -> None:
        for closed in self._open.close():
            self._add(closed)

    def serve(self, *, idle: bool = False) -> None:
        """Send the messages that are due.

        Args:
            idle: whether no other message is ready to be sent. Incomplete batches are sent then, unless earlier ones
                are in transit: more may be added in this time.

        Raises:
            KafkaProducerError: a message failed, now or earlier.
        """
        if self._open and (self._lingered() or (idle and not self._sender.waiting)):
            self._close_open()
        self.poll()
        self.check()

    def call_when_due(self, call: Callable[[], None]) -> bool:
        """Have ``call`` called, in the thread of a broker, when :meth:`serve` has something to do; it must not block.

        Returns:
            True. Messages that become due only with time are not reported.
        """
        self._call_when_due = call
        return True

    def poll(self) -> None:
        """Send requests that are due, without raising errors."""
        with self._changed:
            self._pump()

    def check(self) -> None:
        """Raise the failure of a message, if there was one."""
        if self._failure is not None:
            raise self._failure
        if self._sender.failure is not None:
            raise self._sender.failure.error

    def drain(self, timeout: float | None = None) -> bool:
        """Wait until all messages are acknowledged, and return false if the timeout expired first.

        Raises:
            KafkaProducerError: a message failed, or ``interrupt`` was called.
        """
        self._close_open()
        return self._until(lambda: not self._sender.waiting, "messages were not acknowledged", timeout)

    def init_transactions(self, timeout: float) -> None:
        """Fence older instances and end their transactions.

        Raises:
            BrokerUnavailable: no broker could do it in time.
            KafkaProducerError: it is not allowed, or ``interrupt`` was called.
        """
        if not self._until(lambda: self._sender.state is State.READY, "trying to start transactions", timeout):
            raise BrokerUnavailable(
                f"cannot start transactions within {timeout:.0f} s: {self.problem or 'no broker has answered'}. "
                "Check that bootstrap.servers can be reached, and that all brokers run"
            )

    def begin_transaction(self) -> None:
        """Open a transaction.

        Raises:
            KafkaProducerError: an earlier transaction has failed, or has not ended.
        """
        with self._changed, StateChecked("begin a transaction"):
            self._sender.begin()

    def commit_transaction(self) -> None:
        """Commit the open transaction.

        Raises:
            KafkaProducerError: a message of the transaction has failed, or ``interrupt`` was called.
        """
        self._close_open()
        with self._changed, StateChecked("commit the transaction"):
            self._sender.commit()
        self._until(lambda: self._sender.state is State.READY, "trying to commit the transaction")

    def abort_transaction(self, timeout: float | None = None) -> None:
        """Drop all messages, and abort the open transaction, if there is one; may be repeated if it did not end.

        Args:
            timeout: seconds, even after :meth:`interrupt`; ``None`` to wait until then for as long as it takes.

        Raises:
            KafkaProducerError: the producer can no longer be used, the commit of the transaction was sent and may
                have succeeded, or ``interrupt`` was called.
        """
        self._open.drop()
        with self._changed, StateChecked("abort the transaction"):
            if self._sender.failure is not None or self._sender.state in _HAS_TRANSACTION:
                self._sender.abort()
        self._until(
            lambda: self._sender.state is State.READY,
            "trying to abort the transaction",
            timeout,
            last_call=timeout is not None,
        )

    def interrupt(self) -> None:
        """Make all blocked calls raise ``ProducerInterrupted``; may be called from any thread."""
        self._interrupted = True
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """Drop all messages."""
        self.interrupt()
        with self._changed:
            self._sender.close()
        self._brokers.close()

    def _until(
        self, reached: Callable[[], bool], state: str, timeout: float | None = None, *, last_call: bool = False
    ) -> bool:
        """Send until a condition is met, and return false if the timeout expires first."""
        start = self._clock()
        log_at = start + _LOG_EVERY_S
        with self._changed:
            while True:
                self._awaited = None
                self._pump()
                self.check()
                if reached():
                    return True
                now = self._clock()
                if timeout is not None and now - start >= timeout:
                    return False
                if self._interrupted and not last_call:
                    raise ProducerInterrupted(f"stopped while {state} ({self.waiting} messages are pending)")
                if now >= log_at:
                    log.warning(
                        "Kafka has not responded for %.0f s: %d messages are pending (%s)",
                        now - start,
                        self.waiting,
                        self.problem or "no broker has reported a problem",
                    )
                    log_at = now + _LOG_EVERY_S
                self._awaited = reached
                self._changed.wait(max(0.0, self._look_again_at(now) - now))

    def _look_again_at(self, now: float) -> float:
        """Return the time at which a waiting thread has something to do, even without a result."""
        wake_up = self._sender.wake_up(now)
        return now + _LOOK_S if wake_up is None else min(now + _LOOK_S, wake_up)

    def _pump(self) -> None:
        """Send the requests of the machine that are due. The lock must be held."""
        if self._failure is None:
            for outgoing in self._sender.requests(self._clock()):
                self._brokers.send(outgoing)
        for batch in self._sender.acknowledged():
            assert isinstance(batch, ClosedBatch)
            self._held -= batch.raw_size
        if not self._sender.waiting:  # an abort drops batches
            self._held = 0

    def _finished(self, outgoing: Outgoing, result: Result) -> None:
        """Process the result of a request, in the thread of its broker."""
        with self._changed:
            try:
                self._failure = take(self._sender, outgoing, result, self._clock()) or self._failure
                self._pump()
            except Exception as error:  # the broker's thread must not end, or the caller would wait forever
                log.exception("unexpected error in the Kafka producer")
                self._failure = ProducerFailed(f"unexpected error in the Kafka producer: {error!r}")
            failed = self._failure is not None or self._sender.failure is not None
            now = self._clock()
            if self._awaited is not None and (failed or self._awaited() or self._look_again_at(now) < now + _LOOK_S):
                self._changed.notify_all()
            due = failed or (bool(self._open) and not self._sender.waiting)
        if due:
            self._call_when_due()
