"""Reads an offsets topic once for all connectors of a process, and follows it.

The topic is shared by all connectors of a fleet or of a Kafka Connect cluster, and gets a record with every commit of
each of them. If every connector read it, a worker would read each record as often as it runs connectors.
"""

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from rowtide.schema_history.store.topic_reader import (
    UNREADABLE,
    Extent,
    StoredRecord,
    TopicReader,
    TopicReadError,
    stored_record,
)

log = logging.getLogger(__name__)

_OF_A_FOLLOWER: dict[str, Any] = {"isolation.level": "read_committed", "fetch.wait.max.ms": 100}
_BATCH = 1000
_TICK_S = 0.5

IsOwn = Callable[[bytes | None], bool]
"""Returns whether a key is the one of a connector's offsets."""
Take = Callable[[Message], None]
"""Receives a record with such a key."""


@dataclass(slots=True)
class _Follower:
    """A connector that receives its records.

    Attributes:
        is_own: decides by the key.
        take: receives the record.
        begin: by partition, the offset from which it receives them; 0 for partitions that are newer than it.
    """

    is_own: IsOwn
    take: Take
    begin: Mapping[int, int]


@dataclass(slots=True)
class _Partition:
    """A partition of the topic.

    Attributes:
        position: the offset up to which it was read.
        newest: the newest record of each key.
    """

    position: int = 0
    newest: dict[bytes | None, Message] = field(default_factory=dict)


class OffsetsLog:
    """The newest record of each key of an offsets topic. It ends with its last follower.

    Args:
        topic: the topic.
        settings: of the consumer, as a ``TopicReader`` has them.
    """

    def __init__(self, topic: str, settings: Mapping[str, Any]) -> None:
        self._topic = topic
        self._settings = {**settings, **_OF_A_FOLLOWER}
        self._partitions: dict[int, _Partition] = {}
        self._followers: dict[object, _Follower] = {}
        self._interested: dict[bytes | None, list[_Follower]] = {}
        self._changed = threading.Condition()
        self._failure: KafkaException | None = None
        self._thread = threading.Thread(target=self._run, name=f"offsets/{topic}", daemon=True)

    @property
    def usable(self) -> bool:
        """Whether it reads, or has not begun yet."""
        return self._failure is None

    def follow(self, who: object, is_own: IsOwn, take: Take, extents: Mapping[int, Extent]) -> None:
        """Pass the records that are written from now on to ``take``, in the thread of the log.

        Args:
            who: identifies the follower.
            is_own: decides by the key which records these are.
            take: receives them.
            extents: the current extents of the topic.
        """
        with self._changed:
            begin = {number: extent.high for number, extent in extents.items()}
            self._followers[who] = _Follower(is_own, take, begin)
            self._interested.clear()
            for number in extents:
                self._partitions.setdefault(number, _Partition())
            if self._thread.ident is None:
                self._thread.start()

    def leave(self, who: object) -> bool:
        """End following, and return whether the log ends with it. This does not wait for Kafka."""
        with self._changed:
            self._followers.pop(who, None)
            self._interested.clear()
            return not self._followers

    def newest(self, is_own: IsOwn, extents: Mapping[int, Extent], reader: TopicReader) -> list[StoredRecord]:
        """Return the newest record of a connector in each partition that has one.

        Args:
            is_own: decides by the key.
            extents: the extents of the topic: all records within them are read before.
            reader: explains what is wrong if a partition cannot be read to its end.

        Raises:
            TopicReadError: reading makes no progress, or has failed.
        """
        with self._changed:
            self._await(extents, reader)
            found = list[Message]()
            for number, extent in extents.items():
                own = [message for key, message in self._partitions[number].newest.items() if is_own(key)]
                found += [one for one in own if extent.low <= (one.offset() or 0)]
        last = {one.partition(): one for one in sorted(found, key=lambda one: one.offset() or 0)}
        return [stored_record(message) for message in last.values()]

    def _await(self, extents: Mapping[int, Extent], reader: TopicReader) -> None:
        """Wait, as ``newest``."""
        ends = {number: extent.high for number, extent in extents.items() if extent.high > extent.low}
        for number in ends:  # the topic may have new ones
            self._partitions.setdefault(number, _Partition())
        seen: dict[int, int] = {}
        progress = time.monotonic()
        while True:
            if self._failure is not None:
                raise reader.unreadable(self._topic, self._failure) from self._failure
            positions = {
                number: position
                for number, end in ends.items()
                if (position := self._partitions[number].position) < end
            }
            if not positions:
                return
            if positions != seen:
                seen, progress = positions, time.monotonic()
            elif time.monotonic() - progress > reader.timeout:
                break
            self._changed.wait(_TICK_S)
        number, position = next(iter(seen.items()))
        raise TopicReadError(reader.stuck(self._topic, number, position, ends[number]), retriable=True)

    def _run(self) -> None:
        try:
            self._read()
        except KafkaException as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 - whatever it is: otherwise a start would wait in vain
            self._fail(KafkaException(KafkaError(KafkaError._FAIL, str(error))))  # noqa: SLF001

    def _read(self) -> None:
        consumer = Consumer(self._settings)
        assigned: set[int] = set()
        try:
            while True:
                with self._changed:
                    if not self._followers:
                        return
                    new = self._partitions.keys() - assigned
                if new:
                    self._read_all(consumer, new)
                    assigned |= new
                first = consumer.poll(_TICK_S)
                if first is not None:
                    self._apply(consumer, [first, *consumer.consume(_BATCH, 0)])
        finally:
            consumer.close()

    def _read_all(self, consumer: Consumer, partitions: Collection[int]) -> None:
        consumer.incremental_assign([TopicPartition(self._topic, one, OFFSET_BEGINNING) for one in partitions])

    def _fail(self, error: KafkaException) -> None:
        log.warning("the offsets topic %s is no longer followed: %s", self._topic, error.args[0].str())
        with self._changed:
            self._failure = error
            self._changed.notify_all()

    def _apply(self, consumer: Consumer, messages: Sequence[Message]) -> None:
        calls = list[tuple[Take, Message]]()
        with self._changed:
            for message in messages:
                error, number, offset = message.error(), message.partition() or 0, message.offset() or 0
                if error is None:
                    partition = self._partitions[number]
                    partition.newest[message.key()] = message
                    partition.position = offset + 1
                    calls += [
                        (one.take, message)
                        for one in self._followers_of(message.key())
                        if offset >= one.begin.get(number, 0)
                    ]
                elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's local codes
                    self._partitions[number].position = offset
                elif error.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001 - its records were deleted
                    self._partitions[number] = _Partition()
                    consumer.incremental_unassign([TopicPartition(self._topic, number)])
                    self._read_all(consumer, [number])
                elif error.fatal() or error.code() in UNREADABLE:
                    raise KafkaException(error)
            self._changed.notify_all()
        for take, message in calls:  # without the lock: they may end a connector
            try:
                take(message)
            except Exception:  # the others must not miss their records
                log.exception("a record of the offsets topic %s is ignored", self._topic)

    def _followers_of(self, key: bytes | None) -> list[_Follower]:
        found = self._interested.get(key)
        if found is None:
            found = self._interested[key] = [one for one in self._followers.values() if one.is_own(key)]
        return found


_LOGS: dict[object, OffsetsLog] = {}
_LOCK = threading.Lock()


def follow(who: object, reader: TopicReader, topic: str, is_own: IsOwn, take: Take) -> OffsetsLog:
    """Follow the records of a connector, with the log of all connectors that have the same topic and settings.

    Args:
        who: identifies the follower.
        reader: reads the topic, which exists, with the connector's settings.
        topic: the topic.
        is_own: decides by the key which records are the connector's.
        take: receives each one that is written from now on, in a thread.

    Raises:
        TopicReadError: Kafka is not reachable, or access is denied.
    """
    key = topic, reader.topic_id(topic), frozenset(reader.settings.items())
    reader.close()
    extents = reader.extents(topic) or {}
    with _LOCK:
        found = _LOGS.get(key)
        if found is None or not found.usable:
            found = _LOGS[key] = OffsetsLog(topic, reader.settings)
        found.follow(who, is_own, take, extents)
    return found


def leave(who: object, followed: OffsetsLog) -> None:
    """End following. This does not wait for Kafka."""
    with _LOCK:
        if followed.leave(who):
            for key in [key for key, one in _LOGS.items() if one is followed]:
                del _LOGS[key]
