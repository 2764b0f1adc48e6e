"""Source offsets in Kafka Connect's offsets topic, in a format that Debezium can also read and write.

A record's key is ``["<connector name>",{"server":"<topic.prefix>"}]``, its value the offset as JSON or
a tombstone. The topic is compacted and shared by all connectors of a cluster; a key is always in the partition that
Java's producer chooses.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rowtide.connector.config.kafka.producer_settings import idempotent_settings
from rowtide.connector.delivery.errors import OffsetStoreError, OffsetStoreUnavailable
from rowtide.connector.delivery.kafka import offsets_log
from rowtide.connector.delivery.kafka.writer import THIS_PROCESS, Writer
from rowtide.connector.delivery.offset_store import OffsetRecord, is_offset_key, offset_key
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.store.topic_reader import Extent, StoredRecord, TopicReader, TopicReadError
from rowtide.schema_history.store.topic_writer import TopicWriteError, TopicWriter


@dataclass(frozen=True, slots=True)
class LastWrite:
    """The last offset record of a connector.

    Attributes:
        partition: its partition.
        offset: its offset there.
        at_ms: when it was written, in milliseconds since the epoch by its producer's clock.
        writer: the process of rowtide that wrote it; ``None`` if another program did.
    """

    partition: int
    offset: int
    at_ms: int
    writer: Writer | None


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
        writer: this process, whose name is in the records.

    Attributes:
        topic: the topic.
        connector: the connector's name.
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
        writer: Writer = THIS_PROCESS,
    ) -> None:
        self.topic = topic
        self._headers = (writer.header(),)
        self.connector = name
        self._prefix = prefix
        self._key = offset_key(name, prefix)
        self._reader = TopicReader(consumer, admin, timeout)
        self._read_extents: dict[int, Extent] | None = None
        self._last: StoredRecord | None = None
        self._log: offsets_log.OffsetsLog | None = None
        plain = {k: v for k, v in producer.items() if not k.startswith("transaction")}
        at_once = {"linger.ms": 0, "message.timeout.ms": int(timeout * 1000)}
        self._writer = TopicWriter({**idempotent_settings(plain), **at_once}, timeout)

    def record(self, offset: SourceOffset | None) -> OffsetRecord:
        """Return the record that stores this offset, or deletes the stored one (``None``)."""
        return OffsetRecord(self.topic, self._key, None if offset is None else offset.to_json().encode(), self._headers)

    def is_own_key(self, key: bytes | None) -> bool:
        """Return whether it is the key of the connector's offsets, in any JSON formatting."""
        return key == self._key or is_offset_key(key, self.connector, self._prefix)

    def follow(self, take: offsets_log.Take) -> None:
        """Read the topic together with the other connectors of this process, until :meth:`leave`.

        Args:
            take: receives the records of the connector's offsets that are written from now on, in a thread.

        Raises:
            OffsetStoreError: the topic cannot be read.
            OffsetStoreUnavailable: it cannot currently be read.
        """
        with self._reading():
            self._log = offsets_log.follow(self, self._reader, self.topic, self.is_own_key, take)

    def leave(self) -> None:
        """End following, without waiting for Kafka."""
        followed, self._log = self._log, None
        if followed is not None:
            offsets_log.leave(self, followed)

    def load(self) -> SourceOffset | None:
        """Return the last committed offset of the connector. Waits for open transactions to end.

        Raises:
            OffsetStoreError: the topic cannot be read to its end, or the value is not a valid offset.
            OffsetStoreUnavailable: the topic cannot currently be read.
        """
        newest = self._newest()
        if newest is None or newest.value is None:
            return None
        try:
            return SourceOffset.from_json(newest.value)
        except ValueError as failure:
            raise OffsetStoreError(
                f"topic {self.topic!r} partition {newest.partition} offset {newest.offset} is not a valid source "
                f"offset: {failure}"
            ) from failure

    def last_write(self) -> LastWrite | None:
        """Return the last write of an offset of the connector; ``None`` if none was ever stored.

        Raises:
            OffsetStoreError: the topic cannot be read to its end.
        """
        newest = self._newest()
        if newest is None:
            return None
        return LastWrite(newest.partition, newest.offset, newest.timestamp, Writer.parse(newest.headers))

    def _newest(self) -> StoredRecord | None:
        with self._reading():
            extents = self._reader.extents(self.topic)
            if extents != self._read_extents:  # a start looks twice, and often nothing is written in between
                self._last = self._read(extents or {})
                self._read_extents = extents
        return self._last

    def _read(self, extents: Mapping[int, Extent]) -> StoredRecord | None:
        followed = self._log
        if followed is not None:
            found = followed.newest(self.is_own_key, extents, self._reader)
        else:
            last: dict[int, StoredRecord] = {}
            for record in self._reader.read(self.topic, extents):
                if self.is_own_key(record.key):
                    last[record.partition] = record
            found = list(last.values())
        # The same key with different JSON formatting can be in another partition; the newest record is then used.
        return max(found, key=lambda record: (record.timestamp, record.key == self._key), default=None)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except TopicReadError as failure:
            kind = OffsetStoreUnavailable if failure.retriable else OffsetStoreError
            raise kind(f"the source offset cannot be read: {failure}") from failure

    def save(self, offset: SourceOffset | None) -> None:
        """Write the record, and wait for its acknowledgement; ``None`` writes a tombstone.

        Raises:
            OffsetStoreError: it is not acknowledged in time.
        """
        topic, key, value, headers = self.record(offset)
        try:
            self._writer.send(topic, value, key, headers=headers)
            self._writer.wait()
        except TopicWriteError as failure:
            kind = OffsetStoreUnavailable if failure.retriable else OffsetStoreError
            raise kind(
                f"cannot write the source offset to topic {self.topic!r}: {failure}. The previous offset stays "
                "valid: after a restart, the changes since then are sent again"
            ) from failure
