"""Keeps the tables of the source in a DuckDB file: rows and position in one transaction. Needs duckdb and pyarrow."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rowtide.connector.delivery.errors import DeliveryError, OffsetStoreError, SinkUnavailable
from rowtide.connector.delivery.offset_store import OffsetRecord
from rowtide.connector.delivery.sink import SynchronousSink
from rowtide.connector.delivery.tables.pending import Image, Pending
from rowtide.connector.delivery.tables.type_changes import fitting_values, keeps_values
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.change import Change
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.table_events import UNKNOWN, TableEvent, captured_columns
from rowtide.connector.records.unavailable import UNAVAILABLE
from rowtide.schema_history.model import Column, TableId

try:
    import duckdb
    import pyarrow as pa

    from rowtide.connector.records.arrow_values import arrow_type, fitting
except ModuleNotFoundError as missing:
    raise DeliveryError(
        f"the sink duckdb needs the package {missing.name}, which is not installed: pip install 'rowtide[duckdb]'"
    ) from missing

log = logging.getLogger(__name__)

_TEMPORARY = (duckdb.OperationalError, duckdb.FatalException, duckdb.InterruptException)
"""Errors of the disk, of memory and of an interrupted statement."""
OWN = "_rowtide"
"""The schema of the sink's own tables."""
_OFFSETS = f'{OWN}.offsets (connector VARCHAR, prefix VARCHAR, "offset" VARCHAR, history_bytes BIGINT)'
_OWN_TABLES = (f"CREATE SCHEMA IF NOT EXISTS {OWN}", f"CREATE TABLE IF NOT EXISTS {_OFFSETS}")
_NEW_SNAPSHOT = "delete the DuckDB file and the schema history file: the next start takes a new snapshot of everything"


class DuckDbOffsets:
    """The position of one connector in a DuckDB file. Rows and positions are stored together by :class:`DuckDbTables`.

    Args:
        path: the file.
        name: the connector's name.
        prefix: its ``topic.prefix``.
        history: the file of the schema history, which must not be older than the tables; ``None`` if it is no file.
    """

    def __init__(self, path: Path, name: str, prefix: str, history: Path | None = None) -> None:
        self._path = path
        self._who = [name, prefix]
        self._history = history

    def record(self, _offset: SourceOffset | None) -> OffsetRecord | None:
        """Offsets are not kept in Kafka."""
        return None

    def load(self) -> SourceOffset | None:
        """The stored offset, ``None`` if there is none.

        Raises:
            OffsetStoreError: the file cannot be opened, or the schema history is older than the tables in it.
        """
        if not self._path.exists():
            return None
        with self._opened() as connection:
            if not _exists(connection, TableId(OWN, "offsets")):
                return None
            stored = rows_of(
                connection,
                f'SELECT "offset", history_bytes FROM {OWN}.offsets WHERE connector = ? AND prefix = ?',
                self._who,
            )
        if not stored:
            return None
        found = stored[0]
        size = self._history_bytes()
        if found[1] is not None and size is not None and size < found[1]:
            raise OffsetStoreError(
                f"the schema history {self._history} has {size} bytes, but the tables in {self._path} were written "
                f"with {found[1]} bytes of it: it is lost or from an older backup. Restore it, or {_NEW_SNAPSHOT}"
            )
        try:
            return SourceOffset.from_json(found[0])
        except ValueError as error:
            raise OffsetStoreError(f"{self._path}: the stored offset cannot be read: {error}") from error

    def save(self, offset: SourceOffset | None) -> None:
        """Store an offset without rows; ``None`` deletes the stored one.

        Raises:
            OffsetStoreError: the file cannot be written.
        """
        with self._opened() as connection:
            connection.begin()
            self.store(connection, offset)
            connection.commit()

    def store(self, connection: "duckdb.DuckDBPyConnection", offset: SourceOffset | None) -> None:
        """Store an offset in the transaction of a connection."""
        for statement in _OWN_TABLES:
            rows_of(connection, statement)
        rows_of(connection, f"DELETE FROM {OWN}.offsets WHERE connector = ? AND prefix = ?", self._who)
        if offset is not None:
            row = [*self._who, offset.to_json(), self._history_bytes()]
            rows_of(connection, f"INSERT INTO {OWN}.offsets VALUES (?, ?, ?, ?)", row)

    def _history_bytes(self) -> int | None:
        try:
            return None if self._history is None else self._history.stat().st_size
        except FileNotFoundError:
            return 0

    @contextmanager
    def _opened(self) -> "Iterator[duckdb.DuckDBPyConnection]":
        try:
            connection = connect(self._path)
        except DeliveryError as error:
            raise OffsetStoreError(str(error)) from error
        try:
            yield connection
        except duckdb.Error as error:
            raise OffsetStoreError(f"{self._path}: {_shown(error)}") from error
        finally:
            connection.close()


class DuckDbTables(SynchronousSink):
    """Keeps tables in a DuckDB file. A sink that is transactional: rows appear together with the offset after them.

    Args:
        path: the file.
        offsets: the position in it.
    """

    transactional = True
    problem: str | None = None

    def __init__(self, path: Path, offsets: DuckDbOffsets) -> None:
        self._path = path
        self._offsets = offsets
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._batches: list[Batch] = []
        self._pending: dict[TableId, Pending] = {}
        self._structures: dict[TableId, Any] = {}
        self._reading: set[TableId] = set()  # made by the snapshot in progress, which reads each row once
        self._begun = False

    def open(self) -> None:
        """Open the file, and make it if it does not exist.

        Raises:
            DeliveryError: another process has it open, or it cannot be written.
        """
        self._connection = connect(self._path)
        rows_of(self._connection, "SET TimeZone = 'UTC'")

    def send(self, batches: Sequence[Batch]) -> None:
        """Take batches, to be written by :meth:`commit`."""
        self._batches += batches

    def commit(self, offset: SourceOffset, timeout: float | None = None) -> bool:
        """Write everything that was sent, and the offset, in one transaction.

        What a statement does to a table is committed together with the offset after it, and apart from rows.

        Raises:
            SinkUnavailable: the file cannot be written now; nothing of the transaction is in it.
            DeliveryError: a change cannot be applied exactly.
        """
        try:
            before: Batch | None = None
            for batch in self._batches:
                if before is not None and (batch.tables or before.tables) and batch.offset != before.offset:
                    self._store(before.offset)
                self._apply(batch)
                before = batch
            self._store(offset)
        except _TEMPORARY as error:
            raise SinkUnavailable(f"the tables in {self._path} cannot be written: {_shown(error)}") from error
        except duckdb.Error as error:  # the same would happen again
            raise DeliveryError(f"the tables in {self._path} refuse a change: {_shown(error)}. {_WAY_OUT}") from error
        finally:
            self._discard()
        return True

    def rollback(self) -> None:
        """Drop what was sent since the last commit."""
        self._discard()

    def interrupt(self) -> None:
        """End a commit that takes too long; nothing of it is in the file then."""
        if self._connection is not None:
            self._connection.interrupt()

    def close(self) -> None:
        """Close the file."""
        self._batches.clear()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # --- transactions -----------------------------------------------------------------------------------------------

    def _transaction(self) -> "duckdb.DuckDBPyConnection":
        """The connection, in a transaction."""
        connection = self._connection
        assert connection is not None, "the sink is not open"
        if not self._begun:
            connection.begin()
            self._begun = True
        return connection

    def _execute(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return rows_of(self._transaction(), sql, values)

    def _store(self, offset: SourceOffset) -> None:
        self._flush()
        connection = self._transaction()
        self._offsets.store(connection, offset)
        connection.commit()
        self._begun = False

    def _discard(self) -> None:
        self._batches.clear()
        self._pending.clear()
        self._structures.clear()
        if self._begun and self._connection is not None:
            with suppress(duckdb.Error):
                self._connection.rollback()
        self._begun = False

    def _apply(self, batch: Batch) -> None:
        for event in batch.tables:
            self._flush()
            self._structures.pop(event.id, None)
            self._table_event(event)
        for change in batch.changes:
            table = change.schema.id
            if change.op == "t":
                self._flush()
                if _exists(self._transaction(), table):
                    self._execute(f"DELETE FROM {quoted(table)}")
                continue
            self._pending_of(change, table).add((change,))
        if self._reading and batch.offset.snapshot is None and not batch.offset.reads_on:
            self._flush()  # the snapshot is complete: rows that are read later may be there already
            self._reading.clear()

    # --- rows -------------------------------------------------------------------------------------------------------

    def _pending_of(self, change: Change, table: TableId) -> Pending:
        known = self._structures.get(table)
        if known is not None and known is change.schema and table in self._pending:
            return self._pending[table]
        self._flush(table)
        columns = captured_columns(change.schema, change.columns)
        if not _exists(self._transaction(), table):
            self._create(table, columns)
            self._reading.add(table)
        else:
            self._require_same(table, columns)
        self._structures[table] = change.schema
        made = Pending(str(table), columns, change.schema.debezium.primary_key, empty=table in self._reading)
        self._pending[table] = made
        return made

    def _flush(self, only: TableId | None = None) -> None:
        """Write the changes of all tables, or of one."""
        for table in list(self._pending) if only is None else [only]:
            pending = self._pending.pop(table, None)
            if pending is not None and pending.any:
                self._write(table, pending)
                if pending.changed:
                    self._reading.discard(table)

    def _write(self, table: TableId, pending: Pending) -> None:
        columns = pending.columns
        self._insert(table, columns, pending.read)
        if pending.rows:
            self._update(table, pending)
            whole = {key: row for key, row in pending.rows.items() if row is None or UNAVAILABLE not in row}
            keys = [columns[place] for place in pending.key_places]
            if not self._is_empty(table):
                with self._given(table, keys, list(whole)) as given:
                    self._execute(f"DELETE FROM {quoted(table)} AS t USING {given} AS g WHERE {_same(keys)}")
            self._insert(table, columns, [row for row in whole.values() if row is not None])
        gone = {image: -count for image, count in pending.counts.items() if count < 0}
        self._delete_counted(table, pending, gone)
        new = [pending.image(image) for image, count in pending.counts.items() for _ in range(count)]
        self._insert(table, columns, new)

    def _update(self, table: TableId, pending: Pending) -> None:
        """Write rows of which the binlog leaves out columns: those stay as they are."""
        groups: dict[tuple[int, ...], list[Image]] = {}
        for row in pending.rows.values():
            if row is not None and UNAVAILABLE in row:
                places = tuple(place for place, value in enumerate(row) if value is not UNAVAILABLE)
                groups.setdefault(places, []).append(tuple(row[place] for place in places))
        keys = [pending.columns[place] for place in pending.key_places]
        for places, rows in groups.items():
            columns = [pending.columns[place] for place in places]
            assigned = ", ".join(f"{name(column.name)} = g.{name(column.name)}" for column in columns)
            with self._given(table, columns, rows) as given:
                sql = f"UPDATE {quoted(table)} AS t SET {assigned} FROM {given} AS g WHERE {_same(keys)}"
                found = self._execute(sql)
            if found != [(len(rows),)]:
                raise DeliveryError(
                    f"table {table}: the binlog leaves out columns of a row that {self._path} does not have. Set "
                    f"binlog_row_image=FULL in the source, and {_NEW_SNAPSHOT}"
                )

    def _insert(self, table: TableId, columns: Sequence[Column], rows: Sequence[Image]) -> None:
        if rows:
            listed = ", ".join(name(column.name) for column in columns)
            with self._given(table, columns, rows) as given:
                self._execute(f"INSERT INTO {quoted(table)} ({listed}) SELECT {listed} FROM {given}")

    def _delete_counted(self, table: TableId, pending: Pending, gone: dict[Image, int]) -> None:
        """Delete rows of a table without a key: as many of each image as were deleted in the source."""
        if not gone:
            return
        images, counts = [pending.image(image) for image in gone], list(gone.values())
        with self._given(table, pending.columns, images, counts) as given:
            ranked = (
                f"SELECT t.rowid AS place, g.{_COUNT}, row_number() OVER (PARTITION BY g.{_NUMBER} ORDER BY t.rowid) "
                f"AS ordinal FROM {quoted(table)} AS t JOIN {given} AS g ON {_same(pending.columns)}"
            )
            chosen = f"SELECT place FROM ({ranked}) WHERE ordinal <= {_COUNT}"
            found = self._execute(f"DELETE FROM {quoted(table)} WHERE rowid IN ({chosen})")
        if found != [(sum(counts),)]:
            raise DeliveryError(
                f"table {table} has no primary key, and a row that was deleted in the source is not in {self._path}. "
                f"To continue, {_NEW_SNAPSHOT}"
            )

    @contextmanager
    def _given(
        self, table: TableId, columns: Sequence[Column], rows: Sequence[Image], counts: Sequence[int] = ()
    ) -> Iterator[str]:
        """Let statements read rows; yields the name under which they do."""
        fields = [pa.field(column.name, arrow_type(column)) for column in columns]
        arrays = []
        for field, values in zip(fields, zip(*rows, strict=True), strict=True):
            try:
                arrays.append(pa.array(fitting(list(values), field.type), field.type))
            except (pa.ArrowException, UnicodeEncodeError, TypeError) as error:
                raise DeliveryError(
                    f"{table}.{field.name} has a value that {field.type} cannot hold: {error}. Exclude the column "
                    "(column.exclude.list), or remove its converter"
                ) from error
        if counts:
            fields += [pa.field(_NUMBER, pa.int64()), pa.field(_COUNT, pa.int64())]
            arrays += [pa.array(range(len(counts)), pa.int64()), pa.array(counts, pa.int64())]
        self._transaction().register(_GIVEN, pa.Table.from_arrays(arrays, schema=pa.schema(fields)))
        try:
            yield _GIVEN
        finally:
            with suppress(duckdb.Error):  # the transaction may have failed
                self._transaction().unregister(_GIVEN)

    # --- structures -------------------------------------------------------------------------------------------------

    def _table_event(self, event: TableEvent) -> None:
        table = event.id
        exists = _exists(self._transaction(), table)
        match event.kind:
            case "only":
                self._retain(event.listed)
            case "read" | "create":
                self._drop(table)
                self._create(table, event.after)
                if event.kind == "read":
                    self._reading.add(table)
            case "known" if not exists:
                self._create(table, event.after)
            case "drop":
                self._drop(table)
            case "rename" if event.former is not None:
                self._rename(event.former, table)
            case "alter":
                if exists:
                    self._alter(event)
                else:
                    self._create(table, event.after)
            case "refuse":
                raise DeliveryError(f"table {table} cannot be kept as in the source: {event.reason}. {_WAY_OUT}")

    def _retain(self, listed: Sequence[TableId]) -> None:
        found = self._execute(
            f"SELECT schema_name, table_name FROM duckdb_tables() WHERE comment = '{_OURS}' AND "
            "database_name = current_database()"
        )
        for schema, table in found:
            if TableId(schema, table) not in listed:
                log.info("%s.%s is dropped: the connector no longer captures it", schema, table)
                self._drop(TableId(schema, table))

    def _create(self, table: TableId, columns: Sequence[Column]) -> None:
        if table.database.lower() in (OWN, "information_schema", "pg_catalog"):
            raise DeliveryError(f"table {table}: DuckDB has no schema of this name. Exclude it (table.exclude.list)")
        if not columns:
            raise DeliveryError(f"table {table} has no captured column. Exclude it (table.exclude.list)")
        self._execute(f"CREATE SCHEMA IF NOT EXISTS {name(table.database)}")
        clash = self._execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() AND "
            "lower(schema_name) = lower(?) AND lower(table_name) = lower(?)",
            [table.database, table.table],
        )
        if clash:
            raise DeliveryError(
                f"table {table}: {self._path} has a table {clash[0][0]} in this schema, and DuckDB's names do not "
                "distinguish case. Exclude one of them (table.exclude.list)"
            )
        listed = ", ".join(f"{name(column.name)} {duckdb_type(column)}" for column in columns)
        self._execute(f"CREATE TABLE {quoted(table)} ({listed})")
        self._execute(f"COMMENT ON TABLE {quoted(table)} IS '{_OURS}'")

    def _drop(self, table: TableId) -> None:
        if _exists(self._transaction(), table):
            comment = self._execute(
                "SELECT comment FROM duckdb_tables() WHERE database_name = current_database() AND schema_name = ? AND "
                "table_name = ?",
                [table.database, table.table],
            )
            if comment != [(_OURS,)]:
                raise DeliveryError(
                    f"{self._path} has a table {table} that this sink has not made (its comment is not {_OURS!r}): it "
                    "is not replaced. Rename it, or use another file"
                )
            self._execute(f"DROP TABLE {quoted(table)}")

    def _rename(self, former: TableId, table: TableId) -> None:
        if not _exists(self._transaction(), former):
            return
        if former.database == table.database:
            self._execute(f"ALTER TABLE {quoted(former)} RENAME TO {name(table.table)}")
            return
        self._execute(f"CREATE SCHEMA IF NOT EXISTS {name(table.database)}")
        self._execute(f"CREATE TABLE {quoted(table)} AS SELECT * FROM {quoted(former)}")
        self._execute(f"COMMENT ON TABLE {quoted(table)} IS '{_OURS}'")
        self._execute(f"DROP TABLE {quoted(former)}")

    def _alter(self, event: TableEvent) -> None:
        """Change a table as ALTER TABLE does in the source, with the values that it gives to existing rows."""
        table, empty = event.id, self._is_empty(event.id)
        if empty:
            self._drop(table)
            self._create(table, event.after)
            return
        former = {new: old for old, new in event.renamed}
        before = {column.name: column for column in event.before}
        left = before.keys() - former.values()  # a name that a column has given up may be that of a new column
        pairs = [(before.get(former.get(one.name, one.name if one.name in left else "")), one) for one in event.after]
        self._require_same(table, event.before)
        values = event.values or {}
        for old, new in pairs:
            if old is None and values.get(new.name, UNKNOWN) is UNKNOWN:
                raise DeliveryError(
                    f"table {table}: the server has set the values of the new column {new.name} in existing rows, and "
                    f"the binlog does not have them. {_WAY_OUT}"
                )
            if old is not None and not keeps_values(old, new) and not self._all_fit(table, old, new):
                raise DeliveryError(
                    f"table {table}: column {new.name} has changed from {old.column_type} to {new.column_type}, which "
                    f"may have changed values in existing rows, and the binlog does not have them. {_WAY_OUT}"
                )
        if tuple(event.before) != tuple(event.after):
            self._alter_columns(table, pairs, values)

    def _alter_columns(
        self, table: TableId, pairs: Sequence[tuple[Column | None, Column]], values: dict[str, Any]
    ) -> None:
        # DuckDB alters one column at a time, and names may be exchanged: a new table has all of it in one statement.
        listed, added = [], [new for old, new in pairs if old is None]
        for old, new in pairs:
            source = f"t.{name(old.name)}" if old is not None else f"g.{name(new.name)}"
            listed.append(f"CAST({source} AS {duckdb_type(new)}) AS {name(new.name)}")
        copy = TableId(table.database, f"{OWN}_{table.table}")
        select = f"CREATE TABLE {quoted(copy)} AS SELECT {', '.join(listed)} FROM {quoted(table)} AS t"
        if added:
            with self._given(table, added, [tuple(values[column.name] for column in added)]) as given:
                self._execute(f"{select} CROSS JOIN {given} AS g")
        else:
            self._execute(select)
        self._drop(table)
        self._execute(f"ALTER TABLE {quoted(copy)} RENAME TO {name(table.table)}")
        self._execute(f"COMMENT ON TABLE {quoted(table)} IS '{_OURS}'")

    def _require_same(self, table: TableId, columns: Sequence[Column]) -> None:
        """Compare the structure of a table with the expected one; a table without rows is made again.

        Raises:
            DeliveryError: they differ, because statements of the source are missing.
        """
        found = {row[0]: row[1] for row in self._execute(f"DESCRIBE {quoted(table)}")}
        expected = {column.name: duckdb_type(column) for column in columns}
        if found == expected:
            return
        if self._is_empty(table):
            self._drop(table)
            self._create(table, columns)
            return
        differing = sorted({one for one, _ in found.items() ^ expected.items()})
        raise DeliveryError(
            f"table {table} in {self._path} has other columns than the source at this position: "
            f"{', '.join(differing)}. The captured columns were changed, or statements are missing in the schema "
            f"history. {_WAY_OUT}"
        )

    def _all_fit(self, table: TableId, old: Column, new: Column) -> bool:
        """Whether all values of a column are the same with its new type."""
        condition, column = fitting_values(old, new) or "FALSE", name(old.name)
        other = f"{column} IS NOT NULL AND NOT ({condition.replace('{}', column)})"
        return self._execute(f"SELECT 1 FROM {quoted(table)} WHERE {other} LIMIT 1") == []

    def _is_empty(self, table: TableId) -> bool:
        return self._execute(f"SELECT 1 FROM {quoted(table)} LIMIT 1") == []


_GIVEN, _NUMBER, _COUNT = "_rowtide_given", "_rowtide_number", "_rowtide_count"
_OURS = "made by rowtide"
_WAY_OUT = f"Nothing is lost. To continue, {_NEW_SNAPSHOT}"


def connect(path: Path) -> "duckdb.DuckDBPyConnection":
    """Open a file.

    Raises:
        DeliveryError: it is open in another process, cannot be read or written, or is no file of DuckDB.
    """
    try:
        return duckdb.connect(path)
    except (duckdb.Error, OSError) as error:
        message = _shown(error)
        hint = "Name a file of DuckDB that this user can write, or a new one in a directory that it can write to"
        if "lock" in message.lower():
            hint = "Close the other process, or let it read a copy: DuckDB lets one process at a time write to a file"
        raise DeliveryError(f"the tables in {path} cannot be opened: {message}. {hint}") from error


def rows_of(connection: "duckdb.DuckDBPyConnection", sql: str, values: Sequence[Any] = ()) -> list[Any]:
    """The rows of a statement, all fetched: DuckDB carries out nothing else on a connection before."""
    return connection.execute(sql, list(values) or None).fetchall()


def name(text: str) -> str:
    """A quoted name."""
    return '"' + text.replace('"', '""') + '"'


def quoted(table: TableId) -> str:
    """The quoted name of a table: the database of the source is its schema."""
    return f"{name(table.database)}.{name(table.table)}"


def duckdb_type(column: Column) -> str:
    """DuckDB's type of a column: what DuckDB makes of the Arrow type."""
    kind = arrow_type(column)
    return _types[kind] if kind in _types else str(_described(kind))


_types: dict[Any, str] = {}


def _described(kind: Any) -> str:
    empty = pa.Table.from_arrays([pa.array([], kind)], names=["c"])
    _types[kind] = str(duckdb.from_arrow(empty).types[0])
    return _types[kind]


def _same(columns: Sequence[Column]) -> str:
    return " AND ".join(f"t.{name(one.name)} IS NOT DISTINCT FROM g.{name(one.name)}" for one in columns)


def _exists(connection: "duckdb.DuckDBPyConnection", table: TableId) -> bool:
    sql = (
        "SELECT 1 FROM duckdb_tables() WHERE database_name = current_database() AND schema_name = ? AND table_name = ?"
    )
    return bool(rows_of(connection, sql, [table.database, table.table]))


def _shown(error: Exception) -> str:
    return " ".join(str(error).split())
