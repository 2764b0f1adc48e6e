"""Checks whether a topic has, or may have had, a newer record with the same key as one of a dead letter; pure."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import NamedTuple

from rowtide.connector.delivery.stored_dead_letters import Letter
from rowtide.connector.records.batch import Batch, Headers, Message
from rowtide.connector.rows.messages import message_bytes
from rowtide.envelope.converters.registry import SCHEMA_ID_HEADERS
from rowtide.schema_history.store.topic_reader import Extent, StoredRecord

_ID_SIZE = 5
"""Bytes of the id of a schema in a registry before a key, with the zero that precedes it."""


class Compared(NamedTuple):
    """The messages of a batch, compared with the records of its topic.

    Attributes:
        older: the batch of messages without a record that is as new or newer.
        newer: the number of messages with a newer record.
        unknown: the number of others that may have or have had one.
    """

    older: Batch
    newer: int
    unknown: int


class Seen(NamedTuple):
    """The known facts about the newest records of a topic.

    Attributes:
        sent_at: when the newest record of each key was sent.
        since: the time since which records were read; 0 for all.
        key_schemas: when the newest record with each schema of keys was sent: the same row has a different key in each.
        without_key: when the newest record without a key was sent, which may be that of a TRUNCATE; -1 if none was.
        removed_until: the time until which Kafka may have removed records at the beginning of a partition.
        tombstones_ms: the minimum time that Kafka keeps the tombstone of a key.
        exact: whether the times are those of the producer, which gives a replayed record that of its dead letter.
        own_time: whether a transform chose the times, which then do not tell when the records were sent.
    """

    sent_at: Mapping[bytes, int]
    since: int
    key_schemas: Mapping[bytes, int] = MappingProxyType({})
    without_key: int = -1
    removed_until: float = 0
    tombstones_ms: float = math.inf
    exact: bool = True
    own_time: bool = False

    @classmethod
    def of(
        cls,
        records: Iterable[StoredRecord],
        since: int,
        extents: Mapping[int, Extent],
        read: Mapping[int, Extent],
        settings: Mapping[str, str],
        *,
        own_time: bool,
    ) -> "Seen":
        """Return the facts from records.

        Args:
            records: those of the topic since a time.
            since: the time; 0 for all of them.
            extents: all offsets of each partition.
            read: the offsets of the records.
            settings: those of the topic.
            own_time: whether a transform chose the records' times.
        """
        # Kafka may have removed records of that time at the beginning of these partitions.
        cut = {number for number, extent in extents.items() if extent.low and read[number].low == extent.low}
        removed_until, without_key = 0, -1
        sent_at: dict[bytes, int] = {}
        key_schemas: dict[bytes, int] = {}
        for record in records:
            # The last one is not always the newest: it may be a replayed one, or in another partition.
            if record.key is None:
                without_key = max(without_key, record.timestamp)
            else:
                key = _digest(record.key)
                sent_at[key] = max(sent_at.get(key, 0), record.timestamp)
                schema = _schema(record.key, record.headers)
                key_schemas[schema] = max(key_schemas.get(schema, 0), record.timestamp)
            if record.partition in cut and not own_time:
                cut.remove(record.partition)
                removed_until = max(removed_until, record.timestamp)
        compacted = "compact" in settings.get("cleanup.policy", "")
        return cls(
            sent_at,
            since,
            key_schemas,
            without_key,
            math.inf if cut else removed_until,
            int(settings.get("delete.retention.ms") or 0) if compacted else math.inf,
            settings.get("message.timestamp.type") != "LogAppendTime",
            own_time,
        )

    def compared(self, batch: Batch, letter: Letter, now_ms: float) -> Compared:
        """Divide the messages of a dead letter by the newest records of their keys.

        Messages without a key have no newer record, and count as older.

        Args:
            batch: the messages.
            letter: the dead letter.
            now_ms: the current time, in milliseconds since the epoch.
        """
        before = 0 if self.own_time else letter.timestamp
        all_kept = self.removed_until <= letter.timestamp and now_ms - letter.timestamp < self.tombstones_ms
        all_kept = all_kept and self.without_key < before
        messages: list[Message] = []
        newer = unknown = 0
        for message in batch.messages:
            key, _, headers = message
            sent_at = None if key is None else self.sent_at.get(_digest(key))
            if key is None or (
                all_kept
                and (sent_at is None or sent_at < before)
                and all(at < before for one, at in self.key_schemas.items() if one != _schema(key, headers))
            ):
                messages.append(message)
            elif sent_at is not None and sent_at > letter.sent_again and self.exact and not self.own_time:
                newer += 1
            else:
                unknown += 1
        return Compared(batch._replace(messages=messages, size=message_bytes(messages)), newer, unknown)


def _schema(key: bytes, headers: Headers) -> bytes:
    """Return an identification of the schema of a key.

    It is an id before it or in a header, a schema in JSON, or the names of the fields in JSON; empty without any.
    """
    if key.startswith(b"\0"):
        return key[:_ID_SIZE]
    schema, found, _ = key.partition(b',"payload":')
    if found and schema.startswith(b'{"schema":'):
        return schema
    if key.startswith(b"{"):
        with suppress(ValueError):
            return json.dumps(list(json.loads(key))).encode()
    return dict(headers).get(SCHEMA_ID_HEADERS["key"]) or b""


def _digest(key: bytes) -> bytes:
    return hashlib.blake2b(key, digest_size=16).digest()
