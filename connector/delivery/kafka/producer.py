"""Sends messages with librdkafka, and processes delivery reports.

``confluent_kafka.Producer`` queues, batches, compresses and retries in its own threads. It acquires Python's global
interpreter lock once per delivery report, even for successful messages; with a busy reader thread, that takes up to
5 ms each. Reports are therefore processed in bulk while the reader is paused (``quiet``, see ``event_store``), and
nothing blocks inside ``flush`` or ``poll`` for longer than a millisecond. The queue is bounded: when it is full,
sending waits for space, for as long as the broker is down.
"""

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol

from confluent_kafka import KafkaError, KafkaException, Producer

from rowtide.connector.delivery.errors import BrokerUnavailable, DeliveryError, DeliveryInterrupted
from rowtide.connector.delivery.kafka.client_log import log as client_log
from rowtide.connector.delivery.kafka.errors import (
    call_failed,
    is_purged,
    is_retriable,
    larger_than_queue,
    message_failed,
    partition_gone,
)
from rowtide.connector.delivery.kafka.lingering import FLUSH_S, Lingering
from rowtide.connector.delivery.kafka.refusals import producer_failed, severity
from rowtide.connector.delivery.offset_store import OffsetRecord
from rowtide.connector.records.batch import Batch, Headers

log = logging.getLogger(__name__)

_SERVE_EVERY = 1000
"""Messages between two rounds of delivery reports: often enough to bound memory, rarely enough for the reader."""

_CHOSEN_BY_KEY = -1
_ALL_DOWN = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001 - librdkafka's local code
"""It is reported after the errors of single brokers, which give the reason."""

_CALL_S = 1.0
"""How long one call of the client may block before the next check for an interrupt."""
_SHORT_PAUSE_S = 0.001
_LONG_PAUSE_S = 0.05
_LONG_PAUSE_AFTER_S = 1.0
_LOG_EVERY_S = 30.0
_REGISTERING_S = 0.01
"""How long messages are flushed again while they are drained: a flush has no effect on those of a partition before the
coordinator has it in the transaction, which takes a request to it."""


class ProducerClient(Protocol):
    """The methods of ``confluent_kafka.Producer`` that are used."""

    def produce(self, *args: Any) -> None: ...
    def poll(self, timeout: float) -> int: ...
    def purge(self) -> None: ...
    def flush(self, timeout: float) -> int: ...
    def init_transactions(self, timeout: float) -> None: ...
    def begin_transaction(self) -> None: ...
    def commit_transaction(self, timeout: float) -> None: ...
    def abort_transaction(self, timeout: float) -> None: ...
    def __len__(self) -> int: ...


class RecordProducer:
    """A producer that waits when its queue is full, and keeps the most severe error.

    Args:
        settings: librdkafka's settings, see ``producer_settings``.
        quiet: a context that is entered while delivery reports are processed.
        show_keys: whether errors may show the keys of messages.
        new_client: creates the client.
        clock: returns seconds of a monotonic clock.

    Attributes:
        problem: the last error of the client that it retries, until a sink resets it.

    Raises:
        DeliveryError: the settings are invalid.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        *,
        quiet: Callable[[], AbstractContextManager[None]] = nullcontext,
        show_keys: bool = False,
        new_client: Callable[[dict[str, Any]], ProducerClient] = Producer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.transactional_id = str(settings.get("transactional.id", ""))
        self.transaction_timeout_s = int(settings.get("transaction.timeout.ms", 60_000)) / 1000
        self.problem: str | None = None
        self._quiet = quiet
        self._show_keys = show_keys
        self._clock = clock
        self._failure: DeliveryError | None = None
        self._failure_severity = (-1, -1)
        self._interrupted = threading.Event()
        self._client_errors = 0
        self._answer_s = int(settings.get("socket.timeout.ms", 60_000)) / 1000
        self._end_repeated = False
        self._unserved = 0
        self._logged_wait_s = 0.0
        self._lingering = Lingering(settings, clock)
        own = {"delivery.report.only.error": True, "error_cb": self._on_client_error, "logger": client_log}
        try:
            self.client = new_client({**self._lingering.client_settings, **own})
        except KafkaException as failure:
            raise DeliveryError(f"the Kafka producer cannot be created: {failure.args[0].str()}") from failure

    @property
    def producer_id(self) -> None:
        """``None``: librdkafka does not expose the id that Kafka gave the producer."""

    def send(self, batches: Sequence[Batch]) -> None:
        """Queue all messages, in order, and wait while the queue is full.

        Raises:
            DeliveryError: a message is rejected, an earlier one failed, or ``interrupt`` was called while waiting.
        """
        for batch in batches:
            self._send(batch)
            self._unserved += len(batch.messages)
            if self._unserved >= _SERVE_EVERY:
                self.serve()
        if self._lingering.is_over(idle=False):
            self.serve()

    def _send(self, batch: Batch) -> None:
        topic, partition, messages = batch.topic, batch.partition, batch.messages
        produce, timestamp = self.client.produce, batch.timestamp
        reported = self._on_delivery if partition == _CHOSEN_BY_KEY else self._on_placed_delivery
        shared: Headers | None = None
        headers: list[tuple[str, bytes | None]] = []
        for key, value, given in messages:
            if given is not shared:  # usually one object for all messages; librdkafka needs a list
                shared, headers = given, list(given)
            try:
                produce(topic, value, key, partition, reported, None, timestamp, headers)
            except BufferError:
                self._queue(topic, value, key, partition, reported, None, timestamp, headers)
            except KafkaException as failure:
                raise self._not_queued(failure, topic, key, value) from failure

    def put(self, record: OffsetRecord) -> None:
        """Queue the record that stores an offset; this waits and raises like ``send``."""
        topic, key, value, headers = record
        self._queue(topic, value, key, _CHOSEN_BY_KEY, self._on_delivery, None, 0, list(headers))

    def _queue(self, topic: str, value: bytes | None, key: bytes | None, *more: Any) -> None:
        """Queue one message, and wait while the queue is full."""
        while True:
            empty = not len(self.client)
            try:
                self.client.produce(topic, value, key, *more)
            except BufferError as failure:
                if empty:  # waiting frees no more space
                    raise larger_than_queue(topic, _size(key, value)) from failure
                self._wait_for_room()
            except KafkaException as failure:
                raise self._not_queued(failure, topic, key, value) from failure
            else:
                return

    def _not_queued(self, failure: KafkaException, topic: str, key: bytes | None, value: bytes | None) -> DeliveryError:
        self.serve()  # an earlier report is more specific
        return self._refused(failure.args[0], topic, key, value)

    def serve(self, *, idle: bool = False) -> None:
        """Process the available delivery reports, and send the messages of incomplete batches that are due.

        Args:
            idle: whether no other message is ready to be sent.

        Raises:
            DeliveryError: a message failed, now or earlier.
        """
        self._unserved = 0
        self.poll()
        waiting = len(self.client)
        if waiting and self._lingering.is_over(idle=idle and waiting < _SERVE_EVERY):
            self._lingering.restart()
            self._process(self.client.flush, FLUSH_S)
        self.check()

    def call_when_due(self, _call: Callable[[], None]) -> bool:
        """Return false, because delivery reports must be polled."""
        return False

    def poll(self) -> None:
        """Process the available delivery reports and errors without raising them."""
        self._process(self.client.poll, 0)

    def _process(self, call: Callable[[float], int], timeout: float) -> None:
        with self._quiet():
            try:
                call(timeout)
            except KafkaException as failure:  # a fatal error, which is raised only once
                self._on_client_error(failure.args[0])

    @property
    def waiting(self) -> int:
        """The number of unacknowledged messages."""
        return len(self.client)

    def check(self) -> None:
        """Raise the most severe error since ``forget``, if there was one."""
        if self._failure is not None:
            raise self._failure

    def drain(self, timeout: float | None = None) -> bool:
        """Wait until all queued messages are acknowledged, and return false if the timeout expired first.

        Raises:
            DeliveryError: a message failed, or ``interrupt`` was called.
        """
        start = self._clock()
        self._lingering.end()
        self.serve(idle=True)
        while len(self.client):
            waited = self._clock() - start
            if timeout is not None and waited >= timeout:
                return False
            self._pause(waited, "messages were not acknowledged")
            if waited < _REGISTERING_S:
                self._lingering.end()
            self.serve(idle=True)
        return True

    def _wait_for_room(self) -> None:
        start, waiting = self._clock(), len(self.client)
        self.serve()
        while len(self.client) >= waiting > 0:
            self._pause(self._clock() - start, "there was no space for more messages")
            self.serve()

    def _pause(self, waited: float, state: str) -> None:
        if waited - self._logged_wait_s >= _LOG_EVERY_S:
            log.warning("Kafka has not responded for %.0f s: %d messages are pending", waited, len(self.client))
            self._logged_wait_s = waited
        elif waited < self._logged_wait_s:
            self._logged_wait_s = 0.0
        self.pause(_SHORT_PAUSE_S if waited < _LONG_PAUSE_AFTER_S else _LONG_PAUSE_S, state)

    def pause(self, seconds: float, state: str) -> None:
        """Sleep.

        Raises:
            DeliveryInterrupted: ``interrupt`` was called; the message contains ``state``.
        """
        if self._interrupted.wait(seconds):
            raise DeliveryInterrupted(f"stopped while {state} ({len(self.client)} messages are pending)")

    def init_transactions(self, timeout: float) -> None:
        """Fence older instances and end their open transactions.

        Raises:
            BrokerUnavailable: no broker could do it in time.
            DeliveryError: it is not allowed, or ``interrupt`` was called.
        """
        self._until_done("start transactions", self.client.init_transactions, timeout)

    def begin_transaction(self) -> None:
        """Open a transaction.

        librdkafka keeps its epoch. If it has sent the end of the transaction before twice, because no answer came, the
        first request may still arrive, and would end the new transaction before its time: records of an open
        transaction would become visible. Only a new producer has another epoch.

        Raises:
            DeliveryError: an earlier transaction has failed, or its end may have been sent twice.
        """
        if self._end_repeated:
            raise producer_failed(
                "Kafka did not answer while a transaction was ended, so its end may have been sent twice, and the late "
                "request would end the next transaction"
            )
        try:
            self.client.begin_transaction()
        except KafkaException as failure:
            raise call_failed("begin a transaction", failure.args[0], self.transactional_id) from failure

    def commit_transaction(self) -> None:
        """Commit the open transaction, once all its messages are acknowledged.

        Raises:
            DeliveryError: it has failed, or ``interrupt`` was called.
        """
        self.drain()
        with self._noting_repetition():
            self._until_done("commit the transaction", self.client.commit_transaction)

    def abort_transaction(self, timeout: float | None = None) -> None:
        """Abort the open transaction.

        Args:
            timeout: seconds for one attempt; ``None`` to try until it is done or ``interrupt`` is called.

        Raises:
            DeliveryError: it has failed, or ``interrupt`` was called.
        """
        if timeout is None:
            with self._noting_repetition():
                self._until_done("abort the transaction", self.client.abort_transaction)
            return
        try:
            self.client.abort_transaction(timeout)
        except KafkaException as failure:
            raise call_failed("abort the transaction", failure.args[0], self.transactional_id) from failure

    @contextmanager
    def _noting_repetition(self) -> Iterator[None]:
        """Note whether the client may have repeated a request in the block, because of an error or a missing answer."""
        self.poll()
        errors, begin = self._client_errors, time.monotonic()
        yield
        self.poll()
        self._end_repeated |= self._client_errors > errors or time.monotonic() - begin >= self._answer_s

    def _until_done(self, what: str, call: Callable[[float], None], timeout: float = math.inf) -> None:
        end = time.monotonic() + timeout
        while True:
            try:
                call(_CALL_S)
            except KafkaException as failure:
                error = failure.args[0]
                if not is_retriable(error) or error.fatal() or error.txn_requires_abort():
                    raise call_failed(what, error, self.transactional_id) from failure
                if time.monotonic() > end:
                    raise BrokerUnavailable(
                        f"cannot {what} within {timeout:.0f} s: {error.str()}. "
                        "Check that bootstrap.servers can be reached"
                    ) from failure
                self.poll()  # for the client's own errors, which say more than a time-out
                self.problem = self.problem or f"cannot {what}: {error.str()}"
                self.pause(0.05, f"trying to {what}")
            else:
                return

    def interrupt(self) -> None:
        """Make all blocked calls raise ``DeliveryInterrupted``; may be called from any thread."""
        self._interrupted.set()

    def forget(self) -> None:
        """Forget all errors, because their transaction is aborted."""
        self._failure = None
        self._failure_severity = (-1, -1)

    def close(self) -> None:
        """Drop all queued messages."""
        self._interrupted.set()
        self.client.purge()
        self.poll()

    def _on_delivery(self, error: KafkaError | None, message: Any) -> None:
        """Handle the delivery report of a failed message; there are no reports of successful ones."""
        replaced = None if error is None else partition_gone(error, message.topic())
        if replaced is not None:
            self._keep_worst(replaced)
        else:
            self._on_placed_delivery(error, message)

    def _on_placed_delivery(self, error: KafkaError | None, message: Any) -> None:
        """Handle the delivery report of a failed message for a partition that the caller chose."""
        if error is None or is_purged(error):
            return
        key, value = message.key(), message.value()
        self._keep_worst(self._refused(error, message.topic(), key, value), _size(key, value))

    def _keep_worst(self, failure: DeliveryError, size: int = 0) -> None:
        """Keep the most severe failure or, for a rejected batch of messages, that of the largest one."""
        rank = (severity(failure), size)
        if rank > self._failure_severity:
            self._failure, self._failure_severity = failure, rank

    def _refused(self, error: KafkaError, topic: str, key: bytes | None, value: bytes | None) -> DeliveryError:
        return message_failed(error, topic, key, _size(key, value), self.transactional_id, show_key=self._show_keys)

    def _on_client_error(self, error: KafkaError) -> None:
        """Handle an error of the client that does not belong to a message."""
        self._client_errors += 1
        if error.fatal():
            self._keep_worst(call_failed("send", error, self.transactional_id))
        else:
            if self.problem is None or error.code() != _ALL_DOWN:
                self.problem = error.str()
            client_log.warning("%s", error.str())


def _size(key: bytes | None, value: bytes | None) -> int:
    return len(key or b"") + len(value or b"")
