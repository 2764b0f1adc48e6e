"""A partition of a simulated Kafka: what a leader stores, recognizes and refuses, as `ProducerAppendInfo` of Kafka 4.

A batch is stored by the leader first. It is safe, and may be acknowledged, once all replicas have it; an election may
drop what is not safe.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from rowtide.connector.kafka_producer.machine.messages import ProducerIdentity
from rowtide.connector.kafka_producer.wire.error_codes import ErrorCode

_REMEMBERED = 5
"""The batches of a producer by which a broker recognizes a duplicate."""


@dataclass(frozen=True)
class Records:
    """A batch for tests: its bytes are its fields as JSON."""

    topic: str
    partition: int
    records: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.records)

    @property
    def size(self) -> int:
        return 10 * len(self.records)

    def numbered(self, producer_id: int, epoch: int, base_sequence: int, *, transactional: bool) -> bytes:
        return json.dumps([producer_id, epoch, base_sequence, transactional, self.records]).encode()

    def split(self) -> list[Records]:
        half = self.count // 2
        return [
            Records(self.topic, self.partition, self.records[:half]),
            Records(self.topic, self.partition, self.records[half:]),
        ]

    def record(self, index: int | None) -> tuple[bytes | None, int]:
        return f"{self.records[index or 0]}".encode(), 10


@dataclass(frozen=True)
class Entry:
    """A batch in the log, or the marker at the end of a transaction."""

    producer: ProducerIdentity
    offset: int
    sequence: int = -1
    transactional: bool = False
    records: tuple[int, ...] = ()
    commit: bool | None = None

    @property
    def last_sequence(self) -> int:
        return (self.sequence + len(self.records) - 1) % (1 << 31)


@dataclass
class Log:
    """One partition, since its topic was created.

    Attributes:
        leader: the broker, -1 if there is none.
        leader_epoch: the number of elections.
        entries: what the leader has.
        safe: how many entries all replicas have.
    """

    leader: int
    leader_epoch: int = 0
    entries: list[Entry] = field(default_factory=list)
    safe: int = 0

    @property
    def next_offset(self) -> int:
        last = self.entries[-1] if self.entries else None
        return 0 if last is None else last.offset + max(1, len(last.records))

    def append(self, data: bytes, *, needs_state: bool, largest: int) -> tuple[int, int]:
        """Store a batch on the leader; returns Kafka's code and the offset."""
        producer_id, epoch, sequence, transactional, records = json.loads(bytes(data))
        producer, count = ProducerIdentity(producer_id, epoch), len(records)
        if count > largest:
            return ErrorCode.MESSAGE_TOO_LARGE, -1
        mine = [entry for entry in self.entries if entry.producer.producer_id == producer_id]
        current = mine[-1].producer.epoch if mine else -1
        if epoch < current:
            return ErrorCode.INVALID_PRODUCER_EPOCH, -1
        batches = [entry for entry in mine if entry.producer.epoch == epoch and entry.commit is None]
        for known in batches[-_REMEMBERED:]:
            if (known.sequence, len(known.records)) == (sequence, count):
                return ErrorCode.NONE, known.offset
        if batches:
            expected = (batches[-1].last_sequence + 1) % (1 << 31)
            if sequence != expected:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        elif sequence != 0 and (mine or needs_state):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        offset = self.next_offset
        self.entries.append(Entry(producer, offset, sequence, transactional, tuple(records)))
        return ErrorCode.NONE, offset

    def mark(self, producer: ProducerIdentity, *, commit: bool) -> None:
        """Write the marker at the end of a transaction; it is safe, and with it everything before."""
        self.entries.append(Entry(producer, self.next_offset, commit=commit))
        self.safe = len(self.entries)

    def elect(self, leader: int, *, keep: bool) -> None:
        """Elect a leader, which may lack what is not safe."""
        self.leader = leader
        self.leader_epoch += 1
        if not keep:
            del self.entries[self.safe :]
        self.safe = len(self.entries)

    def stored(self) -> list[int]:
        """All records that are safe."""
        return [record for entry in self.entries[: self.safe] for record in entry.records]

    def committed(self) -> list[int]:
        """The records that consumers with ``isolation.level=read_committed`` see, ignoring open transactions."""
        seen: list[int] = []
        for at, entry in enumerate(self.entries[: self.safe]):
            markers = (
                later.commit
                for later in self.entries[at:]
                if later.commit is not None and later.producer.producer_id == entry.producer.producer_id
            )
            if not entry.transactional or next(markers, False):
                seen += entry.records
        return seen
