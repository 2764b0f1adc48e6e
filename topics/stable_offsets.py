"""Finds transactions that hang: the last stable offset of a partition stays after its end. Pure.

A transaction ends when its coordinator writes a marker into each of its partitions. A broker that starts and does not
yet know the leader of a partition assumes that the partition was deleted, and omits the marker ("Couldn't find leader
endpoint for partitions", seen with Kafka 4.3.1 in both versions of transactions). The transaction has then ended for
its coordinator, but remains open in the partition forever: consumers with ``read_committed`` wait after its first
record.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple


class Ends(NamedTuple):
    """The end of a partition.

    Attributes:
        stable: the last stable offset, after which a transaction is open.
        end: the offset after the last record.
    """

    stable: int
    end: int


class Hanging(NamedTuple):
    """A transaction that hangs.

    Attributes:
        topic: the topic.
        partition: the partition.
        offset: of the transaction's first record.
        seconds: the time since it was first seen.
    """

    topic: str
    partition: int
    offset: int
    seconds: float

    def remedy(self, servers: str) -> str:
        """Return the Kafka commands that show and end the transaction.

        Args:
            servers: ``bootstrap.servers``.
        """
        tool = f"kafka-transactions.sh --bootstrap-server {servers}"
        place = f"--topic {self.topic} --partition {self.partition}"
        return (
            f"{tool} describe-producers {place} shows its producer id, and {tool} abort {place} --start-offset "
            f"{self.offset} ends it"
        )


class StableOffsets:
    """Compares the ends of partitions with earlier ones.

    Args:
        limit_s: the seconds after which an open transaction has ended for its coordinator: ``transaction.timeout.ms``,
            and more.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._since: dict[tuple[str, int], tuple[int, float]] = {}
        self._reported: set[tuple[str, int, int]] = set()

    def news(self, ends: Mapping[tuple[str, int], Ends], now: float) -> Iterator[Hanging]:
        """Yield the transactions that hang, each once.

        Args:
            ends: the ends of the partitions.
            now: seconds of a monotonic clock.
        """
        for (topic, partition), found in ends.items():
            known, since = self._since.get((topic, partition), (None, now))
            if found.stable >= found.end or found.stable != known:
                since = now
            self._since[topic, partition] = found.stable, since
            place = topic, partition, found.stable
            if now - since >= self._limit_s and place not in self._reported:
                self._reported.add(place)
                yield Hanging(topic, partition, found.stable, now - since)
