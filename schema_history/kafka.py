"""The schema history as a Kafka topic with one partition: Debezium's KafkaSchemaHistory.

An edge: it talks to Kafka. Keys are null, values are JSON texts, all stand in partition 0; every record is
acknowledged by all replicas before ``append`` returns. The connector appends the record of a statement before it hands
on any row that needs it.

History records are not part of the transactions that carry rows and offsets in exactly-once delivery, and need not be.
A record that is written too early, because the rows after it were rolled back or the connector was killed, stands at
a position that no stored offset has reached: recovery stops before it, the statement is read from the binlog again and
its record written a second time, at the same position and with the same content. A record that came too late would
leave rows without their structure; that cannot happen, for rows are held back until it is acknowledged.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from rowtide.schema_history.store import HistoryStoreError, TrimmedHistory, json_object, parsed
from rowtide.schema_history.topic_reader import Extent, StoredRecord, TopicReader, TopicReadError

T = TypeVar("T")

_PRODUCER: dict[str, Any] = {"enable.idempotence": True, "acks": "all", "linger.ms": 0}
_PARTITION = 0
_ERRORS_ONLY = 2
"""librdkafka's own log, on standard error: what matters of it is raised."""


class KafkaSchemaHistory:
    """A history topic. It must exist before the first ``append``: ``topics.admin`` creates and verifies it.

    Args:
        topic: ``schema.history.internal.kafka.topic``.
        producer: librdkafka settings for writing, the connection's included.
        consumer: librdkafka settings for reading, the connection's included.
        admin: librdkafka settings for looking up the topic, the connection's included.
        timeout: seconds to wait for an acknowledgement, and without progress while reading.
        batch: how many records are written between two waits while ``buffered``
            (``schema.history.internal.kafka.buffer.batch.size``).
    """

    def __init__(
        self,
        topic: str,
        producer: Mapping[str, Any],
        consumer: Mapping[str, Any],
        admin: Mapping[str, Any],
        *,
        timeout: float = 60.0,
        batch: int = 1024,
    ) -> None:
        self._topic = topic
        self._settings = {"log_level": _ERRORS_ONLY, **producer, **_PRODUCER, "message.timeout.ms": int(timeout * 1000)}
        self._reader = TopicReader(consumer, admin, timeout)
        self._timeout = timeout
        self._batch = batch
        self._producer: Producer | None = None
        self._buffering = False
        self._unsafe = 0
        self._errors: list[KafkaError] = []

    def append(self, text: str) -> None:
        """Add a record and wait for its acknowledgement (while ``buffered``: for one in ``batch`` records)."""
        if self._producer is None:
            self._producer = Producer(self._settings)
        try:
            self._producer.produce(self._topic, text.encode(), None, _PARTITION, on_delivery=self._delivered)
        except (KafkaException, BufferError) as failure:
            raise self._failed(str(failure)) from failure
        self._unsafe += 1
        if not self._buffering or self._unsafe >= self._batch:
            self._flush()

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._errors.append(error)

    def _flush(self) -> None:
        if self._producer is None or not self._unsafe:
            return
        left = self._producer.flush(self._timeout + 5)
        self._unsafe = 0
        if self._errors:
            errors, self._errors = self._errors, []
            raise self._failed(errors[0].str())
        if left:
            raise self._failed(f"no acknowledgement within {self._timeout:.0f} s")

    def _failed(self, reason: str) -> HistoryStoreError:
        return HistoryStoreError(
            f"cannot write to the schema history topic {self._topic!r}: {reason}. No row that needs the record was "
            "sent; the connector goes on from its stored offset when the topic can be written again"
        )

    @contextmanager
    def buffered(self) -> Iterator[None]:
        """Wait for acknowledgements once in ``batch`` records and at the end of the block."""
        self._buffering = True
        try:
            yield
        finally:
            self._buffering = False
            self._flush()

    def replay(self) -> Iterator[str]:
        """Every committed record."""
        return self.replay_as(json_object)

    def replay_as(self, parse: Callable[[str], T]) -> Iterator[T]:
        """Every committed record, parsed."""
        extent = self._extent()
        if extent is None:
            return
        if extent.low > 0:
            raise TrimmedHistory(
                f"the schema history topic {self._topic!r} is trimmed: its first record stands at offset {extent.low}, "
                "not 0, so records were deleted (retention, or delete-records). Rebuild it with snapshot.mode=recovery "
                "and a new topic, and set retention.ms=-1 and retention.bytes=-1"
            )
        try:
            for record in self._reader.read(self._topic, {_PARTITION: extent}):
                yield parsed(*self._text(record), parse)
        except TopicReadError as failure:
            raise HistoryStoreError(f"the schema history cannot be recovered: {failure}") from failure

    def _text(self, record: StoredRecord) -> tuple[str, str]:
        place = f"topic {self._topic!r} partition {record.partition} offset {record.offset}"
        raw = b"" if record.value is None else record.value
        return parsed(raw.decode("utf-8", "surrogateescape"), place, _strict), place

    def exists(self) -> bool:
        """Whether the topic exists and anything was ever written to it (also if that is deleted since)."""
        extent = self._extent()
        return extent is not None and extent.high > 0

    def _extent(self) -> Extent | None:
        try:
            extents = self._reader.extents(self._topic)
        except TopicReadError as failure:
            raise HistoryStoreError(f"the schema history cannot be read: {failure}") from failure
        if extents is None:
            return None
        if len(extents) != 1:
            raise HistoryStoreError(
                f"the schema history topic {self._topic!r} has {len(extents)} partitions and must have exactly 1, for "
                "its order is its meaning"
            )
        return extents[_PARTITION]

    def close(self) -> None:
        """Write what is still buffered and close the connection."""
        try:
            self._flush()
        finally:
            self._producer = None


def _strict(text: str) -> str:
    """Refuse bytes that are not UTF-8; raises ``ValueError``."""
    text.encode()
    return text
