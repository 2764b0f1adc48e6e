"""Tables in a DuckDB file: rows and position in one transaction. Needs duckdb and pyarrow."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rowtide.connector.delivery.errors import DeliveryError, OffsetStoreError
from rowtide.connector.delivery.tables.offsets import TableOffsets
from rowtide.connector.delivery.tables.pending import Image
from rowtide.connector.delivery.tables.sink import shown
from rowtide.connector.delivery.tables.store import OURS
from rowtide.connector.delivery.tables.type_changes import Decimals, Fitting
from rowtide.connector.records.offset import SourceOffset
from rowtide.errors import needs_package
from rowtide.schema_history.model import Column, TableId

try:
    import duckdb
    import pyarrow as pa

    from rowtide.connector.delivery.tables.arrow_rows import arrow_rows
    from rowtide.connector.records.arrow_values import arrow_type
except ModuleNotFoundError as missing:
    raise DeliveryError(f"the sink duckdb {needs_package(missing, 'duckdb')}") from missing

OWN = "_rowtide"
"""The schema of the sink's own tables."""
_OFFSETS = f'{OWN}.offsets (connector VARCHAR, prefix VARCHAR, "offset" VARCHAR, history_bytes BIGINT)'
_OWN_TABLES = (f"CREATE SCHEMA IF NOT EXISTS {OWN}", f"CREATE TABLE IF NOT EXISTS {_OFFSETS}")
_MEASURES = {"values": "{}", "characters": "length({})", "bytes": "octet_length({})"}
_GIVEN, _NUMBER, _COUNT = "_rowtide_given", "_rowtide_number", "_rowtide_count"


class DuckDbOffsets(TableOffsets):
    """The position of one connector in a DuckDB file."""

    anew = "delete the DuckDB file and the schema history file: the next start takes a new snapshot of everything"

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
        rows_of(connection, f"DELETE FROM {OWN}.offsets WHERE connector = ? AND prefix = ?", self.connector)
        if offset is not None:
            row = [*self.connector, offset.to_json(), self.history_bytes()]
            rows_of(connection, f"INSERT INTO {OWN}.offsets VALUES (?, ?, ?, ?)", row)

    def _stored(self) -> tuple[str, int | None] | None:
        if not self.path.exists():
            return None
        with self._opened() as connection:
            if not _exists(connection, TableId(OWN, "offsets")):
                return None
            stored = rows_of(
                connection,
                f'SELECT "offset", history_bytes FROM {OWN}.offsets WHERE connector = ? AND prefix = ?',
                self.connector,
            )
        return stored[0] if stored else None

    @contextmanager
    def _opened(self) -> "Iterator[duckdb.DuckDBPyConnection]":
        try:
            connection = connect(self.path)
        except DeliveryError as error:
            raise OffsetStoreError(str(error)) from error
        try:
            yield connection
        except duckdb.Error as error:
            raise OffsetStoreError(f"{self.path}: {shown(error)}") from error
        finally:
            connection.close()


class DuckDbStore:
    """Tables in a DuckDB file.

    Args:
        offsets: the position in the file.
    """

    errors: tuple[type[Exception], ...] = (duckdb.Error,)

    def __init__(self, offsets: DuckDbOffsets) -> None:
        self.path = offsets.path
        self.offsets = offsets
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._offset: SourceOffset | None = None

    def may_pass(self, error: Exception) -> bool:
        """Return whether it is an error of the disk, of memory or of an interrupted statement."""
        return isinstance(error, duckdb.OperationalError | duckdb.FatalException | duckdb.InterruptException)

    def open(self) -> None:
        """Open the file, and create it if it does not exist.

        Raises:
            DeliveryError: another process has it open, or it cannot be written.
        """
        self._connection = connect(self.path)
        rows_of(self._connection, "SET TimeZone = 'UTC'")

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def begin(self, offset: SourceOffset) -> None:
        """Begin a transaction with the position after it."""
        self._opened().begin()
        self._offset = offset

    def commit(self) -> None:
        """Store the transaction and its position."""
        self.offsets.store(self._opened(), self._offset)
        self._opened().commit()
        self._offset = None

    def rollback(self) -> None:
        """Undo the transaction, if there is one."""
        if self._offset is not None and self._connection is not None:
            with suppress(duckdb.Error):
                self._connection.rollback()
        self._offset = None

    def interrupt(self) -> None:
        """Make the transaction of another thread fail."""
        if self._connection is not None:
            self._connection.interrupt()

    def _opened(self) -> "duckdb.DuckDBPyConnection":
        assert self._connection is not None, "the sink is not open"
        return self._connection

    def _execute(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        return rows_of(self._opened(), sql, values)

    # --- rows -------------------------------------------------------------------------------------------------------

    def is_empty(self, table: TableId) -> bool:
        """Return whether a table has no rows."""
        return self._execute(f"SELECT 1 FROM {quoted(table)} LIMIT 1") == []

    def has(self, table: TableId, column: str, value: int | None) -> bool:
        """Return whether a row has a value in a column."""
        condition = f"{name(column)} IS NULL" if value is None else f"{name(column)} = {value}"
        return self._execute(f"SELECT 1 FROM {quoted(table)} WHERE {condition} LIMIT 1") != []

    def all_fit(self, table: TableId, column: str, fitting: Fitting) -> bool:
        """Return whether all values of a column except NULL are in a range."""
        if isinstance(fitting, Decimals):  # DuckDB's DECIMAL has at most 38 digits, and longer ones are texts
            pattern = f"{'-?' if fitting.negative else ''}0*[0-9]{{0,{fitting.digits}}}([.].*)?"
            other = f"CAST({name(column)} AS VARCHAR) NOT SIMILAR TO '{pattern}'"
        else:
            measured = _MEASURES[fitting.of].format(name(column))
            other = f"{measured} NOT BETWEEN {fitting.low} AND {fitting.high}"
        return self._execute(f"SELECT 1 FROM {quoted(table)} WHERE {other} LIMIT 1") == []

    def truncate(self, table: TableId) -> None:
        """Delete all rows."""
        self._execute(f"DELETE FROM {quoted(table)}")

    def insert(self, table: TableId, columns: Sequence[Column], rows: Sequence[Image]) -> None:
        """Add rows."""
        listed = ", ".join(name(column.name) for column in columns)
        with self._given(table, columns, rows) as given:
            self._execute(f"INSERT INTO {quoted(table)} ({listed}) SELECT {listed} FROM {given}")

    def replace(
        self, table: TableId, columns: Sequence[Column], keys: Sequence[Column], rows: dict[Image, Image | None]
    ) -> None:
        """Set the row of each key, or delete it."""
        if not self.is_empty(table):
            with self._given(table, keys, list(rows)) as given:
                self._execute(f"DELETE FROM {quoted(table)} AS t USING {given} AS g WHERE {_same(keys)}")
        if new := [row for row in rows.values() if row is not None]:
            self.insert(table, columns, new)

    def update(self, table: TableId, columns: Sequence[Column], keys: Sequence[Column], rows: Sequence[Image]) -> int:
        """Set the given columns in existing rows, and return the number of these rows."""
        assigned = ", ".join(f"{name(column.name)} = g.{name(column.name)}" for column in columns)
        with self._given(table, columns, rows) as given:
            sql = f"UPDATE {quoted(table)} AS t SET {assigned} FROM {given} AS g WHERE {_same(keys)}"
            return int(self._execute(sql)[0][0])

    def delete(self, table: TableId, columns: Sequence[Column], images: Sequence[Image], counts: Sequence[int]) -> int:
        """Delete as many rows of each image as counted, and return the number of deleted rows."""
        same = _same(columns)
        with self._given(table, columns, images, counts) as given:
            joined = f"{quoted(table)} AS t JOIN {given} AS g ON {same}"
            found = dict(self._execute(f"SELECT g.{_NUMBER}, count(*) FROM {joined} GROUP BY ALL"))
            self._execute(f"DELETE FROM {quoted(table)} AS t USING {given} AS g WHERE {same}")
        left = [max(found.get(number, 0) - count, 0) for number, count in enumerate(counts)]
        if any(left):  # rows without a key cannot be distinguished (a column may have the name rowid)
            with self._given(table, columns, images, left) as given:
                listed = ", ".join(name(column.name) for column in columns)
                copies = f"SELECT {listed}, unnest(range({_COUNT})) FROM {given}"
                self._execute(f"INSERT INTO {quoted(table)} ({listed}) SELECT {listed} FROM ({copies})")
        return sum(min(found.get(number, 0), count) for number, count in enumerate(counts))

    @contextmanager
    def _given(
        self, table: TableId, columns: Sequence[Column], rows: Sequence[Image], counts: Sequence[int] = ()
    ) -> Iterator[str]:
        """Make rows readable for statements, and yield their name."""
        given = arrow_rows(table, columns, rows)
        if counts:
            given = given.append_column(_NUMBER, pa.array(range(len(counts)), pa.int64()))
            given = given.append_column(_COUNT, pa.array(counts, pa.int64()))
        self._opened().register(_GIVEN, given)
        try:
            yield _GIVEN
        finally:
            with suppress(duckdb.Error):  # the transaction may have failed
                self._opened().unregister(_GIVEN)

    # --- structures -------------------------------------------------------------------------------------------------

    def made(self) -> list[TableId]:
        """Return the tables that the sink has created."""
        found = self._execute(
            f"SELECT schema_name, table_name FROM duckdb_tables() WHERE comment = '{OURS}' AND "
            "database_name = current_database()"
        )
        return [TableId(schema, table) for schema, table in found]

    def exists(self, table: TableId) -> bool:
        """Return whether a table exists."""
        return _exists(self._opened(), table)

    def columns(self, table: TableId) -> dict[str, str]:
        """Return the names and types of a table's columns."""
        return {row[0]: row[1] for row in self._execute(f"DESCRIBE {quoted(table)}")}

    def type_of(self, column: Column) -> str:
        """Return DuckDB's type of a column."""
        return duckdb_type(column)

    def create(self, table: TableId, columns: Sequence[Column]) -> None:
        """Create a table.

        Raises:
            DeliveryError: DuckDB has another object with this name.
        """
        if table.database.lower() in (OWN, "information_schema", "pg_catalog"):
            raise DeliveryError(f"table {table}: DuckDB has no schema of this name. Exclude it (table.exclude.list)")
        self._execute(f"CREATE SCHEMA IF NOT EXISTS {name(table.database)}")
        clash = self._execute(
            "SELECT table_name FROM duckdb_tables() WHERE database_name = current_database() AND "
            "lower(schema_name) = lower(?) AND lower(table_name) = lower(?)",
            [table.database, table.table],
        )
        if clash:
            raise DeliveryError(
                f"table {table}: {self.path} has a table {clash[0][0]} in this schema, and names in DuckDB are not "
                "case-sensitive. Exclude one of them (table.exclude.list)"
            )
        listed = ", ".join(f"{name(column.name)} {duckdb_type(column)}" for column in columns)
        self._execute(f"CREATE TABLE {quoted(table)} ({listed})")
        self._comment(table)

    def drop(self, table: TableId) -> None:
        """Drop a table, if it exists.

        Raises:
            DeliveryError: the sink has not created it.
        """
        if self.exists(table):
            comment = self._execute(
                "SELECT comment FROM duckdb_tables() WHERE database_name = current_database() AND schema_name = ? AND "
                "table_name = ?",
                [table.database, table.table],
            )
            if comment != [(OURS,)]:
                raise DeliveryError(
                    f"{self.path} has a table {table} that this sink has not created (its comment is not {OURS!r}): it "
                    "is not replaced. Rename it, or use another file"
                )
            self._execute(f"DROP TABLE {quoted(table)}")

    def rename(self, former: TableId, table: TableId) -> None:
        """Rename a table."""
        if former.database == table.database:
            self._execute(f"ALTER TABLE {quoted(former)} RENAME TO {name(table.table)}")
            return
        self._execute(f"CREATE SCHEMA IF NOT EXISTS {name(table.database)}")
        self._execute(f"CREATE TABLE {quoted(table)} AS SELECT * FROM {quoted(former)}")
        self._comment(table)
        self._execute(f"DROP TABLE {quoted(former)}")

    def alter(self, table: TableId, pairs: Sequence[tuple[Column | None, Column]], values: dict[str, Any]) -> None:
        """Change the columns of a table."""
        # DuckDB alters one column at a time, and names may be swapped: one statement makes a table with all changes.
        listed, added = [], [new for old, new in pairs if old is None]
        for old, new in pairs:
            source = f"t.{name(old.name)}" if old is not None else f"g.{name(new.name)}"
            digits = "" if old is None else _added_digits(old, new)
            listed.append(f"CAST({source} AS {duckdb_type(new)}){digits} AS {name(new.name)}")
        copy = TableId(table.database, f"{OWN}_{table.table}")
        select = f"CREATE TABLE {quoted(copy)} AS SELECT {', '.join(listed)} FROM {quoted(table)} AS t"
        if added:
            with self._given(table, added, [tuple(values[column.name] for column in added)]) as given:
                self._execute(f"{select} CROSS JOIN {given} AS g")
        else:
            self._execute(select)
        self.drop(table)
        self._execute(f"ALTER TABLE {quoted(copy)} RENAME TO {name(table.table)}")
        self._comment(table)

    def _comment(self, table: TableId) -> None:
        self._execute(f"COMMENT ON TABLE {quoted(table)} IS '{OURS}'")


def connect(path: Path) -> "duckdb.DuckDBPyConnection":
    """Open a file.

    Raises:
        DeliveryError: it is open in another process, cannot be read or written, or is not a DuckDB file.
    """
    try:
        return duckdb.connect(path)
    except (duckdb.Error, OSError) as error:
        message = shown(error)
        hint = "Name a file of DuckDB that this user can write, or a new one in a directory that it can write to"
        if "lock" in message.lower():
            hint = "Close the other process, or let it read a copy: DuckDB lets one process at a time write to a file"
        raise DeliveryError(f"the tables in {path} cannot be opened: {message}. {hint}") from error


def rows_of(connection: "duckdb.DuckDBPyConnection", sql: str, values: Sequence[Any] = ()) -> list[Any]:
    """Fetch and return all rows of a statement, before which DuckDB executes nothing else on the connection."""
    return connection.execute(sql, list(values) or None).fetchall()


def name(text: str) -> str:
    """Return a quoted name."""
    return '"' + text.replace('"', '""') + '"'


def quoted(table: TableId) -> str:
    """Return the quoted name of a table: the database of the source is its schema."""
    return f"{name(table.database)}.{name(table.table)}"


def duckdb_type(column: Column) -> str:
    """Return DuckDB's type of a column, as DuckDB derives it from the Arrow type."""
    kind = arrow_type(column)
    return _types[kind] if kind in _types else str(_described(kind))


def _added_digits(old: Column, new: Column) -> str:
    """Return SQL that appends the digits missing in the text of a DECIMAL whose type now has more of them."""
    if new.data_type != "decimal" or duckdb_type(new) != "VARCHAR":
        return ""
    former = (old.scale or 0) if old.data_type == "decimal" else 0
    added = "0" * ((new.scale or 0) - former)
    return f" || '{'' if former else '.'}{added}'" if added else ""


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
