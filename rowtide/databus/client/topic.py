"""The topic of events: finds positions, and reads from an offset."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from rowtide.databus.errors import OverflowOffset, TopicError, UnreadableMessage
from rowtide.databus.events import KafkaKey, Position, QueryEvent, RowsEvent, decode_message
from rowtide.schema_history.store.client_limits import CLIENT_LIMITS
from rowtide.schema_history.store.topic_reader import Extent, StoredRecord, TopicReader, TopicReadError

log = logging.getLogger(__name__)

_PARTITION = 0

_PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class TopicPlace:
    """An event in the topic: its offset and the position of its key."""

    offset: int
    position: Position

    def __str__(self) -> str:
        return f"{self.position} (offset {self.offset})"


class EventTopic:
    """Partition 0 of a topic.

    Args:
        topic: its name.
        kafka: settings of librdkafka's consumer.
    """

    def __init__(self, topic: str, kafka: Mapping[str, Any]) -> None:
        self.name = topic
        self._kafka = dict(kafka)
        self._reader = TopicReader(kafka, kafka, _PATIENCE_S)
        self._consumer: Consumer | None = None

    def extent(self) -> Extent:
        """Return the first offset, and the offset after the last one.

        Raises:
            TopicError: it does not exist, or Kafka cannot be reached.
        """
        try:
            found = self._reader.extents(self.name)
        except TopicReadError as error:
            raise TopicError(str(error)) from error
        if found is None:
            raise TopicError(
                f"topic {self.name} does not exist: check its name, and that a databus server publishes to it"
            )
        return found[_PARTITION]

    def keys(self, begin: int, end: int) -> Iterator[TopicPlace]:
        """Yield the events between two offsets; messages without a readable key are omitted.

        Raises:
            TopicError: they cannot be read.
        """
        for record in self._records(begin, end):
            try:
                key = KafkaKey.decode(record.key)
            except ValueError:
                continue
            yield TopicPlace(record.offset, key.position)

    def events(self, begin: int, end: int) -> Iterator[tuple[KafkaKey, RowsEvent | QueryEvent]]:
        """Yield the events between two offsets, with their keys; other messages are omitted.

        Raises:
            TopicError: they cannot be read.
        """
        for record in self._records(begin, end):
            with suppress(UnreadableMessage):
                yield decode_message(self.name, record.offset, record.key, record.value)

    def _records(self, begin: int, end: int) -> Iterator[StoredRecord]:
        try:
            yield from self._reader.read(self.name, {_PARTITION: Extent(begin, end)})
        except TopicReadError as error:
            raise TopicError(str(error)) from error

    def find(self, wanted: Position) -> TopicPlace:
        """Find the event with a position (``SearchAsc``), otherwise the first one after it.

        A position between two events is usually the end of a transaction, as in SHOW BINARY LOG STATUS: the next event
        begins later, after a GTID, a BEGIN and a TABLE_MAP.

        The positions of one server ascend, and so do those that a server has repeated after a crash: a binary
        search finds the event. Only after a fail-over, and if there is no such event, are all keys read.

        Raises:
            OverflowOffset: the position is before the first event, or after the last one; the message says which.
            TopicError: the topic cannot be read.
        """
        extent = self.extent()
        first = next(self.keys(extent.low, extent.high), None)
        if first is None:
            raise OverflowOffset(
                f"Overflow Offset: topic {self.name} is empty: nothing was published yet, or all of it has expired. "
                "Begin with firstload=true"
            )
        low, high = first.offset, extent.high
        while low < high:
            middle = (low + high) // 2
            found = next(self.keys(middle, high), None)
            if found is None:
                high = middle
            elif found.position.before(wanted):
                low = found.offset + 1
            elif found.position == wanted:
                return found
            else:
                high = middle
        return self._searched(wanted, extent)

    def _searched(self, wanted: Position, extent: Extent) -> TopicPlace:
        following: TopicPlace | None = None
        first: TopicPlace | None = None
        last: TopicPlace | None = None
        servers = set()
        for place in self.keys(extent.low, extent.high):
            if place.position == wanted:
                return place
            servers.add(place.position.server)
            if place.position.server == wanted.server:
                if last is not None and last.position.before(wanted) and not place.position.before(wanted):
                    following = following or place
                first, last = first or place, place
        if following is None:
            raise self._overflow(wanted, first, last, servers)
        log.info("topic %s: no event has the position %s; the next one has %s", self.name, wanted, following)
        return following

    def _overflow(
        self, wanted: Position, first: TopicPlace | None, last: TopicPlace | None, servers: set[str]
    ) -> OverflowOffset:
        start = f"Overflow Offset: topic {self.name} has no event with the position {wanted}"
        if first is None or last is None:
            files = ", ".join(f"{server}.*" for server in sorted(servers))
            return OverflowOffset(f"{start}: its events come from the binlog files {files}. Use a position of theirs")
        if last.position.before(wanted):
            return OverflowOffset(
                f"{start}: it is not in Kafka yet. The last event has {last}. Two starts lose nothing: this position, "
                "as soon as a change after it is published, which begins with that change; or now, mastername="
                f"{last.position.file}, masterpos={last.position.pos} and start='exclusive', which begins with what is "
                "published next"
            )
        return OverflowOffset(
            f"{start}: it has expired, or was never published. The first event has {first}. Two starts are possible: "
            f"firstload=true reads a dump, and loses nothing; mastername={first.position.file} and masterpos="
            f"{first.position.pos} lose the changes before that event"
        )

    def read_from(self, offset: int) -> None:
        """Start reading at an offset."""
        self.close()
        self._consumer = Consumer(
            {
                **CLIENT_LIMITS,
                **self._kafka,
                "group.id": "rowtide-databus",  # demanded by librdkafka; no offsets are committed
                "enable.auto.commit": False,
                "auto.offset.reset": "error",
                "allow.auto.create.topics": False,
                "isolation.level": "read_committed",
                "log_level": 2,
            }
        )
        self._consumer.assign([TopicPartition(self.name, _PARTITION, offset)])

    def poll(self, timeout: float) -> Message | None:
        """Return the next message, if it arrives in time.

        Raises:
            OverflowOffset: it has expired in the meantime.
            TopicError: the topic cannot be read.
        """
        assert self._consumer is not None, "read_from() was not called"
        try:
            message = self._consumer.poll(timeout)
        except KafkaException as failure:
            raise TopicError(f"topic {self.name} cannot be read: {failure}") from failure
        error = None if message is None else message.error()
        if error is None:
            return message
        if error.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001 - librdkafka's local code
            raise OverflowOffset(
                f"Overflow Offset: the next event of topic {self.name} has expired before it was read. Events are "
                "missing: remove the offset file and begin with firstload=true; keep events longer (retention.ms)"
            )
        if error.retriable() or error.code() in _PASSING:
            log.warning("topic %s currently cannot be read: %s", self.name, error)
            return None
        raise TopicError(f"topic {self.name} cannot be read: {error}")

    def close(self) -> None:
        """Stop reading."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


_PASSING = {
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._RESOLVE,  # noqa: SLF001
}
