"""Reads topics as changes, with a loop like that of :class:`rowtide.Engine`."""

import datetime as dt
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from rowtide.connector.records.change import Change
from rowtide.decoder.decoder import Decoder
from rowtide.decoder.errors import DecodeError
from rowtide.decoder.readers import SchemaSource
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtid, MariadbGtidPosition
from rowtide.topics.errors import TopicError

log = logging.getLogger(__name__)

Start = dt.datetime | str

_POLL_S = 0.2
_METADATA_S = 10.0
_OFFSETS_S = 30.0
_PARTITION_EOF = KafkaError._PARTITION_EOF  # noqa: SLF001 - librdkafka's local code
_ALL_DOWN = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001


class TopicReader:
    """The changes of topics, in the order of each partition, without a connection to the database.

        with rowtide.read_topics("localhost:9092", "shop.shop.orders", start="beginning") as reader:
            for change in reader:
                print(change.op, change.after)

    Args:
        bootstrap: ``bootstrap.servers``.
        topics: their names, or regular expressions that begin with ``^``.
        group: the consumer group, whose members share the partitions and whose offsets :meth:`commit`
            stores; without one, this reader reads all partitions and stores nothing.
        start: ``committed`` (the group's offsets, or the beginning if there are none), ``beginning``, ``end``, a time,
            or a GTID set, whose transactions are skipped.
        follow: wait for further records; otherwise, the loop ends with the last one.
        registry: the schema registry of Avro and Protobuf: its URL, or a client.
        decoder: a decoder with other settings.
        claim_checks: the folder of the values of claim checks, see :class:`Decoder`.
        kafka: further settings of the consumer, with librdkafka's names.

    Raises:
        DecodeError: a topic does not exist.
        TopicError: Kafka cannot be reached.
    """

    def __init__(
        self,
        bootstrap: str,
        topics: Iterable[str] | str,
        *,
        group: str | None = None,
        start: Start = "committed",
        follow: bool = True,
        registry: str | SchemaSource | None = None,
        decoder: Decoder | None = None,
        claim_checks: str | None = None,
        kafka: Mapping[str, Any] | None = None,
    ) -> None:
        self._own = Decoder(registry, claim_checks=claim_checks) if decoder is None else None
        self._decoder = self._own or decoder or Decoder()
        self._bootstrap, self._group, self._follow = bootstrap, group, follow
        self._is_seen: Callable[[str], bool] | None = None
        if isinstance(start, str) and start not in ("beginning", "end", "committed"):
            self._is_seen, start = gtid_test(start), "beginning"
        if start == "committed" and group is None:
            start = "beginning"
        self._start = start
        names = [topics] if isinstance(topics, str) else list(dict.fromkeys(topics))
        self._reason = ""
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group or "rowtide-reader",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": not follow,
                "isolation.level": "read_committed",
                "error_cb": self._failed,
                "log_level": 2,  # what the callback does not get
                **(kafka or {}),
            }
        )
        self._has_assignment = False  # which may be empty: a group may have more readers than partitions
        self._assigned: set[tuple[str, int]] = set()
        self._ended: set[tuple[str, int]] = set()
        self._offsets: dict[tuple[str, int], int] = {}  # after the last change of each partition
        try:
            self._open(names)
        except BaseException:
            self.close()
            raise

    def _failed(self, error: KafkaError) -> None:
        if error.code() != _ALL_DOWN:
            self._reason = error.str()
        elif self._has_assignment:
            log.warning("Kafka at %s did not respond; retrying: %s", self._bootstrap, self._reason)

    def _open(self, names: list[str]) -> None:
        found = {(place.topic, place.partition): place for name in names for place in self._partitions(name)}
        if self._group is not None:
            self._consumer.subscribe(names, on_assign=self._positioned, on_revoke=self._given_up)
        else:
            self._positioned(self._consumer, list(found.values()))

    def _partitions(self, name: str) -> Iterator[TopicPartition]:
        try:
            metadata = self._consumer.list_topics(timeout=_METADATA_S)
        except KafkaException as failure:
            self._consumer.poll(0)  # calls the callback
            raise TopicError(
                f"Kafka at {self._bootstrap} cannot list its topics: {self._reason or failure.args[0].str()}"
            ) from failure
        pattern = re.compile(name) if name.startswith("^") else None
        topics = [one for one in metadata.topics if (pattern.match(one) if pattern else one == name)]
        if not topics:
            if pattern is not None:
                raise DecodeError(f"no topic matches {name}")
            raise DecodeError(f"there is no topic {name}: its name is <topic.prefix>.<database>.<table>")
        for topic in topics:
            for partition in metadata.topics[topic].partitions:
                yield TopicPartition(topic, partition)

    def _positioned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Assign partitions at the reader's start. Later, committed offsets count."""
        fresh = [one for one in partitions if (one.topic, one.partition) not in self._assigned]
        if fresh and self._start != "committed":
            if isinstance(self._start, dt.datetime):
                millis = int(self._start.timestamp() * 1000)
                asked = [TopicPartition(one.topic, one.partition, millis) for one in fresh]
                for one, found in zip(fresh, consumer.offsets_for_times(asked, _OFFSETS_S), strict=True):
                    one.offset = found.offset
            else:
                for one in fresh:
                    one.offset = OFFSET_BEGINNING if self._start == "beginning" else OFFSET_END
        self._has_assignment = True
        self._assigned |= {(one.topic, one.partition) for one in partitions}
        consumer.assign(partitions)

    def _given_up(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Forget partitions that move to another reader of the group."""
        self._has_assignment = False
        for one in partitions:
            place = one.topic, one.partition
            self._assigned.discard(place)
            self._ended.discard(place)
            self._offsets.pop(place, None)

    def __iter__(self) -> Iterator[Change]:
        """Yield changes; tombstones are skipped. Without ``follow``, it ends with the last record.

        Raises:
            DecodeError: a record cannot be decoded; the offset before it can be committed. A new loop begins after it.
            RegistryUnavailable: the schema registry does not answer. A new loop begins with the same record.
            ClaimCheckUnavailable: the value that a record points to cannot be read. The same applies.
            TopicError: Kafka refuses the reader.
        """
        while self._follow or not self._has_assignment or self._ended != self._assigned:
            message = self._consumer.poll(_POLL_S)
            if message is None:
                continue
            error = message.error()
            if error is not None:
                if error.code() == _PARTITION_EOF:
                    self._ended.add(_place(message))
                    continue
                if error.retriable():
                    continue
                raise TopicError(f"the topics cannot be read: {error.str()}")
            change = self._decoded(message)
            self._offsets[_place(message)] = (message.offset() or 0) + 1
            if change is not None and not self._skips(change):
                yield change

    def _decoded(self, message: Any) -> Change | None:
        try:
            return self._decoder.decode_message(message)
        except DecodeError:
            raise
        except BaseException:  # the record is not at fault, and must not be lost
            self._consumer.seek(TopicPartition(*_place(message), message.offset()))
            raise

    def _skips(self, change: Change) -> bool:
        if self._is_seen is None or change.gtid is None:
            return False
        try:
            return self._is_seen(change.gtid)
        except ValueError as error:
            raise DecodeError(
                f"start= is a GTID set of the other server: topic {change.topic} has the GTID {change.gtid}"
            ) from error

    def commit(self) -> None:
        """Store the offsets after the last change in the group, so that a later reader continues there.

        Raises:
            DecodeError: the reader has no group.
            TopicError: Kafka refuses them, or cannot be reached.
        """
        if self._group is None:
            raise DecodeError("a reader without group= has no offsets to commit")
        offsets = [TopicPartition(*place, offset) for place, offset in self._offsets.items()]
        if not offsets:
            return
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as failure:
            raise TopicError(f"the offsets cannot be committed: {failure.args[0].str()}") from failure

    def close(self) -> None:
        """Leave the group, and close the connections."""
        self._consumer.close()
        if self._own is not None:
            self._own.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _place(message: Any) -> tuple[str, int]:
    return message.topic(), message.partition()


def gtid_test(text: str) -> Callable[[str], bool]:
    """Return a test for the GTIDs of a set, of MySQL or of MariaDB."""
    try:
        if re.fullmatch(r"\s*\d+-\d+-\d+\s*(,\s*\d+-\d+-\d+\s*)*", text):
            position = MariadbGtidPosition.parse(text)
            return lambda gtid: position.contains(MariadbGtid.parse(gtid))
        known = GtidSet.parse(text)
    except ValueError as error:
        raise DecodeError(f"start={text!r} is neither committed, beginning, end nor a GTID set: {error}") from error

    def contains(gtid: str) -> bool:
        uuid, *tag, number = gtid.split(":")
        return known.contains(uuid, int(number), tag[0] if tag else "")

    return contains


read_topics = TopicReader
"""The public name of :class:`TopicReader`."""
