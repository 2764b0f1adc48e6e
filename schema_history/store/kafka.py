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

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rowtide.schema_history.store.history_store import HistoryStoreError, SchemaHistoryStore, StoredText, TrimmedHistory
from rowtide.schema_history.store.topic_reader import Extent, TopicReader, TopicReadError
from rowtide.schema_history.store.topic_writer import TopicWriteError, TopicWriter

_PARTITION = 0


class KafkaSchemaHistory(SchemaHistoryStore):
    """A history topic. It must exist before the first ``append``: ``topics.admin`` creates and verifies it.

    Args:
        topic: ``schema.history.internal.kafka.topic``.
        producer: librdkafka settings for writing, the connection's included.
        consumer: librdkafka settings for reading, the connection's included.
        admin: librdkafka settings for looking up the topic, the connection's included.
        timeout: seconds to wait for an acknowledgement if the producer's settings do not say, and without progress
            while reading.
        query_timeout: seconds that one question to Kafka's admin interface may take; then it is asked again, as long
            as ``timeout`` allows (``schema.history.internal.kafka.query.timeout.ms``).
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
        query_timeout: float = 60.0,
        batch: int = 1024,
    ) -> None:
        self._topic = topic
        self._reader = TopicReader(consumer, admin, timeout, query_timeout)
        self._writer = TopicWriter(producer, timeout)
        self._batch = batch
        self._buffering = False
        self._unsafe = 0

    def append(self, text: str) -> None:
        """Add a record and wait for its acknowledgement (while ``buffered``: for one in ``batch`` records)."""
        try:
            self._writer.send(self._topic, text.encode(), partition=_PARTITION)
        except TopicWriteError as failure:
            raise self._failed(failure) from failure
        self._unsafe += 1
        if not self._buffering or self._unsafe >= self._batch:
            self._flush()

    def _flush(self) -> None:
        if not self._unsafe:
            return
        self._unsafe = 0
        try:
            self._writer.wait()
        except TopicWriteError as failure:
            raise self._failed(failure) from failure

    def _failed(self, reason: TopicWriteError) -> HistoryStoreError:
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

    def texts(self, start: int = 0) -> Iterator[StoredText]:
        """Every committed record from an offset on, which is its place."""
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
            raise HistoryStoreError(f"the schema history cannot be recovered: {failure}") from failure

    def _lost(self, begin: int, end: int) -> TrimmedHistory:
        if begin == 0:
            what = f"is trimmed: its first record stands at offset {end}, not 0"
        else:
            what = f"has lost records: there is none from offset {begin} to {end - 1}"
        return TrimmedHistory(
            f"the schema history topic {self._topic!r} {what}, so records were deleted (retention, compaction, or "
            "delete-records). Rebuild it with snapshot.mode=recovery, and set cleanup.policy=delete, retention.ms=-1 "
            "and retention.bytes=-1"
        )

    def place(self, at: int) -> str:
        """The topic, and the offset in it."""
        return f"topic {self._topic!r} partition {_PARTITION} offset {at}"

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
            self._writer.close()
