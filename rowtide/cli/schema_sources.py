"""The sources of ``rowtide schema``: a schema history in a file or topic, or binlog files."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.position.binlog_position import BinlogPosition
from rowtide.schema_history.queries.history_source import HistorySource
from rowtide.schema_history.queries.point_in_time import PointInTime
from rowtide.schema_history.queries.table_changes import TableChange
from rowtide.schema_history.server.query_event import Flavor, Server
from rowtide.schema_history.store.file import FileSchemaHistory


class StructureSource(Protocol):
    """Table structures at any position, and the statements that changed them."""

    server: Server

    def tables(self, at: PointInTime) -> Tables:
        """Return the structures of all tables at a position, GTID set or time."""

    def changes(self) -> Iterator[TableChange]:
        """Return the statements that changed tables, in the order of the binlog."""


class BinlogSource:
    """The binlog files in a folder. Tables that were created before the first file are missing."""

    def __init__(self, folder: Path, flavor: Flavor) -> None:
        self._folder = folder
        self.server = Server(flavor)

    def tables(self, at: PointInTime) -> Tables:
        """Return the structures of all tables at a position, GTID set or time."""
        prefix = at.filter()
        tables: Tables | None = None
        for tables, _ in self._applied(prefix.includes):  # noqa: B007 - the last one counts
            pass
        return tables if tables is not None else Tables(self.server)

    def changes(self) -> Iterator[TableChange]:
        """Yield the statements that changed tables, in the order of the binlog."""
        for _, change in self._applied(lambda _: True):
            if change.tables:
                yield change

    def _applied(self, included: Callable[[BinlogPosition], bool]) -> Iterator[tuple[Tables, TableChange]]:
        """Yield the tables after each statement, as long as ``included`` accepts its position."""
        from rowtide.connector.source.files.statements import binlog_statements  # noqa: PLC0415 - needs the extra

        tables: Tables | None = None
        for statement in binlog_statements(self._folder):
            if not included(statement.position):
                return
            if tables is None:
                self.server = Server(self.server.flavor, statement.version)
                tables = Tables(self.server)
            applied = tables.apply(statement.event)
            gone = [table_id for table_id, table in applied.altered if table is None]
            made = [table_id for table_id, table in applied.altered if table is not None]
            renamed = [(gone[0], made[-1])] if applied.statement_class == "alter table" and gone and made else []
            ddl = applied.changes[0].ddl if applied.changes else ""
            if "rename" in applied.statement_class:
                renamed = [(c.previous_id, c.table_id) for c in applied.changes if c.previous_id and c.table_id]
                ddl = ", ".join(change.ddl for change in applied.changes)
            yield tables, TableChange(statement.position, ddl, frozenset((*gone, *made)), tuple(renamed))


def file_source(path: Path, flavor: Flavor) -> HistorySource:
    """Return a schema history file."""
    return HistorySource(Server(flavor), FileSchemaHistory(path))
