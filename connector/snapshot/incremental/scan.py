"""A table that is being read: the next part to cut and read, and the parts read so far. Without input or output.

The reader's thread makes a scan, replaces it when something changes, and takes the chunks that were read. Workers take
work from it. A replaced scan is abandoned, and further results of its workers are dropped.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.rows.text_protocol_rows import Rows
from rowtide.connector.snapshot.chunks.key_ranges import Bound, ChunkKey, KeyRanges
from rowtide.connector.snapshot.incremental.keys.requested_keys import RequestedKeys
from rowtide.connector.snapshot.incremental.keys.row_keys import RowKeys
from rowtide.connector.snapshot.records import SnapshotTable
from rowtide.schema_history.model import Table


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment of the stream, between two transactions.

    Attributes:
        number: the number of the journal's last event.
        position: the stream's position.
    """

    number: int
    position: SourceOffset


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a table.

    Attributes:
        number: from 0, in the order of the key.
        lower: the key before it; ``None`` for the first one.
        upper: its last key; ``None`` for the rows whose key is NULL.
        final: whether no chunk comes after it.
    """

    number: int
    lower: Bound | None
    upper: Bound | None
    final: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of a chunk, with the bytes from which they were decoded.

    Attributes:
        rows: decoded by the table's reader.
        data: the packets, or the payload of one row.
        single: whether it is the payload of one row.
    """

    rows: Rows
    data: bytes
    single: bool


@dataclass(frozen=True, slots=True)
class ReadChunk:
    """A chunk that was read.

    Attributes:
        chunk: the chunk.
        since: the journal's last event before it was read.
        blocks: its rows.
        names: the columns of the result set.
        end: a binlog position after all changes that it includes.
        window: the id of its window in the signal table, if there is one.
        seen: a binlog position; the chunk includes all changes before it; ``None`` if only ``since`` is known.
    """

    chunk: Chunk
    since: int
    blocks: Sequence[Block]
    names: Sequence[str]
    end: SourceOffset
    window: str | None
    seen: SourceOffset | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """A chunk, or the search for it, that the server refused.

    Attributes:
        reason: the error.
        end: a position of the binlog after the failure; ``None`` if it could not be read.
        lost: whether the connection was lost, which proves nothing about the table.
        rows: if the chunk is too large, a number of rows that is too large for a chunk.
        hopeless: whether the table cannot be read further in any case.
    """

    reason: str
    end: SourceOffset | None = None
    lost: bool = False
    rows: int | None = None
    hopeless: bool = False


@dataclass
class Scan:
    """A table that is being read. Its changing attributes are guarded by the lock of the chunk reader.

    Attributes:
        structure: the table's structure in the stream when the scan began.
        table: converts rows to records.
        key: by which it is divided.
        ranges: the ranges of this key.
        row_keys: by which rows are compared with events.
        condition: a condition for its rows, as SQL; ``""`` for none.
        requested: the keys of the rows to read, all of them in one chunk; ``None`` for all rows.
        size: rows of the next chunk.
        limit: the maximum number of rows of a chunk; ``None`` if that is not known.
        delays: the number of times the next chunk is postponed, each time for longer.
        held: whether the next chunk is read while the stream waits.
        begun: whether ``last`` is known.
        last: the largest key.
        lower: the key up to which chunks are cut.
        estimated: the server's estimate of the table's rows.
        versioned: whether a view shows its rows as they were when it was opened.
        number: the number of the next chunk.
        nulls: whether rows whose key is NULL must be read after all others.
        cut: whether all chunks are cut.
        cutting: whether a worker searches for the next bound.
        failed: whether a worker has failed; nothing more is read then.
        waiting: whether the stream currently waits for the chunk.
        reading: the chunks that are being read or wait to be taken, each with the journal's number before it.
    """

    structure: Table
    table: SnapshotTable
    key: ChunkKey
    ranges: KeyRanges
    row_keys: RowKeys
    condition: str
    size: int
    limit: int | None = None
    delays: int = 0
    held: bool = False
    requested: RequestedKeys | None = None
    begun: bool = False
    last: Bound | None = None
    lower: Bound | None = None
    estimated: int | None = None
    versioned: bool = False
    number: int = 0
    nulls: bool = False
    cut: bool = False
    cutting: bool = False
    failed: bool = False
    waiting: bool = False
    reading: dict[int, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The table's name."""
        return str(self.structure.id)

    @property
    def idle(self) -> bool:
        """Whether a worker may cut the next chunk."""
        alone = not self.held or not self.reading  # the stream waits for one chunk at a time
        return alone and not (self.cut or self.cutting or self.failed)

    def select(self, chunk: Chunk) -> str:
        """Return the query for the rows of a chunk."""
        expressions = self.table.selected
        expressions += [one for one in self.row_keys.selected if one not in expressions]
        where = self.ranges.nulls if chunk.upper is None else self.ranges.where(chunk.lower, chunk.upper)
        return self.ranges.rows_query(expressions, where or "TRUE", self.condition)

    def next_chunk(self, bound: Bound | None) -> Chunk:
        """Cut the next chunk.

        Args:
            bound: its last key; ``None`` if it has all remaining rows.
        """
        if self.last is None or self.lower == self.last:
            chunk = Chunk(self.number, None, None, final=True)
        else:
            ends = bound is None or bound == self.last
            upper = self.last if bound is None else bound
            chunk = Chunk(self.number, self.lower, upper, final=ends and not self.nulls)
            self.lower = upper
        self.number += 1
        self.cut = chunk.final
        return chunk
