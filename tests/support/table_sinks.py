"""A source of statements and changes, and a sink that keeps its tables."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import deltalake
import duckdb

from rowtide.connector.delivery.tables.delta import DeltaOffsets, DeltaStore, directory_name
from rowtide.connector.delivery.tables.duckdb import DuckDbOffsets, DuckDbStore
from rowtide.connector.delivery.tables.sink import TableSink
from rowtide.connector.pipeline.table_events import moved_rows, table_events
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.change import Change, Layout, Op, SourcePosition
from rowtide.connector.records.codecs.builder import table_schema
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.table_events import TableEvent
from rowtide.envelope.table import RecordRules, TableSchema
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.topics.filters import CapturedNames, Patterns, Selection, TableFilter
from rowtide.topics.online_schema_change import WELL_KNOWN_HELPERS

SECONDS = 1_700_000_000
HELPERS = WELL_KNOWN_HELPERS
POSITION = SourcePosition("binlog.000001", 4, None, 1, None, None, SECONDS * 1_000_000, 0)


def records(table: Table) -> TableSchema:
    return table_schema(table, f"p.{table.id}", RecordRules(), "stream", lambda _table, _column: None)


class Source:
    """A source of statements and changes, and the file that keeps its tables."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.kind = kind
        self.path = folder / f"tables.{kind}"
        self.tables = Tables(Server(Flavor.MYSQL))
        names = TableFilter(tables=Selection(exclude=Patterns.parse("shop[.]hidden")), helpers=HELPERS)
        self._names = CapturedNames(names, self.tables.exists)
        self._number = 0
        self.offsets = self.store().offsets
        self.sink = TableSink(self.store())
        self.sink.open()

    def store(self) -> DuckDbStore | DeltaStore:
        """Where the tables are."""
        if self.kind == "delta":
            return DeltaStore(DeltaOffsets(self.path, "tables", "p"), compacted_each=5)
        return DuckDbStore(DuckDbOffsets(self.path, "tables", "p"))

    def restart(self) -> None:
        """Close the sink and open it again."""
        self.sink.close()
        self.sink = TableSink(self.store())
        self.sink.open()

    def offset(self, snapshot: str | None = None) -> SourceOffset:
        """The next position."""
        self._number += 1
        return SourceOffset("binlog.000001", self._number, snapshot=snapshot)

    def run(self, *statements: str) -> None:
        """Carry out statements; what they do to tables is sent."""
        for sql in statements:
            applied = self.tables.apply(QueryEvent(sql.encode(), database="shop", position="here"))
            moved = moved_rows(applied.statement_class, sql)
            events = list(table_events(applied, self._names, records, SECONDS, moved))
            self.sink.send([Batch("", -1, (), self.offset(), 0, 0, tables=events)])

    def table_event(self, *events: TableEvent, snapshot: str | None = None) -> None:
        """Send events of tables."""
        self.sink.send([Batch("", -1, (), self.offset(snapshot), 0, 0, tables=events)])

    def change(
        self,
        op: Op,
        name: str,
        before: Sequence[Any] | None,
        after: Sequence[Any] | None,
        snapshot: str | None = None,
        masked: Sequence[str] = (),
    ) -> None:
        """Send a change of a row."""
        table = self.tables.table("shop", name)
        assert table is not None
        layout = Layout(table, f"p.{table.id}", [column.name for column in table.row_columns], (), masked)
        old, new = (None if image is None else tuple(image) for image in (before, after))
        made = Change(op, layout, (), old, new, POSITION, 0, lambda _change: (None, b""))
        self.sink.send([Batch(layout.topic, -1, (), self.offset(snapshot), 0, 0, changes=[made])])

    def insert(self, name: str, *rows: Sequence[Any]) -> None:
        """Send new rows."""
        for row in rows:
            self.change("c", name, None, row)

    def commit(self) -> None:
        """Commit at the last position."""
        self.sink.commit(SourceOffset("binlog.000001", self._number))

    def rows(self, name: str = "t", database: str = "shop") -> list[tuple[Any, ...]]:
        """The rows of a table."""
        if self.kind == "delta":
            table = deltalake.DeltaTable(self.folder(database, name)).to_pyarrow_table()
            found = [tuple(row.values()) for row in table.to_pylist()]
        else:
            found = self.query(f'SELECT * FROM "{database}"."{name}"')
        return sorted(found, key=str)

    def columns(self, name: str = "t") -> list[str]:
        """The names of a table's columns."""
        if self.kind == "delta":
            return [field.name for field in deltalake.DeltaTable(self.folder("shop", name)).schema().fields]
        return [row[0] for row in self.query(f"DESCRIBE shop.{name}")]

    def names(self) -> list[str]:
        """The names of all tables of the database shop."""
        if self.kind == "delta":
            return sorted(folder.parent.name for folder in self.path.glob("shop/*/_delta_log"))
        return [
            row[0] for row in self.query("SELECT table_name FROM duckdb_tables() WHERE schema_name = 'shop' ORDER BY 1")
        ]

    def folder(self, database: str, name: str) -> Path:
        """The directory of a table of Delta Lake."""
        return self.path / directory_name(database) / directory_name(name)

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """Read or change the DuckDB file."""
        with duckdb.connect(self.path) as connection:
            return connection.execute(sql).fetchall()


def keyed(source: Source) -> None:
    """Send a table with two rows."""
    source.run("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(10))")
    source.insert("t", (1, "x"), (2, None))
