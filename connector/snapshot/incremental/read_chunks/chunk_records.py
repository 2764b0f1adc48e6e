"""Makes the records of a chunk's rows: op ``r``, with the position of an event of the stream."""

from collections.abc import Callable, Iterator, Sequence

from rowtide.connector.records.batch import Batch
from rowtide.connector.records.change import SourcePosition
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.rows.text_protocol_rows import Rows
from rowtide.connector.snapshot.records import ReadTime, SnapshotTable

_BATCH_ROWS = 2048
_MAX_WINDOWS = 100
"""More than chunks can be read at a time. Others come from rows that somebody deletes, and from other connectors."""


class ClosedWindows:
    """The last rows of windows that the stream has passed in the signal table, by the window's id."""

    def __init__(self) -> None:
        self._events: dict[str, SourcePosition] = {}

    def __len__(self) -> int:
        return len(self._events)

    def add(self, row_id: str, event: SourcePosition) -> None:
        """Keep the last row of a window, and drop the oldest one if necessary.

        Args:
            row_id: the id of the row, with ``-open`` or ``-close`` at its end.
            event: the event of the row.
        """
        self._events[row_id.rpartition("-")[0]] = event
        if len(self._events) > _MAX_WINDOWS:
            del self._events[next(iter(self._events))]

    def take(self, window: str | None) -> SourcePosition | None:
        """Return the last row of a window, which is no longer needed; ``None`` if it has not arrived."""
        return self._events.pop(window or "", None)

    def clear(self) -> None:
        """Drop all events."""
        self._events.clear()


def row_batches(
    table: SnapshotTable,
    blocks: Sequence[Rows],
    event: SourcePosition,
    before: SourceOffset,
    after: SourceOffset,
    clock: Callable[[], int],
    gone: Rows = (),
) -> Iterator[Batch]:
    """Yield the records of a chunk, in batches of a bounded size, those of deletions last.

    An empty chunk is one batch without records. The last batch has the offset after the chunk, so that a commit stores
    both.

    Args:
        table: the table.
        blocks: its rows.
        event: the event whose position they have.
        before: the offset from which the chunk is read again.
        after: the offset after the chunk.
        clock: nanoseconds since the epoch.
        gone: rows whose deletion gets records.
    """
    micros = clock() // 1000
    read_time = ReadTime(micros, before, clock, event)
    rows = [row for block in blocks for row in block]
    if not rows and not gone:
        yield Batch("", -1, (), after, 0, 0)
    for begin in range(0, len(rows), _BATCH_ROWS):
        end = begin + _BATCH_ROWS
        messages = table.messages(rows[begin:end], "incremental", read_time)
        yield table.batch(messages, micros // 1000, after if end >= len(rows) and not gone else before)
    if gone:
        yield table.batch(table.deletions(gone, read_time), micros // 1000, after)
