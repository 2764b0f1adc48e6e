"""The initial snapshot of an instance: the connector's snapshot, with the rows of all tables as entries.

The rows form one transaction: a beginning, INSERT entries as small as those of the binlog, and an end, after which
clients can resume. Each has the property ``snapshot=initial`` in its header.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from rowtide.canal.entries.columns import selected_columns
from rowtide.canal.entries.entry import (
    ABSENT,
    Content,
    Entry,
    EntryColumn,
    EntryHeader,
    EventType,
    Pairs,
    RowChange,
    TransactionBegin,
    TransactionEnd,
    Values,
)
from rowtide.canal.entries.sink import EntrySink, PassedEntry
from rowtide.canal.instance.source import CanalSource
from rowtide.connector.errors import SnapshotError
from rowtide.connector.records.batch import Batch, HistoryEntry
from rowtide.connector.records.change import Change
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.rows.text_protocol_rows import ResultColumn, ResultReader, Rows, result_value_reader
from rowtide.connector.snapshot import Decision
from rowtide.connector.snapshot.initial import Snapshot
from rowtide.connector.snapshot.records import ReadTime, SnapshotTable, groups_by_size
from rowtide.connector.source.server_queries import quoted, selected
from rowtide.envelope import source as envelope_source
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table

MARK: Pairs = (("snapshot", "initial"),)
_ENTRY_BYTES = 8192
"""Bytes of the values of an entry, as in an event of the binlog (``binlog_row_event_max_size``)."""

Output = HistoryEntry | Sequence[PassedEntry]


class EntrySnapshot:
    """Takes a snapshot of the tables that pass a filter.

    Args:
        source: the server.
        sink: selects the tables.

    Attributes:
        rows: the number of rows so far.
    """

    def __init__(self, source: CanalSource, sink: EntrySink) -> None:
        self._source = source
        self._sink = sink
        self.rows = 0
        with source.session() as session:
            self._server_id = int(session.query("SELECT @@GLOBAL.server_id")[0][0])
        config = replace(source.config.snapshot, include=_PassingTables(sink))
        self._snapshot = Snapshot(
            source.config.database,
            source.pipeline_settings,
            config,
            Decision(structure=True, rows=True, position=None, stream=True),
            time.time_ns,
            form=EntryTable,
        )

    @property
    def tables(self) -> Tables:
        """The structures at the position of the snapshot."""
        return self._snapshot.tables

    @property
    def offset(self) -> SourceOffset:
        """The position of the snapshot, at which the stream continues."""
        return replace(self._source.present(self._snapshot.offset), prepared=())

    def outputs(self) -> Iterator[Output]:
        """Yield the schema history, and the entries except for the end, in order.

        Raises:
            SnapshotError, DatabaseUnreachableError: the snapshot cannot be taken.
        """
        begun = False
        for output in self._snapshot.outputs():
            self._refuse_prepared()
            if isinstance(output, HistoryEntry):
                yield output
                continue
            if not begun:
                yield [self._passed(TransactionBegin(0))]
                begun = True
            yield self._entries(cast("Sequence[_TableRows]", output.changes), output.ts_ms // 1000)

    def end(self) -> PassedEntry:
        """Return the end of the transaction, after which clients can resume."""
        return PassedEntry(self._passed(TransactionEnd(0)).entry, self.offset)

    def _refuse_prepared(self) -> None:
        if prepared := self._snapshot.offset.prepared:
            names = ", ".join(one.xid for one in prepared)
            raise SnapshotError(
                f"XA transactions are prepared, whose rows are neither in a snapshot nor in the stream after it: "
                f"{names}. Commit them, or roll them back"
            )

    def _entries(self, tables: Sequence["_TableRows"], seconds: int) -> list[PassedEntry]:
        found = []
        for table in tables:
            columns = self._source.settings.columns.kept(table.database, table.table, table.columns)
            for rows in groups_by_size(table.rows, _ENTRY_BYTES):
                content = RowChange(EventType.INSERT, 0, columns, [(None, row) for row in rows])
                count = ("rowsCount", str(len(rows)))
                size = sum([len(value) for row in rows for value in row if isinstance(value, str)])
                passed = self._passed(content, table.database, table.table, (count, *MARK), seconds, size)
                if self._sink.passes(passed.entry, content):
                    found.append(passed)
                    self.rows += len(rows)
        return found

    def _passed(
        self,
        content: Content,
        database: str = "",
        table: str = "",
        props: Pairs = MARK,
        seconds: int | None = None,
        length: int = 0,
    ) -> PassedEntry:
        offset = self.offset
        gtid = offset.gtids or "" if self._source.settings.gtids else ""
        at = offset.ts_sec or 0 if seconds is None else seconds
        header = EntryHeader(offset.file, offset.pos, length, self._server_id, at, database, table, gtid, props)
        return PassedEntry(Entry(header, content), replace(offset, snapshot="INITIAL"))


@dataclass(frozen=True, slots=True)
class _PassingTables:
    """The tables that pass a sink, whenever they were created: only the snapshot has the rows from before it."""

    sink: EntrySink

    def match(self, name: str) -> bool:
        """Return whether ``database.table`` passes."""
        database, _, table = name.partition(".")
        return self.sink.tables.passes(database, table)


@dataclass(frozen=True, slots=True)
class _TableRows:
    """Rows of one table."""

    database: str
    table: str
    columns: Sequence[EntryColumn]
    rows: Sequence[Values]


class EntryTable(SnapshotTable):
    """A table whose rows become rows of entries."""

    def __init__(self, table: Table, settings: PipelineSettings, *, custom_query: bool = False) -> None:
        super().__init__(table, settings, custom_query=custom_query)
        self._selected = selected_columns(table)
        self.columns = table.columns

    @property
    def selected(self) -> list[str]:
        """The expressions that select the columns; of an ENUM its index, because label '' and no label are one text."""
        return [
            f"CAST({quoted(column.name)} AS UNSIGNED) AS {quoted(column.name)}"
            if column.data_type == "enum"
            else selected(column, exact=self.settings.canonical)
            for column in self.columns
        ]

    def reader(self, names: Sequence[str]) -> ResultReader:
        """Compile a reader of Canal's texts."""
        columns = [
            ResultColumn(column, output, "", ABSENT)
            for column, output in zip(self.table.columns, self._selected.outputs, strict=True)
        ]
        return result_value_reader(columns, (), names)

    def messages(self, rows: Rows, marker: envelope_source.Snapshot, read_time: ReadTime) -> Sequence[Any]:
        """Return the values of rows, without keys."""
        return [row for _, row in rows]

    def batch(self, messages: Sequence[Any], ts_ms: int, offset: SourceOffset) -> Batch:
        """Return the rows, in the place of Python values."""
        found = _TableRows(self.table.id.database, self.table.id.table, self._selected.described, messages)
        return Batch("", -1, (), offset, 0, ts_ms, changes=cast("Sequence[Change]", (found,)))
