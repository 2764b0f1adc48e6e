"""The open batches of all partitions, and the closed ones for the state machine. Pure."""

from collections.abc import Callable, Iterator, Sequence
from typing import Self

from rowtide.connector.kafka_producer.batches.builder import BatchLimits, RecordBatchBuilder
from rowtide.connector.kafka_producer.batches.compression import Codec, CompressionRatio
from rowtide.connector.kafka_producer.batches.record_batch import RecordBatch
from rowtide.connector.kafka_producer.machine.messages import TopicPartition
from rowtide.connector.kafka_producer.records import Record

_MOST_SPARE = 4
"""Empty builders that are kept; each may hold twice the bytes of the records of a batch."""


class ClosedBatch:
    """A record batch with its destination: a ``Batch`` of the state machine.

    Args:
        place: the destination.
        records: the batch.
        codec: makes the codec of its parts, if it has to be split.
        too_large: called with the batch if it is split.

    Attributes:
        topic: the topic's name.
        partition: the partition's number.
        count: number of records.
        size: bytes in a request.
        raw_size: bytes of the records before compression. The sum over its parts is the same.
    """

    __slots__ = ("_codec", "_records", "_too_large", "count", "partition", "raw_size", "size", "topic")

    def __init__(
        self,
        place: TopicPartition,
        records: RecordBatch,
        codec: Callable[[], Codec],
        too_large: Callable[[RecordBatch], None],
    ) -> None:
        self.topic, self.partition = place
        self.count = records.count
        self.size = records.size
        self.raw_size = records.raw_size
        self._records = records
        self._codec = codec
        self._too_large = too_large

    def numbered(self, producer_id: int, epoch: int, base_sequence: int, *, transactional: bool) -> memoryview:
        """Return the bytes to send."""
        return self._records.numbered(producer_id, epoch, base_sequence, transactional=transactional)

    def split(self) -> Sequence[Self]:
        """Return two batches of the same records."""
        self._too_large(self._records)
        place = TopicPartition(self.topic, self.partition)
        halves = self._records.halves(self._codec())
        first, second = (type(self)(place, half, self._codec, self._too_large) for half in halves)
        second.raw_size = self.raw_size - first.raw_size  # numbers of records take fewer bytes in smaller batches
        return first, second

    def record(self, index: int | None) -> tuple[bytes | None, int]:
        """Return key and size of a record; ``None`` for the largest one."""
        found = [(key, len(key or b"") + len(value or b"")) for _, (key, value, _headers) in self._records.records()]
        return max(found, key=lambda record: record[1]) if index is None else found[index]


class OpenBatches:
    """The open batches.

    Args:
        limits: of each batch.
        codec: makes a codec; a codec is for one thread.

    Attributes:
        size: the bytes of the records in all open batches.
        count: the number of these records.
        opened_at: when the oldest one got its first record; ``None`` if there is none.
    """

    def __init__(self, limits: BatchLimits, codec: Callable[[], Codec]) -> None:
        self.size = 0
        self.count = 0
        self.opened_at: float | None = None
        self._limits = limits
        self._new_codec = codec
        self._codec = codec()
        self._ratios: dict[str, CompressionRatio] = {}
        self._open: dict[TopicPartition, RecordBatchBuilder] = {}
        self._spare: dict[str, RecordBatchBuilder] = {}

    def __bool__(self) -> bool:
        return bool(self._open)

    def append(
        self, place: TopicPartition, messages: Sequence[Record], timestamp_ms: int, now: float
    ) -> Iterator[ClosedBatch]:
        """Add messages to the open batch of a partition, and yield full batches.

        Raises:
            RecordTooLarge: a message is larger than ``max.request.size``; those before it were added.
        """
        start, end = 0, len(messages)
        while start < end:
            builder = self._open.get(place)
            if builder is None:
                builder = self._open[place] = self._builder(place.topic)
                if self.opened_at is None:
                    self.opened_at = now
            size, count = builder.raw_size, builder.count
            try:
                start = builder.append(messages, start, timestamp_ms)
            finally:
                self.size += builder.raw_size - size
                self.count += builder.count - count
            if start < end:
                yield self._close(place)

    def close(self) -> Iterator[ClosedBatch]:
        """Close all batches, in the order in which they were opened."""
        for place, builder in list(self._open.items()):
            if builder.count:
                yield self._close(place)
            else:  # its first record was too large
                del self._open[place]
        self.opened_at = None

    def drop(self) -> None:
        """Drop all records."""
        self._open.clear()
        self.size = self.count = 0
        self.opened_at = None

    def _builder(self, topic: str) -> RecordBatchBuilder:
        spare = self._spare.pop(topic, None)
        if spare is not None:
            return spare
        ratio = self._ratios.get(topic)
        if ratio is None:
            ratio = self._ratios[topic] = CompressionRatio()
        return RecordBatchBuilder(self._limits, self._codec, ratio)

    def _close(self, place: TopicPartition) -> ClosedBatch:
        builder = self._open.pop(place)
        self.size -= builder.raw_size
        self.count -= builder.count
        ratio = self._ratios[place.topic]
        closed = ClosedBatch(place, builder.close(), self._new_codec, lambda batch: ratio.reset(batch.ratio))
        self._keep(place.topic, builder)
        return closed

    def _keep(self, topic: str, builder: RecordBatchBuilder) -> None:
        """Reuse an empty builder for its topic, because new memory would have to be requested from the system."""
        self._spare.pop(topic, None)
        if len(self._spare) == _MOST_SPARE:
            del self._spare[next(iter(self._spare))]
        self._spare[topic] = builder
