"""Summaries in a Kafka topic with one partition, next to the topic of the history.

A summary can be larger than a message, so it is split into parts; the key of each part names the summary, the part's
number and the number of parts. Summaries older than the newest two are deleted if the Kafka user may delete records.
"""

import json
import logging
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from rowtide.schema_history.compaction.summary_store import SUMMARIES_KEPT
from rowtide.schema_history.store.history_store import HistoryStoreError, UnusableHistory
from rowtide.schema_history.store.topic_reader import TopicReader, TopicReadError
from rowtide.schema_history.store.topic_writer import TopicWriteError, TopicWriter

log = logging.getLogger(__name__)

_PART = 512 * 1024
_PARTITION = 0
_ERRORS_ONLY = 2
_TIMEOUT_S = 60.0
"""How long writing may take, and how long reading may make no progress."""


class KafkaSummaries:
    """A topic with summaries. It must exist before the first ``save``.

    Args:
        topic: name of the topic.
        producer: librdkafka settings for writing, including those of the connection.
        consumer: librdkafka settings for reading, including those of the connection.
        admin: librdkafka settings for looking up the topic, including those of the connection.
    """

    def __init__(
        self, topic: str, producer: Mapping[str, Any], consumer: Mapping[str, Any], admin: Mapping[str, Any]
    ) -> None:
        self._topic = topic
        self._admin = {"log_level": _ERRORS_ONLY, **admin}
        self._reader = TopicReader(consumer, admin, _TIMEOUT_S)
        self._writer = TopicWriter(producer, _TIMEOUT_S)

    def load(self) -> Iterator[bytes]:
        """Yield the summaries, newest first."""
        for _, parts in reversed(self._complete()):
            yield b"".join(parts)

    def _complete(self) -> list[tuple[int, list[bytes]]]:
        """Return the complete summaries, oldest first: the offset of the first part, and all parts."""
        found: dict[str, tuple[int, int, list[bytes]]] = {}
        try:
            extents = self._reader.extents(self._topic) or {}
            for record in self._reader.read(self._topic, extents):
                try:
                    key = json.loads(record.key or b"")
                    name, part, parts = key["summary"], int(key["part"]), int(key["parts"])
                except (ValueError, KeyError, TypeError):
                    continue
                known = found.setdefault(name, (record.offset, parts, []))
                if part == len(known[2]):
                    known[2].append(record.value or b"")
        except TopicReadError as failure:
            raise HistoryStoreError(f"the compact schema history cannot be read: {failure}") from failure
        return [(first, parts) for first, count, parts in found.values() if len(parts) == count]

    def save(self, packed: bytes) -> None:
        """Write the parts, and delete records older than the previous summary."""
        before = self._complete()
        name = uuid.uuid4().hex
        parts = [packed[at : at + _PART] for at in range(0, len(packed), _PART)]
        try:
            for number, part in enumerate(parts):
                key = json.dumps({"summary": name, "part": number, "parts": len(parts)})
                self._writer.send(self._topic, part, key.encode(), _PARTITION)
            self._writer.wait()
        except TopicWriteError as failure:
            kind = HistoryStoreError if failure.retriable else UnusableHistory
            raise kind(f"cannot write the compact schema history {self._topic!r}: {failure}") from failure
        finally:
            self._writer.close()
        if len(before) >= SUMMARIES_KEPT:
            self._delete(before[1 - SUMMARIES_KEPT][0])

    def _delete(self, end: int) -> None:
        """Delete the records before an offset; they are kept if the user has no right to delete them."""
        admin = AdminClient(self._admin)
        try:
            for future in admin.delete_records([TopicPartition(self._topic, _PARTITION, end)]).values():
                future.result(_TIMEOUT_S)
        except (KafkaException, TimeoutError) as failure:
            log.info("old summaries are not deleted from topic %s: %s", self._topic, failure)
