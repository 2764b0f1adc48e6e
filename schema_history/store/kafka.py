"""The schema history as a Kafka topic with one partition, like Debezium's KafkaSchemaHistory.

Keys are null and values are JSON texts, all in partition 0. All replicas acknowledge a record before ``append``
returns, and the connector appends the record of a statement before it delivers any row that depends on it.

History records are not part of the Kafka transactions of exactly-once delivery, and need not be. A record can be too
early: rows after it were rolled back, or the connector was killed. Then its position is after every stored offset, so
recovery ignores it; the statement is read from the binlog again, and its record is written a second time with the same
position and content. A record cannot be too late, because rows wait for its acknowledgement.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rowtide.schema_history.store.history_store import (
    HistoryStoreError,
    SchemaHistoryStore,
    StoredText,
    TrimmedHistory,
    UnusableHistory,
)
from rowtide.schema_history.store.topic_reader import Extent, TopicReader, TopicReadError
from rowtide.schema_history.store.topic_writer import TopicWriteError, TopicWriter

_PARTITION = 0


class KafkaSchemaHistory(SchemaHistoryStore):
    """A history topic; the location of a record is its offset.

    The topic must exist before the first ``append``: ``topics.admin`` creates and verifies it.

    Args:
        topic: ``schema.history.internal.kafka.topic``.
        producer: librdkafka settings for writing, including those of the connection.
        consumer: librdkafka settings for reading, including those of the connection.
        admin: librdkafka settings for looking up the topic, including those of the connection.
        timeout: seconds to wait for an acknowledgement, if the producer's settings have no limit, and seconds that
            reading may make no progress.
        query_timeout: seconds that one request of Kafka's admin interface may take; it is retried until ``timeout``
            has passed (``schema.history.internal.kafka.query.timeout.ms``).
        batch: number of records after which ``buffered`` waits for acknowledgements
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
        query_timeout: float = 60.0,
        batch: int = 1024,
    ) -> None:
        self._topic = topic
        self._reader = TopicReader(consumer, admin, timeout, query_timeout)
        self._writer = TopicWriter(producer, timeout)
        self._batch = batch
        self._buffering = False
        self._unacknowledged = 0
        self._topic_id: str | None = None

    def append(self, text: str) -> None:
        """Add a record and wait for its acknowledgement (while ``buffered``, only every ``batch`` records)."""
        if not self._unacknowledged:
            self._require_same_topic(f"cannot write to the schema history topic {self._topic!r}")
        try:
            self._writer.send(self._topic, text.encode(), partition=_PARTITION)
        except TopicWriteError as failure:
            raise self._failed(failure) from failure
        self._unacknowledged += 1
        if not self._buffering or self._unacknowledged >= self._batch:
            self._flush()

    def _require_same_topic(self, cannot: str) -> None:
        """Refuse to write into a recreated topic, which would look like a history but lack most of it.

        Args:
            cannot: the operation that is impossible if the topic cannot be looked up.

        Raises:
            UnusableHistory: the topic is not the one that contained the history.
            HistoryStoreError: the topic cannot be looked up.
        """
        try:
            found = self._reader.topic_id(self._topic)
        except TopicReadError as failure:
            raise _unreadable(f"{cannot}: {failure}", failure) from failure
        if found is None:
            return  # then the record cannot be written either, or the broker has no ids
        if self._topic_id not in (None, found):
            raise UnusableHistory(
                f"the schema history topic {self._topic!r} was deleted and created again while the connector ran. "
                "Start once with snapshot.mode=recovery, which is right if no captured table was altered since the "
                "stored position; otherwise take a new snapshot"
            )
        self._topic_id = found

    def _flush(self) -> None:
        if not self._unacknowledged:
            return
        self._unacknowledged = 0
        try:
            self._writer.wait()
        except TopicWriteError as failure:
            raise self._failed(failure) from failure

    def _failed(self, reason: TopicWriteError) -> HistoryStoreError:
        text = f"cannot write to the schema history topic {self._topic!r}: {reason}"
        if reason.too_large:
            return UnusableHistory(
                f"{text}. The record of a statement or a table has {reason.too_large} bytes. Allow larger records on "
                "the topic with max.message.bytes (on the brokers message.max.bytes; compressed records count), and, "
                "if you have set it, with schema.history.internal.producer.max.request.size. No row that depends on "
                "the record was sent"
            )
        if not reason.retriable:
            return UnusableHistory(
                f"{text}. Check the settings schema.history.internal.producer.*, and grant the connector's Kafka user "
                "WRITE on the topic. No row that depends on the record was sent"
            )
        return HistoryStoreError(
            f"{text}. No row that depends on the record was sent; the connector resumes from its stored offset when "
            "the topic can be written again"
        )

    @contextmanager
    def buffered(self) -> Iterator[None]:
        """Wait for acknowledgements every ``batch`` records and at the end of the block.

        Statements are rare, so the clients are closed after the block: each has three or four threads.
        """
        self._buffering = True
        try:
            yield
        finally:
            self._buffering = False
            self.close()

    def texts(self, start: int = 0) -> Iterator[StoredText]:
        """Yield every committed record from an offset."""
        extent = self._extent()
        if extent is None:
            return
        if extent.low > 0:
            yield StoredText(0, extent.low, "", self._lost(0, extent.low))
        begin = max(start, extent.low)
        expected = begin
        try:
            for record in self._reader.read(self._topic, {_PARTITION: Extent(begin, extent.high)}):
                if record.offset > expected and self._reader.gap(self._topic, _PARTITION, expected, record.offset):
                    yield StoredText(expected, record.offset, "", self._lost(expected, record.offset))
                expected = record.offset + 1
                raw = b"" if record.value is None else record.value
                yield StoredText(record.offset, expected, raw.decode("utf-8", "surrogateescape"))
        except TopicReadError as failure:
            raise _unreadable(f"the schema history cannot be recovered: {failure}", failure) from failure

    def _lost(self, begin: int, end: int) -> TrimmedHistory:
        if begin == 0:
            what = f"is trimmed: its first record has offset {end}, not 0"
        else:
            what = f"has lost records: there are none from offset {begin} to {end - 1}"
        return TrimmedHistory(
            f"the schema history topic {self._topic!r} {what}, so records were deleted (retention, compaction, or "
            "delete-records). Rebuild it with snapshot.mode=recovery, and set cleanup.policy=delete, retention.ms=-1 "
            "and retention.bytes=-1"
        )

    def describe(self, at: int) -> str:
        """Return the topic, the partition and the offset."""
        return f"topic {self._topic!r} partition {_PARTITION} offset {at}"

    def exists(self) -> bool:
        """Return whether the topic exists and anything was ever written to it, even if it was deleted since."""
        extent = self._extent()
        if extent is None or extent.high == 0:
            return False
        try:
            self._require_same_topic("the schema history cannot be read")
        finally:
            self._reader.close()
        return True

    def _extent(self) -> Extent | None:
        try:
            extents = self._reader.extents(self._topic)
        except TopicReadError as failure:
            raise _unreadable(f"the schema history cannot be read: {failure}", failure) from failure
        if extents is None:
            return None
        if len(extents) != 1:
            raise UnusableHistory(
                f"the schema history topic {self._topic!r} has {len(extents)} partitions and must have exactly 1, "
                "because the order of its records matters"
            )
        return extents[_PARTITION]

    def close(self) -> None:
        """Wait for the last acknowledgements, and close the connections; another record opens them again."""
        try:
            self._flush()
        finally:
            self._writer.close()
            self._reader.close()


def _unreadable(text: str, reason: TopicReadError) -> HistoryStoreError:
    return HistoryStoreError(text) if reason.retriable else UnusableHistory(text)
