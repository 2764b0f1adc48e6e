"""The sinks that write to Kafka, with at-least-once and with exactly-once delivery.

At least once: an idempotent producer with acks=all; the offset is stored only after all messages before it are
acknowledged. After a crash, at most the messages after the last stored offset are sent again. Exactly once: messages
and offset are written in one Kafka transaction, so that consumers with ``isolation.level=read_committed`` see both or
neither; opening the sink fences older instances with the same transactional id.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol

from rowtide.connector.delivery.errors import DeliveryError, ProducerFenced, TransactionExpired
from rowtide.connector.delivery.kafka.offset_store import KafkaOffsetStore
from rowtide.connector.delivery.offset_store import OffsetRecord, OffsetStore
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset

_ABORT_S = 1.0
"""How long the abort of a transaction may take when the sink is closed."""


class SinkProducer(Protocol):
    """The methods of a producer that a sink needs: :class:`RecordProducer` or ``NativeProducer``."""

    transactional_id: str
    transaction_timeout_s: float
    problem: str | None

    @property
    def producer_id(self) -> int | None: ...

    @property
    def waiting(self) -> int: ...
    def send(self, batches: Sequence[Batch]) -> None: ...
    def put(self, record: OffsetRecord) -> None: ...
    def serve(self, *, idle: bool = False) -> None: ...
    def call_when_due(self, call: Callable[[], None]) -> bool: ...
    def drain(self, timeout: float | None = None) -> bool: ...
    def init_transactions(self, timeout: float) -> None: ...
    def begin_transaction(self) -> None: ...
    def commit_transaction(self) -> None: ...
    def abort_transaction(self, timeout: float | None = None) -> None: ...
    def forget(self) -> None: ...
    def interrupt(self) -> None: ...
    def close(self) -> None: ...


class _KafkaSink:
    """The common part of both sinks."""

    def __init__(self, producer: SinkProducer) -> None:
        self._producer = producer

    @property
    def problem(self) -> str | None:
        """The last error of the client since the last commit."""
        return self._producer.problem

    def call_when_due(self, call: Callable[[], None]) -> bool:
        """Have ``call`` called when there is something to poll for, if the producer supports this."""
        return self._producer.call_when_due(call)

    def interrupt(self) -> None:
        """Interrupt blocked calls."""
        self._producer.interrupt()


class IdempotentSink(_KafkaSink):
    """Delivers at least once.

    Args:
        producer: made with ``idempotent_settings``.
        offsets: the store of offsets.
    """

    transactional = False

    def __init__(self, producer: SinkProducer, offsets: OffsetStore) -> None:
        super().__init__(producer)
        self._offsets = offsets

    def open(self) -> None:
        """Do nothing: there is no instance to fence."""

    def send(self, batches: Sequence[Batch]) -> None:
        """Queue the messages."""
        self._producer.send(batches)

    def poll(self) -> None:
        """Process delivery reports, and send messages that wait for their batch to be complete."""
        self._producer.serve(idle=True)

    def waiting(self) -> int:
        """Return the number of unacknowledged messages."""
        return self._producer.waiting

    def commit(self, offset: SourceOffset, timeout: float | None = None) -> bool:
        """Wait for all acknowledgements, then store the offset."""
        if not self._producer.drain(timeout):
            return False
        record = self._offsets.record(offset)
        if record is None:
            self._offsets.save(offset)
        else:
            self._producer.put(record)
            if not self._producer.drain(timeout):
                return False
        self._producer.problem = None
        return True

    def rollback(self) -> None:
        """Do nothing: without a transaction, messages cannot be taken back."""

    def close(self) -> None:
        """Drop unacknowledged messages; no stored offset is after them."""
        self._producer.close()


class TransactionalSink(_KafkaSink):
    """Delivers exactly once.

    Args:
        producer: made with ``transactional_settings``.
        offsets: provides the record that stores an offset.
        open_timeout: seconds that ``open`` may take.
        clock: seconds since the epoch; unlike a monotonic clock, it moves while the machine sleeps.
    """

    transactional = True

    def __init__(
        self,
        producer: SinkProducer,
        offsets: KafkaOffsetStore,
        *,
        open_timeout: float = 60.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(producer)
        self._offsets = offsets
        self._open_timeout = open_timeout
        self._clock = clock
        self._in_transaction = False
        self._begun_at = 0.0

    @property
    def transaction_timeout_s(self) -> float:
        """The time that a transaction may be open (``transaction.timeout.ms``), in seconds."""
        return self._producer.transaction_timeout_s

    @property
    def producer_id(self) -> int | None:
        """The id that Kafka gave the producer; ``None`` if it is not known."""
        return self._producer.producer_id

    def open(self) -> None:
        """Fence older instances and end their open transactions. From now on, the stored offset is final."""
        self._producer.init_transactions(self._open_timeout)

    def send(self, batches: Sequence[Batch]) -> None:
        """Queue the messages in the open transaction, or in a new one."""
        with self._expiry():
            self._begin()
            self._producer.send(batches)

    def _begin(self) -> None:
        if self._in_transaction:
            return
        self._producer.begin_transaction()
        self._in_transaction = True
        self._begun_at = self._clock()

    @contextmanager
    def _expiry(self) -> Iterator[None]:
        """Distinguish an expired transaction from a second instance: Kafka fences the producer in both cases."""
        try:
            yield
        except ProducerFenced as failure:
            limit = self._producer.transaction_timeout_s
            if not self._in_transaction or self._clock() - self._begun_at < limit:
                raise
            raise TransactionExpired(
                f"a transaction was open for longer than transaction.timeout.ms={limit * 1000:.0f}, and Kafka aborted "
                "it: this process was suspended, or Kafka did not answer"
            ) from failure

    def poll(self) -> None:
        """Process delivery reports, and send messages that wait for their batch to be complete."""
        with self._expiry():
            self._producer.serve(idle=True)

    def waiting(self) -> int:
        """Return 0, because a commit waits for all messages."""
        return 0

    def commit(self, offset: SourceOffset, timeout: float | None = None) -> bool:
        """Add the offset to the transaction and commit it."""
        with self._expiry():
            self._begin()
            self._producer.put(self._offsets.record(offset))
            if timeout is not None and not self._producer.drain(timeout):
                return False
            self._producer.commit_transaction()
        self._in_transaction = False
        self._producer.problem = None
        return True

    def rollback(self) -> None:
        """Abort the open transaction."""
        if self._in_transaction:
            with self._expiry():
                self._producer.abort_transaction()
            self._in_transaction = False
        self._producer.forget()

    def close(self) -> None:
        """Abort the open transaction, so that consumers need not wait for its timeout, and drop queued messages."""
        if self._in_transaction:
            with suppress(DeliveryError):
                self._producer.abort_transaction(_ABORT_S)
        self._producer.close()
