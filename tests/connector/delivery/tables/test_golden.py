"""All recorded binlogs through the sink: the tables have the rows that result from the changes one by one."""

from __future__ import annotations

import datetime as dt
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.delivery.errors import DeliveryError
from rowtide.connector.delivery.tables.delta import DeltaOffsets, DeltaStore, directory_name
from rowtide.connector.delivery.tables.duckdb import DuckDbOffsets, DuckDbStore
from rowtide.connector.delivery.tables.sink import TableSink
from rowtide.connector.delivery.tables.store import TableStore
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.replay import replay
from rowtide.connector.errors import ConnectorError
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.change import Change, Geometry
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.unavailable import UNAVAILABLE
from rowtide.connector.source.files.folder import binlog_files
from rowtide.schema_history.model import TableId
from tests.support.recordings.golden import GOLDEN, Case

CHANGES_RECORDS = ("column.", "converters", "message.key", "predicates", "skipped", "transforms")
STOPS = {
    "ddl-and-filters": "the server has set the values of the new column g",
    "ddl-only-captured": "DROP PARTITION has moved or removed rows",
    "ddl-stream": r"column b has changed from varchar\(20\) to text",
    "fails-session-row-image-noblob": "the binlog omits columns that are needed",
    "fails-statement-format": "binlog_format STATEMENT or MIXED",
    "filters-by-name": "f1.other, which is not captured, was renamed to it",
    "mariadb-ddl": "the server has set the values of the new column c",
    "mariadb-ddl-and-comments": "DROP PARTITION has moved or removed rows",
    "mariadb-ddl-only-captured": "DROP PARTITION has moved or removed rows",
    "mariadb-defaults-and-transactions": "has recomputed the generated column vc2 in existing rows",
    "nulls-beside-defaults": "the server has set the values of the new column j",
    "session-row-format-changes": "binlog_format STATEMENT or MIXED",
    "snapshot-no-data": "nd.gone, which is not captured, was renamed to it",
    "temporal-connect": "a key with a date that is not in the calendar",
    "topics-that-clash": "would both be written to topic",
}
"""Why the connector stops, if it does: what the binlog does not have is never guessed."""


def cases() -> Iterator[str]:
    """The cases, without those that have the binlog of another one, and that of column converters."""
    known = set()
    for folder in sorted(GOLDEN.iterdir()):
        if folder.name == "column-converters":  # they would change the values, and their properties need them
            continue
        binlog = Case(folder.name).binlog if folder.is_dir() else folder
        files = tuple(sorted((file.name, file.stat().st_size) for file in binlog.iterdir())) if binlog.is_dir() else ()
        if files and files not in known:
            known.add(files)
            yield folder.name


class Rows:
    """The rows of each table after the changes until now; those of a table that was altered are not known."""

    def __init__(self) -> None:
        self.tables: dict[TableId, dict[Any, Sequence[Any]] | Counter[Any] | None] = {}

    def apply(self, batch: Batch) -> None:
        """Apply the statements and changes of a batch."""
        for event in batch.tables:
            if event.kind == "rename":
                assert event.former is not None
                self.tables[event.id] = self.tables.pop(event.former, None)
            elif event.kind == "drop":
                self.tables.pop(event.id, None)
            elif event.kind in ("alter", "create", "read"):
                self.tables[event.id] = None if event.kind == "alter" else {}
        for change in batch.changes:
            self._change(change)

    def _change(self, change: Change) -> None:
        table, key = change.schema.id, change.schema.row_key
        if change.op == "t":
            self.tables[table] = {}
        rows = self.tables.get(table)
        if rows is None or change.op == "t":
            return
        if not key and not isinstance(rows, Counter):
            rows = self.tables[table] = Counter(map(repr, rows.values()))  # its key was dropped, or is not known
        names = [name.lower() for name in change.columns]
        kinds = {column.name: column.data_type for column in change.schema.row_columns}
        for sign, image in zip((-1, 1), change.images, strict=True):
            if image is None:
                continue
            if UNAVAILABLE in image or any(name.lower() not in names for name in key):
                self.tables[table] = None
                return
            row = tuple(stored(value, kinds[name]) for name, value in zip(change.columns, image, strict=True))
            if isinstance(rows, Counter):
                rows[repr(row)] += sign
            elif sign > 0:
                rows[tuple(repr(image[names.index(name.lower())]) for name in key)] = row
            else:
                rows.pop(tuple(repr(image[names.index(name.lower())]) for name in key), None)


def stored(value: Any, kind: str) -> Any:
    """A value as it is read from the file."""
    if kind in ("date", "datetime", "timestamp") and isinstance(value, str):
        return None  # a date that no calendar has
    if kind == "float" and value is not None:
        return struct.unpack("f", struct.pack("f", value))[0]
    if isinstance(value, str):
        return value.encode("latin-1") if kind.endswith(("binary", "blob")) else str(value)
    return comparable(value)


def comparable(value: Any) -> Any:
    """One form of values that the file and a change have in different ones."""
    if isinstance(value, Geometry):
        return {"wkb": value.wkb, "srid": value.srid}
    if isinstance(value, Decimal):
        return f"{value:f}"
    if type(value) is int:
        return str(value)
    if isinstance(value, dt.timedelta):
        return str(value // dt.timedelta(microseconds=1))
    return value.isoformat() if isinstance(value, dt.datetime) else value


def written(case: Case, folder: Path, kind: str) -> Rows:
    """Write the tables of a case, in commits of seven batches."""
    properties = {name: text for name, text in case.properties().items() if not name.startswith(CHANGES_RECORDS)}
    settings = replace(
        pipeline_settings(from_properties(properties), "run", changes=True),
        table_events=True,
        skipped_operations=frozenset(),
        exact_values=True,
    )
    store: TableStore = DuckDbStore(DuckDbOffsets(folder / "tables", "tables", "p"))
    if kind == "delta":
        store = DeltaStore(DeltaOffsets(folder / "tables", "tables", "p"))
    rows, sink = Rows(), TableSink(store)
    sink.open()
    try:
        start, last, number = SourceOffset(binlog_files(case.binlog)[0].name, 4, ""), None, 0
        for output in replay(case.binlog, settings, start):
            if isinstance(output, Batch) and (output.tables or output.changes):
                sink.send([output])
                rows.apply(output)
                last, number = output.offset, number + 1
                if number % 7 == 0:
                    sink.commit(last)
        if last is not None:
            sink.commit(last)
    finally:
        sink.close()
    return rows


@pytest.mark.parametrize("kind", ["duckdb", "delta"])
@pytest.mark.parametrize("name", list(cases()))
def test_a_recorded_binlog_becomes_tables(name: str, kind: str, tmp_path: Path) -> None:
    if name in STOPS:
        with pytest.raises((DeliveryError, ConnectorError), match=STOPS[name]):
            written(Case(name), tmp_path, kind)
        return
    rows = written(Case(name), tmp_path, kind)
    for table, expected in rows.tables.items():
        if expected is not None:
            found = Counter(repr(tuple(map(comparable, row))) for row in stored_rows(tmp_path / "tables", table, kind))
            known = expected if isinstance(expected, Counter) else Counter(map(repr, expected.values()))
            assert found == +known, table


def stored_rows(path: Path, table: TableId, kind: str) -> list[tuple[Any, ...]]:
    """The rows of a table."""
    if kind == "delta":
        folder = path / directory_name(table.database) / directory_name(table.table)
        return [tuple(row.values()) for row in deltalake.DeltaTable(folder).to_pyarrow_table().to_pylist()]
    with duckdb.connect(path, read_only=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        return connection.execute(f'SELECT * FROM "{table.database}"."{table.table}"').fetchall()
