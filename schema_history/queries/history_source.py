"""Queries of a schema history: the tables at a point in time, and the statements that changed them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Self

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.ddl.parser import parse
from rowtide.schema_history.ddl.statements import AlterTable, RenameTo
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import TableId
from rowtide.schema_history.position.binlog_position import BinlogPosition
from rowtide.schema_history.queries.column_changes import ColumnChange, column_changes
from rowtide.schema_history.queries.column_identities import ambiguous_names, column_identities
from rowtide.schema_history.queries.point_in_time import PointInTime
from rowtide.schema_history.queries.table_changes import TableChange
from rowtide.schema_history.recovery.recover import recover
from rowtide.schema_history.recovery.session_settings import recorded_event
from rowtide.schema_history.server.query_event import Server
from rowtide.schema_history.store.history_record import HistoryRecord, parse_record
from rowtide.schema_history.store.history_store import SchemaHistoryStore
from rowtide.schema_history.structure.context import context_of


@dataclass
class HistorySource:
    """A schema history, in a file or in a topic. As a context manager, it closes the history at the end."""

    server: Server
    store: SchemaHistoryStore

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    def tables(self, at: PointInTime) -> Tables:
        """Return the structures of all tables at a position, GTID set or time."""
        prefix = at.filter()
        records = self.store.replay(parse_record)
        return recover((r for r in records if prefix.includes(_position_of(r))), self.server, None)

    def latest(self) -> Tables:
        """Return the structures of all tables at the end of the history."""
        return recover(self.store.replay(parse_record), self.server, None)

    def changes(self) -> Iterator[TableChange]:
        """Yield the statements that changed tables, in the order of the binlog."""
        for record in self.store.replay(parse_record):
            changed = frozenset(table.id for table in record.tables)
            renamed = [(t.previous_id, t.id) for t in record.tables if t.previous_id is not None]
            if changed:
                yield TableChange(
                    _position_of(record), record.ddl or "", changed, tuple(renamed or self._renamed(record))
                )

    def column_changes(self, table: TableId) -> Mapping[str, ColumnChange]:
        """Return the last change of each column of a table; see :func:`~..column_changes.column_changes`."""
        return column_changes(self.store.replay(parse_record), table, self.server)

    def ambiguous_names(self, table: TableId) -> set[str]:
        """Return the names of columns that were renamed; see :func:`~..column_identities.ambiguous_names`."""
        found = column_identities(self.store.replay(parse_record), table, self.server)
        return ambiguous_names(columns for _, columns in found)

    def _renamed(self, record: HistoryRecord) -> Iterator[tuple[TableId, TableId]]:
        """Yield the old and new names of an ALTER TABLE ... RENAME, whose record has only the new one."""
        if "rename" not in (record.ddl or "").lower():
            return
        try:
            event = recorded_event(record.ddl or "", record.database, record.session)
            body = parse(record.ddl or "", context_of(event, self.server).dialect).body
        except SchemaHistoryError:
            return
        if isinstance(body, AlterTable) and any(isinstance(action, RenameTo) for action in body.actions):
            old = TableId(body.name.database or event.database, body.name.table)
            yield from ((old, table.id) for table in record.tables if table.id != old)


def _position_of(record: HistoryRecord) -> BinlogPosition:
    """Return the position of a record, with the record's own time if the position has none."""
    position = BinlogPosition.from_map(record.position)
    return position if position.ts_sec else replace(position, ts_sec=record.ts_ms // 1000)
