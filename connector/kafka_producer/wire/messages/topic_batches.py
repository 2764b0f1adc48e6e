"""The most frequent exchange, written and read in one step: one batch for each topic, and that all are stored.

The codecs of the declared messages make the same bytes and read the same answers, but take several times as long, which
counts where each commit is a request. They take over for older versions, and for every other answer.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from rowtide.connector.kafka_producer.wire.messages.produce import (
    PartitionData,
    ProduceRequest,
    TopicData,
)
from rowtide.connector.kafka_producer.wire.primitives import (
    NO_TOPIC_ID,
    Bytes,
    Writer,
    string,
)
from rowtide.connector.kafka_producer.wire.schema import Request

FIRST_VERSION = 9
"""The first version of Produce in this form: with compact lengths and tagged fields (KIP-482)."""
_FIRST_WITH_IDS = 13
"""The first version with ids instead of names (KIP-516)."""
_PRODUCE = 0
_ALL_REPLICAS = -1
_ID_BYTES = 16
_NO_TAGS = b"\0"
_END_OF_BATCH = b"\0\0"
"""Neither the partition nor the topic has tagged fields."""

_HEADER = struct.Struct(">hhi")
_SETTINGS = struct.Struct(">hi")
_PARTITION = struct.Struct(">Bi")
_ANSWER = struct.Struct(">iBB")
_STORED = struct.Struct(">BihqqqBBBB")
_END = struct.Struct(">iB")
_ONE = 2
"""The length of an array with one item; compact lengths are one more."""
_EMPTY = 1

_TEXT = string(flexible=True, nullable=True)
_CLIENT_ID = string(flexible=False, nullable=True)


@dataclass(slots=True)
class TopicBatches(Request["Stored"]):
    """Record batches to store with the acknowledgement of all replicas, each of another topic.

    Attributes:
        transactional_id: ``None`` without transactions.
        timeout_ms: how long the broker waits for the replicas.
        batches: topic, id of the topic or ``None``, partition, and bytes of each batch.
    """

    transactional_id: str | None
    timeout_ms: int
    batches: Sequence[tuple[str, bytes | None, int, Bytes]]

    def parts(self, version: int, correlation_id: int, client_id: str | None) -> list[Bytes]:
        """Return the bytes of the request after its length, as parts to be sent one after another.

        Batches are not copied.

        Args:
            version: ``FIRST_VERSION`` or a later one.
            correlation_id: of the request.
            client_id: of the client.

        Raises:
            NotEncodable: a string is too long.
        """
        between = _HEADER.pack(_PRODUCE, version, correlation_id) + _opening(
            client_id, self.transactional_id, self.timeout_ms, len(self.batches)
        )
        parts: list[Bytes] = []
        for topic, topic_id, partition, data in self.batches:
            name = None if version >= _FIRST_WITH_IDS else topic
            parts += (between + _destination(name, topic_id, partition) + _uvarint(len(data) + 1), data)
            between = _END_OF_BATCH
        parts.append(between + _NO_TAGS)
        return parts

    def declared(self) -> ProduceRequest:
        """Return the same as a declared message."""
        return ProduceRequest(
            transactional_id=self.transactional_id,
            timeout_ms=self.timeout_ms,
            topic_data=tuple(
                TopicData(
                    name=topic,
                    topic_id=topic_id or NO_TOPIC_ID,
                    partition_data=(PartitionData(index=partition, records=data),),
                )
                for topic, topic_id, partition, data in self.batches
            ),
        )


@dataclass(slots=True)
class Stored:
    """The answer that all batches are stored.

    Attributes:
        batches: name or id of the topic, partition, and offset of the first record of each batch.
        throttle_time_ms: how long to send the broker nothing.
    """

    batches: Sequence[tuple[str | bytes, int, int]]
    throttle_time_ms: int


def stored(frame: Bytes, version: int, correlation_id: int) -> Stored | None:
    """Read an answer to :class:`TopicBatches`; ``None`` if it has a different form, which may be malformed.

    Args:
        frame: the answer, without its length.
        version: of the request; ``FIRST_VERSION`` or a later one.
        correlation_id: of the request.
    """
    try:
        found, tags, topics = _ANSWER.unpack_from(frame)
        if found != correlation_id or tags or not 1 < topics < 0x80:
            return None
        batches: list[tuple[str | bytes, int, int]] = []
        at, size = _ANSWER.size, _ID_BYTES
        for _ in range(topics - 1):
            if version < _FIRST_WITH_IDS:
                size = frame[at] - 1
                at += 1
                if not 0 <= size < 0x7F:
                    return None
            name = bytes(frame[at : at + size])
            at += size
            partitions, index, error, offset, _time, _start, *rest = _STORED.unpack_from(frame, at)
            if partitions != _ONE or error or rest != [_EMPTY, 0, 0, 0]:
                return None
            at += _STORED.size
            batches.append((name if version >= _FIRST_WITH_IDS else name.decode(), index, offset))
        throttle_ms, tags = _END.unpack_from(frame, at)
    except (struct.error, IndexError, UnicodeDecodeError):
        return None
    return Stored(batches, throttle_ms) if not tags and at + _END.size == len(frame) else None


@lru_cache(maxsize=64)
def _opening(client_id: str | None, transactional_id: str | None, timeout_ms: int, topics: int) -> bytes:
    """Return the bytes between the correlation id and the first topic."""
    writer = Writer()
    _CLIENT_ID.write(writer, client_id)
    writer.add(_NO_TAGS)
    _TEXT.write(writer, transactional_id)
    writer.add(_SETTINGS.pack(_ALL_REPLICAS, timeout_ms))
    writer.uvarint(topics + 1)
    return b"".join(writer.parts())


@lru_cache(maxsize=1024)
def _destination(topic: str | None, topic_id: bytes | None, partition: int) -> bytes:
    """Return name (``None`` if the id takes its place) or id of a topic, and one partition."""
    writer = Writer()
    if topic is None:
        writer.add(topic_id or NO_TOPIC_ID)
    else:
        _TEXT.write(writer, topic)
    writer.add(_PARTITION.pack(_ONE, partition))
    return b"".join(writer.parts())


def _uvarint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)
