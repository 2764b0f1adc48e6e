"""Which entries reach the clients: those of tables and kinds that are not filtered out, and few empty transactions.

The rules are those of Canal's ``EntryEventSink`` and ``canal.instance.filter.*``. A transaction without rows or
statements for the clients is omitted, except for one now and then, which advances the positions.
"""

from dataclasses import dataclass
from typing import NamedTuple

from rowtide.canal.entries.entry import Entry, EntryStatement, EventType, RowChange, TransactionBegin, TransactionEnd
from rowtide.canal.entries.filters import EntryFilter
from rowtide.connector.records.offset import SourceOffset

_EMPTY_INTERVAL_MS = 5000
_EMPTY_COUNT = 8192
_XA_ENDS = (EventType.XACOMMIT, EventType.XAROLLBACK)


@dataclass(frozen=True, slots=True)
class EntryKinds:
    """Kinds of entries that are omitted (``canal.instance.filter.*``).

    Attributes:
        transactions: begins and ends of transactions.
        ddl: statements of DDL.
        statements: the statements that caused the rows.
        rows: rows.
        inserts: rows of INSERT.
        updates: rows of UPDATE.
        deletes: rows of DELETE.
    """

    transactions: bool = False
    ddl: bool = False
    statements: bool = False
    rows: bool = False
    inserts: bool = False
    updates: bool = False
    deletes: bool = False

    def omits(self, content: RowChange | EntryStatement) -> bool:
        """Return whether clients do not get such an entry."""
        if isinstance(content, RowChange):
            kinds = {EventType.INSERT: self.inserts, EventType.UPDATE: self.updates, EventType.DELETE: self.deletes}
            return self.rows or kinds[content.type]
        if content.type in _XA_ENDS:
            return False
        return self.ddl if content.ddl else self.statements


class PassedEntry(NamedTuple):
    """An entry for the clients, and the resume position after its event."""

    entry: Entry
    offset: SourceOffset


class EntrySink:
    """Selects entries.

    Args:
        tables: the tables of the instance; may be replaced at any time.
        kinds: the kinds that are omitted.
    """

    def __init__(self, tables: EntryFilter, kinds: EntryKinds) -> None:
        self.tables = tables
        self._kinds = kinds
        self._begin: PassedEntry | None = None  # until something of its transaction passes
        self._used = True
        self._empty = 0
        self._empty_ts_ms = 0

    def passed(self, entries: list[Entry], offset: SourceOffset) -> list[PassedEntry]:
        """Return the entries that reach the clients, in order.

        Args:
            entries: of an event.
            offset: the resume position after it.
        """
        out: list[PassedEntry] = []
        for entry in entries:
            content = entry.content
            if isinstance(content, TransactionBegin):
                self._begin, self._used = PassedEntry(entry, offset), False
            elif isinstance(content, TransactionEnd):
                self._end(PassedEntry(entry, offset), out)
            elif self.passes(entry, content):
                if self._begin is not None and not self._kinds.transactions:
                    out.append(self._begin)
                self._begin, self._used = None, True
                out.append(PassedEntry(entry, offset))
        return out

    def _end(self, end: PassedEntry, out: list[PassedEntry]) -> None:
        begin, self._begin = self._begin, None
        used, self._used = self._used, True  # MariaDB's transactions have no begin
        if used and not self._kinds.transactions:
            out.append(end)
            return
        self._empty += 1
        ts_ms = end.entry.header.execute_time
        if abs(ts_ms - self._empty_ts_ms) > _EMPTY_INTERVAL_MS or self._empty > _EMPTY_COUNT:
            self._empty, self._empty_ts_ms = 0, ts_ms
            out += [end] if begin is None else [begin, end]

    def passes(self, entry: Entry, content: RowChange | EntryStatement) -> bool:
        """Return whether clients get the content of an entry."""
        if self._kinds.omits(content):
            return False
        database, table = entry.header.database, entry.header.table
        return not database or not table or self.tables.passes(database, table)
