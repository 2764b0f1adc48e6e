"""Tools for tests with Kafka: creating and reading topics, and the Java producer's partitioner."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from rowtide.topics.admin.topic_admin import TopicAdmin
from rowtide.topics.settings import TopicSettings

__all__ = ["Seen", "Topics", "murmur2", "partition_for"]


_MOMENT_S = 2.0
"""How long a reader of committed records waits for the end of a transaction."""


@dataclass(frozen=True)
class Seen:
    """A consumed record."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


class Topics:
    """The topics of a broker, with unique names for each test."""

    def __init__(self, bootstrap: str) -> None:
        self.client: dict[str, Any] = {"bootstrap.servers": bootstrap, "log_level": 0}  # outlives the broker
        self.admin = TopicAdmin(self.client)

    def new(self, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        """Create a topic; returns its name."""
        name = self.name()
        self.admin.ensure(name, TopicSettings(partitions, 1, config or {}))
        return name

    def partitions(self, topic: str) -> int | None:
        """The number of partitions of a topic; ``None`` if it does not exist."""
        found = self.admin.identify([topic])
        return found[topic].partitions if found else None

    @staticmethod
    def name() -> str:
        """A unique name."""
        return f"t-{uuid.uuid4().hex[:12]}"

    def read(self, topic: str, *, committed: bool = True) -> list[Seen]:
        """All records of a topic, partition by partition; none if the topic does not exist.

        A broker writes the end of a transaction some time after it has confirmed the commit. So committed records are
        waited for a moment while a transaction is open.
        """
        return self._read(topic, committed=committed)[0]

    def has_open_transaction(self, topic: str) -> bool:
        """Whether a topic has records of a transaction that is neither committed nor aborted."""
        return self._read(topic, committed=True)[1]

    def _read(self, topic: str, *, committed: bool) -> tuple[list[Seen], bool]:
        """The records of a topic, and whether others follow that are not committed."""
        consumer = Consumer(
            {
                **self.client,
                "group.id": "tests",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,  # how long the broker waits for more before it reports the end
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed" if committed else "read_uncommitted",
            }
        )
        try:
            partitions = sorted(consumer.list_topics(topic, timeout=60).topics[topic].partitions)
            consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
            seen: list[Seen] = []
            ends: dict[int, int] = {}
            moment = float("inf")
            while len(ends) < len(partitions) or (time.monotonic() < moment and _is_open(consumer, topic, ends)):
                message: Any = consumer.poll(60 if len(ends) < len(partitions) else 0.05)
                if message is None:
                    assert len(ends) == len(partitions), f"{topic} does not answer"
                elif message.error() is None:
                    seen.append(_seen(message))
                else:
                    ends[message.partition()] = message.offset()
                    moment = min(moment, time.monotonic() + _MOMENT_S)
            in_order = sorted(seen, key=lambda record: (record.partition, record.offset))
            return in_order, _is_open(consumer, topic, ends)
        finally:
            consumer.close()


def _is_open(consumer: Consumer, topic: str, ends: Mapping[int, int]) -> bool:
    """Whether a partition has records after the end of those that are committed."""
    return any(
        consumer.get_watermark_offsets(TopicPartition(topic, partition), cached=True)[1] > end
        for partition, end in ends.items()
    )


def _seen(message: Any) -> Seen:
    return Seen(message.partition(), message.offset(), message.key(), message.value(), tuple(message.headers() or ()))


def murmur2(data: bytes) -> int:
    """Kafka's hash (``org.apache.kafka.common.utils.Utils.murmur2``), as an unsigned number."""
    mask, factor = 0xFFFFFFFF, 0x5BD1E995
    code = 0x9747B28C ^ len(data)
    whole = len(data) - len(data) % 4
    for at in range(0, whole, 4):
        part = int.from_bytes(data[at : at + 4], "little") * factor & mask
        code = (code * factor & mask) ^ ((part ^ part >> 24) * factor & mask)
    if data[whole:]:
        code = (code ^ int.from_bytes(data[whole:], "little")) * factor & mask
    code = (code ^ code >> 13) * factor & mask
    return code ^ code >> 15


def partition_for(key: bytes, partitions: int) -> int:
    """The partition that the Java producer chooses."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
