"""Writes the outputs of a stream: batches to the event store, history entries to the schema history."""

import time
from collections.abc import Iterable

from rowtide.connector.delivery.event_store import EventStore
from rowtide.connector.records.batch import Batch, HistoryEntry, Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.store.history_store import SchemaHistoryStore

_PUT_BYTES = 4 << 20
"""Batches are put into the store whenever they have about this size, so that its limit holds."""


class StreamOutput:
    """Writes outputs in order: a history entry before the rows that need it.

    Args:
        store: receives the batches.
        history: receives the history entries.
        start: the start position.

    Attributes:
        store: the event store.
        offset: the last offset in the store.
        put_at: the time when it was put there (``time.monotonic``).
    """

    def __init__(self, store: EventStore, history: SchemaHistoryStore, start: SourceOffset) -> None:
        self.store = store
        self.offset = start
        self.put_at = time.monotonic()
        self._history = history
        self._outputs: list[Output] = []
        self._size = 0

    def add(self, outputs: Iterable[Output]) -> bool:
        """Hold outputs until :meth:`flush`, and return whether that is due because they are large."""
        self._outputs += outputs
        self._size += sum([output.size for output in outputs if isinstance(output, Batch)])
        return self._size >= _PUT_BYTES

    def flush(self) -> None:
        """Write the added outputs. After an error, they are not written a second time."""
        outputs, self._outputs, self._size = self._outputs, [], 0
        self.write(outputs)

    def write(self, outputs: Iterable[Output]) -> None:
        """Write outputs.

        Raises:
            StoreClosed: the consumer has ended.
        """
        batches: list[Batch] = []
        size = 0
        for output in outputs:
            if isinstance(output, HistoryEntry):
                self._history.append(output.text)
                continue
            batches.append(output)
            size += output.size
            if size >= _PUT_BYTES:  # a blocking snapshot makes them without end
                full, batches, size = batches, [], 0
                self.put(full)
        if batches:
            self.put(batches)

    def put(self, batches: list[Batch]) -> None:
        """Put batches, at least one, into the store; raises as :meth:`write` does."""
        self.store.put(batches)
        self.put_at = time.monotonic()
        self.offset = batches[-1].offset
