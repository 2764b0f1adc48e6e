"""Source offsets in Kafka Connect's offsets topic, in a format that Debezium can read and write too.

An edge: Kafka. A record's key is ``["<connector name>",{"server":"<topic.prefix>"}]``, its value the offset as JSON or
a tombstone. The topic is compacted and shared by all connectors of a cluster; a key is always in the partition that
Java's producer chooses.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from rowtide.connector.config.kafka.producer_settings import idempotent_settings
from rowtide.connector.delivery.errors import OffsetStoreError, OffsetStoreUnavailable
from rowtide.connector.delivery.offset_store import OffsetRecord, is_offset_key, offset_key
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.store.topic_reader import StoredRecord, TopicReader, TopicReadError
from rowtide.schema_history.store.topic_writer import TopicWriteError, TopicWriter


class KafkaOffsetStore:
    """The offset of one connector in an existing offsets topic.

    Args:
        topic: ``offset.storage.topic``.
        name: the connector's name.
        prefix: ``topic.prefix``.
        producer: librdkafka settings for writing, including those of the connection.
        consumer: librdkafka settings for reading, including those of the connection.
        admin: librdkafka settings for looking up the topic, including those of the connection.
        timeout: in seconds; for ``save``, and for ``load`` without progress.
    """

    def __init__(
        self,
        topic: str,
        name: str,
        prefix: str,
        *,
        producer: Mapping[str, Any],
        consumer: Mapping[str, Any],
        admin: Mapping[str, Any],
        timeout: float = 60.0,
    ) -> None:
        self._topic = topic
        self._name = name
        self._prefix = prefix
        self._key = offset_key(name, prefix)
        self._reader = TopicReader(consumer, admin, timeout)
        plain = {k: v for k, v in producer.items() if not k.startswith("transaction")}
        at_once = {"linger.ms": 0, "message.timeout.ms": int(timeout * 1000)}
        self._writer = TopicWriter({**idempotent_settings(plain), **at_once}, timeout)

    def record(self, offset: SourceOffset | None) -> OffsetRecord:
        """The record that stores this offset, or deletes the stored one (``None``)."""
        return OffsetRecord(self._topic, self._key, None if offset is None else offset.to_json().encode())

    def load(self) -> SourceOffset | None:
        """The last committed offset of the connector. Waits for open transactions to end.

        Raises:
            OffsetStoreError: the topic cannot be read to its end, or the value is not a valid offset.
            OffsetStoreUnavailable: the topic cannot be read now.
        """
        last: dict[int, StoredRecord] = {}
        try:
            for record in self._records():
                if record.key == self._key or is_offset_key(record.key, self._name, self._prefix):
                    last[record.partition] = record
        except TopicReadError as failure:
            kind = OffsetStoreUnavailable if failure.retriable else OffsetStoreError
            raise kind(f"the source offset cannot be read: {failure}") from failure
        if not last:
            return None
        # The same key in another JSON formatting can be in another partition; then the newest record counts.
        newest = max(last.values(), key=lambda record: (record.timestamp, record.key == self._key))
        if newest.value is None:
            return None
        try:
            return SourceOffset.from_json(newest.value)
        except ValueError as failure:
            raise OffsetStoreError(
                f"topic {self._topic!r} partition {newest.partition} offset {newest.offset} is not a valid source "
                f"offset: {failure}"
            ) from failure

    def _records(self) -> Iterator[StoredRecord]:
        extents = self._reader.extents(self._topic)
        return iter(()) if extents is None else self._reader.read(self._topic, extents)

    def save(self, offset: SourceOffset | None) -> None:
        """Write the record, and wait for its acknowledgement; ``None`` writes a tombstone.

        Raises:
            OffsetStoreError: it is not acknowledged in time.
        """
        topic, key, value = self.record(offset)
        try:
            self._writer.send(topic, value, key)
            self._writer.wait()
        except TopicWriteError as failure:
            kind = OffsetStoreUnavailable if failure.retriable else OffsetStoreError
            raise kind(
                f"cannot write the source offset to topic {self._topic!r}: {failure}. The previous offset stays "
                "valid: after a restart the changes since then are sent again"
            ) from failure
