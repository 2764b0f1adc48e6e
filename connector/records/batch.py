"""The output of the pipeline: batches of messages, each with the offset after it, and schema history entries.

A batch is the unit of the event store, of back-pressure and of commits.
"""

from collections.abc import Generator, Sequence
from typing import NamedTuple

from rowtide.connector.records.change import Change
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.table_events import TableEvent
from rowtide.envelope.schema import Schema

Headers = Sequence[tuple[str, bytes | None]]
"""Kafka headers in their order; one object may be shared by many messages."""

Message = tuple[bytes | None, bytes | None, Headers]
"""Key, value and headers, as the bytes that are sent to Kafka; ``None`` as key: no key, as value: a tombstone."""


Schemas = tuple[Schema | None, Schema | None]
"""The schemas of keys and values; ``None`` if the messages have no keys."""


class Batch(NamedTuple):
    """Messages of one topic in the order of the binlog, and the resume position after them.

    Attributes:
        topic: the topic's name.
        partition: the partition, or -1 to choose it by the key, as Kafka's default partitioner does.
        messages: at least one message, or none in a batch that only advances the offset.
        offset: the position to resume from once every message up to here is acknowledged.
        size: bytes of all keys and values, for the limits of the event store.
        ts_ms: when the source changed the rows (milliseconds since the epoch), for the lag; 0 if unknown.
        schemas: the schemas of keys and values, for transforms.
        timestamp: the messages' timestamp (milliseconds since the epoch); 0 for the time when they are sent.
        changes: the same rows as Python values, instead of messages (``PipelineSettings.changes``).
        tables: the effects of a statement or a snapshot on tables as a whole (``PipelineSettings.table_events``).
        pieces: of a batch with several destinations: the batches to send instead of it, in order. ``messages`` are
            then those of all pieces, and ``topic``, ``partition`` and ``timestamp`` are meaningless.
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
    pieces: "Sequence[Batch]" = ()
    tables: Sequence[TableEvent] = ()

    @property
    def events(self) -> int:
        """The number of messages, changes or events of tables in it."""
        return len(self.messages) or len(self.changes) or len(self.tables)

    def destinations(self) -> "Sequence[Batch]":
        """Return the batches to send, each with one topic, partition and timestamp.

        Only the last offset may be stored.
        """
        return self.pieces or (self,)


def joined(batches: Sequence[Batch]) -> Batch:
    """Return one batch with all records of an event and the offset of the last: a commit has all or none of them."""
    if len(batches) == 1:
        return batches[0]
    pieces = [piece for batch in batches for piece in batch.destinations()]
    messages = [message for piece in pieces for message in piece.messages]
    changes = [change for piece in pieces for change in piece.changes]
    size, last = sum(piece.size for piece in pieces), batches[-1]
    return Batch("", -1, messages, last.offset, size, last.ts_ms, changes=changes, pieces=pieces)


class HistoryEntry(NamedTuple):
    """A record of the schema history. It must be stored before any batch after it is sent.

    Attributes:
        text: the record as JSON.
    """

    text: str


Output = Batch | HistoryEntry
"""One item of the pipeline's output; items must be written in order."""

Outputs = list[Output] | tuple[Output, ...]
"""Outputs in order."""

MoreOutputs = Generator[Outputs, None, Outputs]
"""Outputs that are too many for one step; it yields those of each step, and returns the last."""

Steps = Outputs | MoreOutputs
"""The outputs of an event."""
