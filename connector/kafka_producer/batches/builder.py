"""An open record batch: takes messages until it is full. Pure.

Two limits apply to a batch: ``batch.size`` to its estimated bytes after compression, as in Java's producer, and another
one to the bytes before, which are in memory. A record that is larger than them alone gets its own batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rowtide.connector.kafka_producer.batches.compression import NONE, Codec, CompressionRatio
from rowtide.connector.kafka_producer.batches.python_records import (
    BATCH_OVERHEAD,
    PythonRecords,
    estimated_size,
)
from rowtide.connector.kafka_producer.batches.record_batch import RecordBatch, Records
from rowtide.connector.kafka_producer.records import Record


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The limits of batches, in bytes.

    Attributes:
        batch_size: of a batch, estimated (``batch.size``).
        raw_limit: of the records of a batch before compression.
        max_request_size: of a record, before compression and with the most overhead (``max.request.size``).
    """

    batch_size: int
    raw_limit: int
    max_request_size: int


class RecordTooLarge(Exception):
    """A message is larger than ``max.request.size``.

    Attributes:
        index: its index among the messages.
        size: the bytes that limits refer to, see ``estimated_size``.
        limit: ``max.request.size``.
    """

    def __init__(self, index: int, size: int, limit: int) -> None:
        super().__init__(f"a message makes a request of {size} bytes, more than max.request.size={limit}")
        self.index = index
        self.size = size
        self.limit = limit


class RecordBatchBuilder:
    """The open batch of a partition.

    Args:
        limits: the limits of the batch.
        codec: compresses the records.
        ratio: the estimated compression of the topic's records; it is corrected by every closed batch.

    Raises:
        ValueError: a limit is negative, or would allow 2 GiB.
    """

    def __init__(self, limits: BatchLimits, codec: Codec, ratio: CompressionRatio) -> None:
        self._limits = limits
        self._codec = codec
        self._ratio = ratio
        self._records: PythonRecords = Records(limits.batch_size, limits.raw_limit, limits.max_request_size)
        self._factor = 1.0

    @property
    def count(self) -> int:
        """The number of records."""
        return self._records.count

    @property
    def size(self) -> int:
        """The estimated bytes of the batch; 0 if it has no records."""
        records = self._records
        return BATCH_OVERHEAD + int(records.size * self._factor) if records.count else 0

    @property
    def raw_size(self) -> int:
        """The bytes of the records before compression."""
        return self._records.size

    def append(self, messages: Sequence[Record], start: int, timestamp_ms: int) -> int:
        """Add messages until the batch is full.

        Args:
            messages: a list or a tuple of messages; headers are a list or a tuple as well.
            start: the index of the first one to add.
            timestamp_ms: the timestamp of them all (milliseconds since the epoch).

        Returns:
            The index of the first message that was not added: it belongs to the next batch. The number of messages if
            all were added.

        Raises:
            RecordTooLarge: a message will never fit; those before it were added.
            TypeError: a message is not a tuple of key, value and headers; none was added.
            ValueError: an argument is outside its limits; none was added.
        """
        if self._codec is not NONE and not self._records.count:
            self._factor = self._ratio.factor  # one estimate for the whole batch, as in Java
        end = self._records.append(messages, start, timestamp_ms, self._factor)
        if end < len(messages):
            size = estimated_size(messages[end])
            if size > self._limits.max_request_size:
                raise RecordTooLarge(end, size, self._limits.max_request_size)
        return end

    def close(self) -> RecordBatch:
        """Return the batch of the records. The builder is empty then, and keeps its memory for another batch.

        Raises:
            ValueError: there are no records.
        """
        batch = RecordBatch(self._records, self._codec)
        self._records.clear()
        if self._codec is not NONE:
            self._ratio.observe(batch.ratio)
        return batch
