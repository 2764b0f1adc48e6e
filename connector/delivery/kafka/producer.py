"""Hands messages to librdkafka and watches what becomes of them. An edge: Kafka.

``confluent_kafka.Producer`` queues, batches, compresses and retries on its own threads. Two things decide how it is
used here. It takes Python's global lock once for every delivery report, also for those that nobody wants to see; with
a busy reader thread beside it that costs up to 5 ms each. Reports are therefore served in bulk, at moments of our own
choosing, while the reader is held (``quiet``, see ``event_store``); nothing here waits inside ``flush`` or ``poll``.
And its queue is bounded: when it is full, sending waits until there is room, for as long as the broker is away.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from confluent_kafka import KafkaError, KafkaException, Producer

from rowtide.connector.delivery.errors import DeliveryError, DeliveryInterrupted
from rowtide.connector.delivery.kafka.client_log import log as client_log
from rowtide.connector.delivery.kafka.errors import call_failed, gravity, is_purged, message_failed
from rowtide.connector.delivery.offset_store import OffsetRecord
from rowtide.connector.records.batch import Batch, Headers

log = logging.getLogger(__name__)

_SERVE_EVERY = 1000
"""Messages between two servings of delivery reports: often enough for memory, rarely enough for the reader."""

_SHORT_PAUSE_S = 0.001
_LONG_PAUSE_S = 0.05
_PATIENT_AFTER_S = 1.0
_REMIND_S = 30.0


class ProducerClient(Protocol):
    """What is needed of ``confluent_kafka.Producer``."""

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
    """A producer that waits when its queue is full and remembers the first thing that went wrong.

    Args:
        settings: librdkafka's; see ``producer_settings``.
        quiet: entered while delivery reports are served.
        show_keys: whether errors may show the keys of messages.
        new_client: makes the client; another one in tests.

    Raises:
        DeliveryError: the settings are not valid.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        *,
        quiet: Callable[[], AbstractContextManager[None]] = nullcontext,
        show_keys: bool = False,
        new_client: Callable[[dict[str, Any]], ProducerClient] = Producer,
    ) -> None:
        self.transactional_id = str(settings.get("transactional.id", ""))
        self.transaction_timeout_s = int(settings.get("transaction.timeout.ms", 60_000)) / 1000
        self._quiet = quiet
        self._show_keys = show_keys
        self._failure: DeliveryError | None = None
        self._failure_rank = (-1, -1)
        self._interrupted = threading.Event()
        self._unserved = 0
        self._reminded_s = 0.0
        own = {"delivery.report.only.error": True, "error_cb": self._noticed, "logger": client_log}
        try:
            self.client = new_client({**settings, **own})
        except KafkaException as failure:
            raise DeliveryError(f"the Kafka producer cannot be made: {failure.args[0].str()}") from failure

    def send(self, batches: Sequence[Batch]) -> None:
        """Queue every message, in order; waits while the queue is full.

        Raises:
            DeliveryError: a message is refused, an earlier one failed, or ``interrupt`` was called while waiting.
        """
        for batch in batches:
            self._send(batch)
            self._unserved += len(batch.messages)
            if self._unserved >= _SERVE_EVERY:
                self.serve()

    def _send(self, batch: Batch) -> None:
        topic, partition, messages = batch.topic, batch.partition, batch.messages
        produce, reported, timestamp = self.client.produce, self._reported, batch.timestamp
        shared: Headers | None = None
        headers: list[tuple[str, bytes | None]] = []
        for key, value, given in messages:
            if given is not shared:  # mostly one object for all of them; librdkafka wants a list
                shared, headers = given, list(given)
            while True:
                try:
                    produce(topic, value, key, partition, reported, None, timestamp, headers)
                    break
                except BufferError:
                    self._wait_for_room()
                except KafkaException as failure:
                    self.serve()  # what was reported before tells more
                    raise self._refused(failure.args[0], topic, key, value) from failure

    def put(self, record: OffsetRecord) -> None:
        """Queue the record that stores an offset; waits and raises as ``send`` does."""
        topic, key, value = record
        while True:
            try:
                self.client.produce(topic, value, key, -1, self._reported)
            except BufferError:
                self._wait_for_room()
            except KafkaException as failure:
                self.serve()
                raise self._refused(failure.args[0], topic, key, value) from failure
            else:
                return

    def serve(self) -> int:
        """Take in the delivery reports that are there; returns how many things were reported.

        Raises:
            DeliveryError: a message failed, now or earlier.
        """
        self._unserved = 0
        served = self._poll()
        self.check()
        return served

    def _poll(self) -> int:
        with self._quiet():
            try:
                return self.client.poll(0)
            except KafkaException as failure:  # a fatal state; it is raised once only
                self._noticed(failure.args[0])
                return 0

    @property
    def waiting(self) -> int:
        """Messages that are not acknowledged."""
        return len(self.client)

    def check(self) -> None:
        """Raise the gravest error since ``forget``, if there was one."""
        if self._failure is not None:
            raise self._failure

    def drain(self, timeout: float | None = None) -> bool:
        """Wait until every queued message is acknowledged; returns false if the time was over before that.

        Raises:
            DeliveryError: a message failed, or ``interrupt`` was called.
        """
        start = time.monotonic()
        self.serve()
        while len(self.client):
            waited = time.monotonic() - start
            if timeout is not None and waited >= timeout:
                return False
            self._pause(waited, "messages were not acknowledged")
            self.serve()
        return True

    def _wait_for_room(self) -> None:
        start = time.monotonic()
        while self.serve() == 0:
            self._pause(time.monotonic() - start, "there was no room to send on")

    def _pause(self, waited: float, state: str) -> None:
        if waited - self._reminded_s >= _REMIND_S:
            log.warning("Kafka has not answered for %.0f s: %d messages wait", waited, len(self.client))
            self._reminded_s = waited
        elif waited < self._reminded_s:
            self._reminded_s = 0.0
        self.pause(_SHORT_PAUSE_S if waited < _PATIENT_AFTER_S else _LONG_PAUSE_S, state)

    def pause(self, seconds: float, state: str) -> None:
        """Sleep.

        Raises:
            DeliveryInterrupted: ``interrupt`` was called; the message says in which ``state``.
        """
        if self._interrupted.wait(seconds):
            raise DeliveryInterrupted(f"stopped while {state} ({len(self.client)} are on their way)")

    def interrupt(self) -> None:
        """Make all waiting end with ``DeliveryInterrupted``; may be called from any thread."""
        self._interrupted.set()

    def forget(self) -> None:
        """Drop all errors: the transaction that they belong to is aborted."""
        self._failure = None
        self._failure_rank = (-1, -1)

    def close(self) -> None:
        """Drop what is still queued."""
        self._interrupted.set()
        self.client.purge()
        self._poll()

    def _reported(self, error: KafkaError | None, message: Any) -> None:
        """A message failed (the client calls for failures only)."""
        if error is None or is_purged(error):
            return
        key, value = message.key(), message.value()
        self._remember(self._refused(error, message.topic(), key, value), _size(key, value))

    def _remember(self, failure: DeliveryError, size: int = 0) -> None:
        """Keep the gravest failure; of a rejected batch of messages, that of the largest one."""
        rank = (gravity(failure), size)
        if rank > self._failure_rank:
            self._failure, self._failure_rank = failure, rank

    def _refused(self, error: KafkaError, topic: str, key: bytes | None, value: bytes | None) -> DeliveryError:
        return message_failed(error, topic, key, _size(key, value), self.transactional_id, show_key=self._show_keys)

    def _noticed(self, error: KafkaError) -> None:
        """The client reports a state that belongs to no message."""
        if error.fatal():
            self._remember(call_failed("send", error, self.transactional_id))
        else:
            client_log.warning("%s", error.str())


def _size(key: bytes | None, value: bytes | None) -> int:
    return len(key or b"") + len(value or b"")
