"""The unacknowledged batches of one partition, in order, and their sequence numbers.

At most one batch is in flight, so a batch is sent only once everything before it is acknowledged. A batch gets its
sequence number when it is first sent; a retry repeats the same bytes, which the broker recognizes by their number.
"""

from collections import deque
from dataclasses import dataclass

from rowtide.connector.kafka_producer.machine.backoff import Backoff, Retry
from rowtide.connector.kafka_producer.machine.messages import Batch, ProducerIdentity, TopicPartition

_SEQUENCES = 1 << 31
"""Sequence numbers wrap around to 0 after 2^31 - 1."""


@dataclass(slots=True)
class _Pending:
    """A batch that is not acknowledged.

    Attributes:
        batch: the batch.
        added_at: when it was queued.
        sequence: the sequence number of its first record; -1 until it is sent.
        data: its bytes, numbered.
        attempts: the number of times it was sent.
        part: whether it is part of a larger batch that an earlier attempt may have stored.
    """

    batch: Batch
    added_at: float
    sequence: int = -1
    data: bytes | memoryview = b""
    attempts: int = 0
    part: bool = False


class PartitionQueue:
    """The batches of one partition.

    Attributes:
        partition: the topic partition.
        in_flight: whether the first batch was sent and not answered.
        retry: when the first batch may be sent again.
    """

    __slots__ = ("_last_offset", "_next_sequence", "_pending", "_producer", "in_flight", "partition", "retry")

    def __init__(self, partition: TopicPartition, backoff: Backoff) -> None:
        self.partition = partition
        self.in_flight = False
        self.retry = Retry(backoff)
        self._pending: deque[_Pending] = deque()
        self._producer: ProducerIdentity | None = None
        self._next_sequence = 0
        self._last_offset = -1

    def __bool__(self) -> bool:
        return bool(self._pending)

    @property
    def first(self) -> Batch:
        """The batch to send next, or the one in flight."""
        return self._pending[0].batch

    @property
    def first_added_at(self) -> float:
        """When the first batch was queued."""
        return self._pending[0].added_at

    @property
    def resent(self) -> bool:
        """Whether an earlier attempt may have stored the first batch."""
        return self._pending[0].attempts > 1

    @property
    def follows(self) -> bool:
        """Whether the broker must have the record before the first batch: it was acknowledged, and was its last one."""
        head = self._pending[0]
        return head.sequence > 0 and not head.part

    def add(self, batch: Batch, now: float) -> None:
        """Queue a batch after all others."""
        self._pending.append(_Pending(batch, now))

    def send(self, producer: ProducerIdentity, *, transactional: bool) -> bytes | memoryview:
        """Return the bytes of the first batch, which is in flight from now on."""
        head = self._pending[0]
        if head.sequence < 0:
            if producer != self._producer:
                self._producer, self._next_sequence = producer, 0
            head.sequence = self._next_sequence
            head.data = head.batch.numbered(*producer, head.sequence, transactional=transactional)
            self._next_sequence = (head.sequence + head.batch.count) % _SEQUENCES
        head.attempts += 1
        self.in_flight = True
        return head.data

    def acknowledge(self, base_offset: int) -> Batch | None:
        """Remove and return the first batch.

        Args:
            base_offset: the offset at which it is stored; -1 if unknown.

        Returns:
            ``None`` if it is stored before batches that were acknowledged earlier, which are then lost: the topic was
            created again, or an unclean election has truncated it.
        """
        self.in_flight = False
        if base_offset >= 0:
            if base_offset <= self._last_offset:
                return None
            self._last_offset = base_offset
        self.retry.succeeded()
        return self._pending.popleft().batch

    def postpone(self, now: float) -> None:
        """Note that the first batch is not acknowledged; send it again later."""
        self.in_flight = False
        self.retry.failed(now)

    def split(self) -> bool:
        """Replace the first batch, which is too large, with smaller ones with the same records and sequence numbers.

        Returns:
            False if it cannot be split.
        """
        self.in_flight = False
        head = self._pending[0]
        parts = head.batch.split() if head.batch.count > 1 else ()
        if len(parts) < 2 or sum(part.count for part in parts) != head.batch.count:
            return False
        self._pending.popleft()
        stored = head.part or head.attempts > 1
        self._pending.extendleft(_Pending(part, head.added_at, part=stored) for part in reversed(parts))
        self._next_sequence = head.sequence
        return True

    def drop(self) -> int:
        """Remove all batches except the one in flight, and return the number of their records."""
        kept = self._pending[0] if self.in_flight else None
        dropped = sum(pending.batch.count for pending in self._pending if pending is not kept)
        self._pending.clear()
        if kept is not None:
            self._pending.append(kept)
        return dropped

    @property
    def unsettled(self) -> bool:
        """Whether the first batch has a sequence number, so that dropping it leaves a gap."""
        return bool(self._pending) and self._pending[0].sequence >= 0
