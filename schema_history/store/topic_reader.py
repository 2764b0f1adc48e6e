"""Reads a topic from its first record to its current end.

Only committed records are returned. The end includes open transactions: reading waits until they are committed or
aborted, because committed records may follow an open transaction.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
    Uuid,
)
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from rowtide.schema_history.store.admin_clients import admin_client
from rowtide.schema_history.store.client_limits import CLIENT_LIMITS

T = TypeVar("T")

_CONSUMER: dict[str, Any] = {
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "allow.auto.create.topics": False,
    "queued.max.messages.kbytes": 16384,
    # At the end of a partition, the broker waits this long for more records before librdkafka reports the end.
    "fetch.wait.max.ms": 10,
}
_PER_CALL = 1000
_POLL_S = 0.5
_ERRORS_ONLY = 2
"""Level of librdkafka's log on standard error: its relevant errors are raised as exceptions."""
UNREADABLE = {
    KafkaError._FATAL,  # noqa: SLF001 - librdkafka's local codes
    KafkaError._BAD_MSG,  # noqa: SLF001
    KafkaError._BAD_COMPRESSION,  # noqa: SLF001
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
}
"""Errors with which a topic that exists cannot be read."""
_FATAL = UNREADABLE | {
    KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
}
_MISSING = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}  # noqa: SLF001
_PASSING = {
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError._TRANSPORT,  # noqa: SLF001
    KafkaError._TIMED_OUT,  # noqa: SLF001
    KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
    KafkaError._NOENT,  # noqa: SLF001 - "No leaders found": the brokers have just started
    -137,  # "Broker handle destroyed without termination", which older versions of the client do not name
}
"""Transient errors of a partition that was just created or is being moved."""

_NO_ID = str(Uuid(0, 0))
_RETRY_S = 0.1
_STUCK_S = 5.0
"""The longest search for the reason why reading makes no progress."""
_MARKERS = 2
"""Maximum number of adjacent offsets without a record: two transaction markers can follow each other."""


class TopicReadError(Exception):
    """A topic cannot be read to its end; the message has its name and the reason.

    Attributes:
        retriable: whether a later attempt may succeed: no broker answered, or a transaction stays open.
    """

    def __init__(self, message: str, *, retriable: bool = False) -> None:
        super().__init__(message)
        self.retriable = retriable


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """One committed record.

    Attributes:
        partition: its partition.
        offset: its offset.
        timestamp: milliseconds since the epoch, -1 if it has none.
        key: its key.
        value: its value, ``None`` for a tombstone.
        headers: its headers.
    """

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Extent:
    """The offsets of a partition: from ``low`` to ``high``, exclusive."""

    low: int
    high: int


def new_extents(seen: Mapping[int, Extent], now: Mapping[int, Extent]) -> dict[int, Extent]:
    """Return the offsets that were added to each partition; a recreated topic is read from its start."""
    added = {}
    for partition, extent in now.items():
        end = seen[partition].high if partition in seen else extent.low
        added[partition] = Extent(end if extent.low <= end <= extent.high else extent.low, extent.high)
    return added


class TopicReader:
    """Reads complete topics.

    Args:
        consumer: librdkafka settings of the consumer, including those of the connection.
        admin: librdkafka settings of the admin client, including those of the connection.
        timeout: seconds without progress after which reading fails.
        query_timeout: seconds that one admin request may take; it is retried until ``timeout`` has passed.

    Attributes:
        settings: those of its consumers.
        timeout: as given.
    """

    def __init__(
        self,
        consumer: Mapping[str, Any],
        admin: Mapping[str, Any],
        timeout: float = 60.0,
        query_timeout: float | None = None,
    ) -> None:
        self.settings = {"group.id": "rowtide", "log_level": _ERRORS_ONLY, **CLIENT_LIMITS, **consumer, **_CONSUMER}
        self._admin = {"log_level": _ERRORS_ONLY, **admin, "allow.auto.create.topics": False}
        self._describing: AdminClient | None = None
        self.timeout = timeout
        self._query_timeout = timeout if query_timeout is None else min(timeout, query_timeout)

    def extents(self, topic: str) -> dict[int, Extent] | None:
        """Return the first and the end offset of each partition; ``None`` if the topic does not exist.

        Raises:
            TopicReadError: Kafka is not reachable, or access is denied.
        """
        admin = admin_client(self._admin)
        return self._retried(topic, lambda: self._query(admin, topic))

    def _retried(self, topic: str, query: Callable[[], T]) -> T:
        end = time.monotonic() + self.timeout
        while True:
            try:
                return query()
            except KafkaException as failure:
                error = failure.args[0]
                if error.code() not in _PASSING or time.monotonic() > end:
                    raise self.unreadable(topic, failure) from failure
            time.sleep(_RETRY_S)

    def unreadable(self, topic: str, failure: KafkaException) -> TopicReadError:
        """Return the error of a topic that cannot be read."""
        brokers = self._admin.get("bootstrap.servers", "its brokers")
        error = failure.args[0]
        message = f"cannot read topic {topic!r} from {brokers}: {error.str()}"
        return TopicReadError(message, retriable=error.code() in _PASSING)

    def _query(self, admin: AdminClient, topic: str) -> dict[int, Extent] | None:
        partitions = [TopicPartition(topic, number) for number in self._partitions(admin, topic)]
        if not partitions:
            return None
        low = self._offsets(admin, partitions, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
        high = self._offsets(admin, partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]
        return {number: Extent(low[number], high[number]) for number in low}

    def _partitions(self, admin: AdminClient, topic: str) -> list[int]:
        found = admin.list_topics(topic, timeout=self._query_timeout).topics.get(topic)
        if found is None or (found.error is not None and found.error.code() in _MISSING):
            return []
        if found.error is not None and not found.partitions:
            raise KafkaException(found.error)
        return sorted(found.partitions)

    def _offsets(self, admin: AdminClient, partitions: Sequence[TopicPartition], spec: OffsetSpec) -> dict[int, int]:
        asked = admin.list_offsets(
            dict.fromkeys(partitions, spec),
            isolation_level=IsolationLevel.READ_UNCOMMITTED,
            request_timeout=self._query_timeout,
        )
        return {partition.partition: future.result().offset for partition, future in asked.items()}

    def topic_id(self, topic: str) -> str | None:
        """Return the id that Kafka gave a topic when it was created.

        ``None`` if it does not exist, or the broker has no ids.

        Brokers before Kafka 2.8 have none. During their upgrade, existing topics get one.

        Raises:
            TopicReadError: Kafka is not reachable, or access is denied.
        """
        admin = self._describing = self._describing or admin_client(self._admin)

        def query() -> str | None:
            found = admin.describe_topics(TopicCollection([topic]), request_timeout=self._query_timeout)
            try:
                topic_id = str(found[topic].result().topic_id)
            except KafkaException as failure:
                if failure.args[0].code() in _MISSING:
                    return None
                raise
            return None if topic_id == _NO_ID else topic_id

        return self._retried(topic, query)

    def close(self) -> None:
        """Release the client that looks up ids; the next look-up creates another."""
        self._describing = None

    def gap(self, topic: str, partition: int, begin: int, end: int) -> bool:
        """Return whether records are missing between two offsets without committed records in between.

        The offsets can belong to records of aborted transactions and to transaction markers, which follow a record.

        Raises:
            TopicReadError: as ``read``.
        """

        def too_wide(at: int) -> bool:
            return at - reached > (_MARKERS if reached else 0)

        reached = begin
        if not too_wide(end):
            return False
        for record in self.read(topic, {partition: Extent(begin, end + 1)}, committed=False):
            if too_wide(record.offset):
                return True
            reached = record.offset + 1
        return False

    def read(self, topic: str, extents: Mapping[int, Extent], *, committed: bool = True) -> Iterator[StoredRecord]:
        """Yield the records within ``extents``, in order within each partition.

        Args:
            topic: name of the topic.
            extents: the offsets to read, by partition.
            committed: omit records of aborted and open transactions.

        Raises:
            TopicReadError: reading makes no progress, or access is denied.
        """
        open_ends = {number: extent.high for number, extent in extents.items() if extent.high > extent.low}
        if not open_ends:
            return
        isolation = "read_committed" if committed else "read_uncommitted"
        consumer = Consumer({**self.settings, "isolation.level": isolation})
        try:
            consumer.assign([TopicPartition(topic, number, extents[number].low) for number in open_ends])
            yield from self._consume(consumer, topic, open_ends)
        except KafkaException as failure:
            raise self.unreadable(topic, failure) from failure
        finally:
            consumer.close()

    def _consume(self, consumer: Consumer, topic: str, open_ends: dict[int, int]) -> Iterator[StoredRecord]:
        reached = dict.fromkeys(open_ends, 0)
        progress = time.monotonic()
        while open_ends:
            for message in _next_messages(consumer):
                partition, position = self._place(message)
                if partition not in open_ends or position <= reached[partition]:
                    continue
                progress = time.monotonic()
                reached[partition] = position
                if message.error() is None and position <= open_ends[partition]:
                    yield stored_record(message)
                if position >= open_ends[partition]:
                    del open_ends[partition]
            if open_ends and time.monotonic() - progress > self.timeout:
                partition = next(iter(open_ends))
                raise TopicReadError(
                    self.stuck(topic, partition, reached[partition], open_ends[partition]), retriable=True
                )

    @staticmethod
    def _place(message: Any) -> tuple[int, int]:
        """Return the partition of a message, and the offset after it; -1 for a transient error."""
        error = message.error()
        if error is None:
            return message.partition(), message.offset() + 1
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's local code
            return message.partition(), message.offset()
        if error.fatal() or error.code() in _FATAL:
            raise KafkaException(error)
        return -1, -1

    def stuck(self, topic: str, partition: int, reached: int, end: int) -> str:
        """Return the reason why reading makes no progress, as far as known, and how to end a hanging transaction."""
        text = (
            f"cannot read topic {topic!r} to its end: partition {partition} is stuck at offset {reached} of {end} for "
            f"{self.timeout:.0f} s"
        )
        place = TopicPartition(topic, partition)
        latest = {place: OffsetSpec.latest()}  # type: ignore[no-untyped-call]
        admin = admin_client(self._admin)  # without a reference it would end, and never answer
        asked = admin.list_offsets(latest, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_STUCK_S)
        try:
            stable = asked[place].result(2 * _STUCK_S).offset
        except (KafkaException, TimeoutError):
            return f"{text}. No broker answers"
        if stable >= end:
            return f"{text}, although no transaction is open"
        return (
            f"{text}, because a producer's transaction is open since offset {stable}. If it is older than its "
            f"transaction.timeout.ms, Kafka has lost its end: kafka-transactions.sh --bootstrap-server "
            f"{self._admin.get('bootstrap.servers', 'SERVERS')} abort --topic {topic} --partition {partition} "
            f"--start-offset {stable} ends it (describe-producers shows its producer id)"
        )


def _next_messages(consumer: Consumer) -> list[Message]:
    """Wait for a message, and take the following ones, too; ``consume`` alone would wait for the maximum number."""
    first = consumer.poll(_POLL_S)
    return [] if first is None else [first, *consumer.consume(_PER_CALL, 0)]


def record_headers(message: Any) -> tuple[tuple[str, bytes | None], ...]:
    """Return the headers of a message."""
    return tuple(message.headers() or ())


def stored_record(message: Any) -> StoredRecord:
    """Return the record of a message."""
    kind, timestamp = message.timestamp()
    return StoredRecord(
        partition=message.partition(),
        offset=message.offset(),
        timestamp=-1 if kind == TIMESTAMP_NOT_AVAILABLE else timestamp,
        key=message.key(),
        value=message.value(),
        headers=record_headers(message),
    )
