"""The offsets of a snapshot's rows. They list the unread parts, so a later start can continue from them. Pure.

A part counts as read only once all its rows have been sent on: the latest rows of each table are withheld until others
follow (see :class:`~rowtide.connector.snapshot.records.ParallelRecordStream`). So a part counts when more rows of its
table are added, and a whole table when any other rows are added.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.chunks.key_ranges import Bound, ChunkKey
from rowtide.connector.snapshot.chunks.table_parts import TablePart
from rowtide.connector.snapshot.incremental.state import IncrementalTable, SnapshotState
from rowtide.schema_history.model import TableId

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Unread:
    """The rest of a table.

    Attributes:
        key: the key by which a later start continues reading it; ``None`` if it cannot.
        rows: rows that were added.
        added: its parts up to this key were added, one after the other.
        added_rows: rows that were added until then.
        lower, lower_rows: the same values in offsets.
        next: the number of the part after ``added``.
        beyond: the last keys of parts that were added before preceding parts, by their numbers.
    """

    key: ChunkKey | None
    rows: int = 0
    added: Bound | None = None
    added_rows: int = 0
    lower: Bound | None = None
    lower_rows: int = 0
    next: int = 0
    beyond: dict[int, Bound | None] = field(default_factory=dict)


class ResumableOffsets:
    """Makes the offsets of a snapshot's rows.

    Args:
        running: the offset of a snapshot in progress, from which a later start takes it again.
        resumed: the offset at which the stream of a later start begins if it continues reading; ``None`` if it cannot.
        keys: the tables that are read, in order, each with the key by which reading continues. As long as one without a
            key remains, a later start takes the snapshot again.
        every_rows: the minimum number of rows with the same offset, which may be long because it has all remaining
            tables.

    Attributes:
        offset: the offset of all later outputs.
    """

    def __init__(
        self,
        running: SourceOffset,
        resumed: SourceOffset | None,
        keys: Mapping[TableId, ChunkKey | None],
        every_rows: int,
    ) -> None:
        self.offset = running
        self._resumed = resumed
        self._unread = {table: _Unread(key) for table, key in keys.items()}
        self._every_rows = self._rows = every_rows
        self._has_room = True

    def add(self, table: TableId, rows: int) -> None:
        """Set the offset for the rows that are added next.

        Args:
            table: their table.
            rows: their number.
        """
        if self._resumed is None or not rows:  # without rows, nothing follows those that are withheld
            return
        unread = self._unread[table]
        unread.lower, unread.lower_rows = unread.added, unread.added_rows
        unread.rows += rows
        if self._rows >= self._every_rows:
            self._update(self._resumed)
        self._rows += rows

    def added(self, part: TablePart, *, complete: bool) -> None:
        """Note that all rows of a part were added.

        Args:
            part: the part.
            complete: whether it was the last one of its table.
        """
        table = part.table.listed.id
        if complete:
            del self._unread[table]
            return
        unread = self._unread[table]
        unread.beyond[part.number] = part.upper
        while unread.next in unread.beyond:
            unread.added, unread.added_rows = unread.beyond.pop(unread.next), unread.rows
            unread.next += 1

    def _update(self, resumed: SourceOffset) -> None:
        left: list[IncrementalTable] = []
        for table, unread in self._unread.items():
            if unread.key is None:
                return  # try again with the next rows
            left.append(
                IncrementalTable.of_initial_snapshot(table, unread.lower, unread.key.signature, unread.lower_rows)
            )
        self._rows, state = 0, SnapshotState(tuple(left))
        if state.has_room:
            self.offset = replace(resumed, carried=state.carried(resumed.carried))
        elif self._has_room:
            self._has_room = False
            log.warning(
                "the snapshot has %d tables, which are too many for a stored position: until some are read, an "
                "interrupted snapshot starts over", len(left),
            )  # fmt: skip
