"""Chooses the partitions of messages as Java's producer does: by the key, or else one partition for a while. Pure."""

import random
from collections.abc import Callable, Sequence

from rowtide.connector.kafka_producer.batches.native.implementation import native
from rowtide.connector.kafka_producer.batches.python_records import (
    check_items,
    message_fields,
)
from rowtide.connector.kafka_producer.records import Record

_SEED = 0x9747B28C
_M = 0x5BD1E995
_32_BITS = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF
_MOST_PARTITIONS = 0x7FFFFFFF


def murmur2(data: bytes) -> int:
    """Return MurmurHash2 of 32 bits as in ``org.apache.kafka.common.utils.Utils.murmur2``, as an unsigned number."""
    hash_ = _SEED ^ len(data) & _32_BITS
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _M & _32_BITS
        k = (k ^ k >> 24) * _M & _32_BITS
        hash_ = hash_ * _M & _32_BITS ^ k
    if rest := data[whole:]:
        hash_ = (hash_ ^ int.from_bytes(rest, "little")) * _M & _32_BITS
    hash_ = (hash_ ^ hash_ >> 13) * _M & _32_BITS
    return hash_ ^ hash_ >> 15


def python_split_by_key(messages: Sequence[Record], partitions: int, unkeyed: int) -> dict[int, list[Record]]:
    """Divide messages among the partitions of their topic. A partition's messages keep their order.

    Args:
        messages: a list or a tuple.
        partitions: the number of the topic's partitions, with and without a leader.
        unkeyed: the partition for messages without a key. An empty key is a key.

    Returns:
        The messages of each partition that has any.

    Raises:
        TypeError: a message is not a tuple of key, value and headers.
        ValueError: ``unkeyed`` is not one of the partitions.
    """
    check_items(messages, "messages are a list or a tuple")
    if not 0 <= unkeyed < partitions <= _MOST_PARTITIONS:
        raise ValueError("the partition for messages without a key is one of the topic's partitions")
    found: dict[int, list[Record]] = {}
    for message in messages:
        key = message_fields(message)[0]
        partition = unkeyed if key is None else (murmur2(key) & _POSITIVE) % partitions
        found.setdefault(partition, []).append(message)
    return found


split_by_key = python_split_by_key if native is None else native.split_by_key


class StickyPartition:
    """The partition for the messages of one topic that have no key: the same for about ``batch.size`` bytes.

    This is Java's ``BuiltInPartitioner``, without its preference for fast brokers.

    Args:
        batch_size: ``batch.size``, in bytes.
        randrange: returns a random number below its argument.
    """

    def __init__(self, batch_size: int, randrange: Callable[[int], int] = random.randrange) -> None:
        self._batch_size = batch_size
        self._randrange = randrange
        self._current: int | None = None
        self._size = 0

    def choose(self, partitions: int, available: Callable[[], Sequence[int]]) -> int:
        """Return the partition for the next messages.

        Args:
            partitions: the number of the topic's partitions.
            available: returns those that have a leader, called when another partition is chosen. If there is none, one
                of all is chosen.
        """
        if self._current is None or self._current >= partitions:
            self._size = 0
            some = [number for number in available() if number < partitions] or range(partitions)
            self._current = some[self._randrange(len(some))]
        return self._current

    def sent(self, size: int, *, batch_complete: bool) -> None:
        """Count bytes of records that were added to the partition, and leave it after enough of them.

        Args:
            size: the bytes.
            batch_complete: whether the last batch can be sent. Before, another partition would make batches smaller.
        """
        self._size += size
        if self._size >= (self._batch_size if batch_complete else 2 * self._batch_size):
            self._current = None
