"""The records that the producer accepts."""

from collections.abc import Sequence
from typing import NamedTuple

Headers = Sequence[tuple[str, bytes | None]]
"""The headers of a record in their order; one object may be shared by many records."""

Record = tuple[bytes | None, bytes | None, Headers]
"""Key, value and headers; ``None`` as key: no key, as value: a tombstone."""

BY_KEY = -1
"""The partition of records that are assigned by their keys, as Kafka's default partitioner does."""


class Records(NamedTuple):
    """Records of one destination.

    Attributes:
        topic: the topic's name.
        partition: the partition's number, or :data:`BY_KEY`.
        records: the records in their order.
        timestamp_ms: their timestamp, milliseconds since the epoch; 0 for the time when they are sent.
    """

    topic: str
    partition: int
    records: Sequence[Record]
    timestamp_ms: int = 0
