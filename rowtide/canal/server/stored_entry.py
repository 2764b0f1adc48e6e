"""The contents of the event store for Canal's clients: entries as bytes, with their positions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from rowtide.canal.entries.entry import Entry, EntryStatement, EventType, RowChange, TransactionBegin, TransactionEnd
from rowtide.connector.records.offset import SourceOffset

_ISOLATED = {
    EventType.ALTER,
    EventType.CREATE,
    EventType.ERASE,
    EventType.RENAME,
    EventType.TRUNCATE,
    EventType.CINDEX,
    EventType.DINDEX,
}


class LogPosition(NamedTuple):
    """The position of an entry as Canal stores it, and the resume position after its event.

    Attributes:
        file: binlog file.
        pos: where the event begins.
        server_id: of the server that wrote it first.
        ts_ms: when, in milliseconds since the epoch.
        gtid: the executed GTID set, with this transaction; ``""`` without ``canal.instance.gtidon``.
        offset: the resume position after the event.
    """

    file: str
    pos: int
    server_id: int
    ts_ms: int
    gtid: str
    offset: SourceOffset


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry in the event store.

    Attributes:
        raw: the message ``Entry``.
        position: its position.
        resumable: whether a client can resume after it: the end of a transaction, DDL, or, without GTIDs, the beginning
            of a transaction. With GTIDs, resuming after a beginning, or DDL inside a transaction (CREATE TABLE ...
            SELECT), would skip the rest of the transaction.
        ddl: whether it is a statement that ``canal.instance.get.ddl.isolation`` puts into its own batch.
        transaction: whether it is the beginning or the end of a transaction.
        rows: how many rows it has.
    """

    raw: bytes
    position: LogPosition
    resumable: bool
    ddl: bool
    transaction: bool
    rows: int = 0

    @property
    def events(self) -> int:
        """The number of entries that Canal counts."""
        return 1

    @property
    def size(self) -> int:
        """Bytes of the entry."""
        return len(self.raw)

    @property
    def ts_ms(self) -> int:
        """When the event was written, in milliseconds since the epoch."""
        return self.position.ts_ms


def stored(entry: Entry, offset: SourceOffset) -> StoredEntry:
    """Return an entry as the event store holds it.

    Args:
        entry: the entry.
        offset: the resume position after its event.
    """
    position = log_position(entry, offset)
    rows = len(entry.content.rows) if isinstance(entry.content, RowChange) else 0
    bounds = isinstance(entry.content, TransactionBegin | TransactionEnd)
    return StoredEntry(entry.encoded(), position, resumable(entry, offset), is_isolated(entry), bounds, rows)


def log_position(entry: Entry, offset: SourceOffset) -> LogPosition:
    """Return the position of an entry.

    Args:
        entry: the entry.
        offset: the resume position after its event.
    """
    header = entry.header
    return LogPosition(header.file, header.offset, header.server_id, header.execute_time, header.gtid, offset)


def resumable(entry: Entry, offset: SourceOffset) -> bool:
    """Return whether a client can resume after an entry (:attr:`StoredEntry.resumable`)."""
    if offset.snapshot is not None:
        return False
    if isinstance(entry.content, TransactionEnd):
        return True
    gtid = entry.header.gtid
    return (is_isolated(entry) and (not gtid or not offset.event)) or (
        isinstance(entry.content, TransactionBegin) and not gtid
    )


def is_isolated(entry: Entry) -> bool:
    """Return whether it is a statement that ``canal.instance.get.ddl.isolation`` puts into its own batch."""
    return isinstance(entry.content, EntryStatement) and entry.content.type in _ISOLATED


@dataclass(frozen=True, slots=True)
class BatchMode:
    """The unit of fetch sizes (``canal.instance.memory.batch.mode``).

    Attributes:
        counts_entries: ``ITEMSIZE``: entries; otherwise, ``MEMSIZE``: memory units.
        unit: bytes of a memory unit (``canal.instance.memory.buffer.memunit``); 1 if entries are counted.
    """

    counts_entries: bool
    unit: int


def fits(mode: BatchMode, fetch_size: int, isolate_ddl: bool) -> Callable[[StoredEntry], bool]:
    """Return whether an entry belongs to a batch. Call this with one entry after the other.

    In memory units, a batch ends with the entry that exceeds the fetch size, as in Canal.
    """
    room = fetch_size * mode.unit
    alone = False

    def belongs(entry: StoredEntry) -> bool:
        nonlocal room, alone
        if alone or (isolate_ddl and entry.ddl and room != fetch_size * mode.unit):
            return False
        alone = isolate_ddl and entry.ddl
        if mode.counts_entries:
            room -= 1
            return room >= 0
        before = room
        room -= entry.size
        return before >= 0

    return belongs
