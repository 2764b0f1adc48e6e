"""What travels from the pipeline to the edges: messages of one topic, in order, with the offset behind them.

A batch never knows how it was made nor who sends it. It is the unit of the event store and of back-pressure.
"""

from collections.abc import Sequence
from typing import NamedTuple

from rowtide.connector.records.change import Change
from rowtide.connector.records.offset import SourceOffset
from rowtide.envelope.schema import Schema

Headers = Sequence[tuple[str, bytes | None]]
"""Kafka headers in their order; one object may be shared by many messages."""

Message = tuple[bytes | None, bytes | None, Headers]
"""Key, value (``None``: no key, a tombstone) and headers, as the exact bytes that Kafka gets."""


Schemas = tuple[Schema | None, Schema | None]
"""Of keys (``None``: no keys) and of values."""


class Batch(NamedTuple):
    """Messages of one topic, in the order of the binlog, and where a restart goes on after them.

    Attributes:
        topic: the topic's name.
        partition: the partition, or -1 for "by the key", as Kafka's default partitioner has it.
        messages: at least one message, or none for a batch that only moves the offset on.
        offset: the position to go on from once every message up to here is acknowledged.
        size: bytes of all keys and values, for the store's budget.
        ts_ms: when the source changed the rows (milliseconds since the epoch), for lag; 0 when not known.
        schemas: of the messages' keys and values, for transforms.
        timestamp: of the messages (milliseconds since the epoch); 0 for the time when they are sent.
        changes: the same rows as Python values, instead of messages (``PipelineSettings.changes``).
    """

    topic: str
    partition: int
    messages: Sequence[Message]
    offset: SourceOffset
    size: int
    ts_ms: int
    schemas: Schemas | None = None
    timestamp: int = 0
    changes: Sequence[Change] = ()

    @property
    def events(self) -> int:
        """How many messages or changes it holds."""
        return len(self.messages) or len(self.changes)


class HistoryEntry(NamedTuple):
    """A record of the schema history; it must be safe before any batch behind it is sent.

    Attributes:
        text: the record as JSON.
    """

    text: str


Output = Batch | HistoryEntry
"""What the pipeline gives, in the order in which it must be written."""
