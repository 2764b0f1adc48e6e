"""Reads columns of changed rows from the server again, as Debezium's ReselectColumnsPostProcessor does.

The rows of an event are looked up with one query, in a transaction that keeps the table's structure. The rows are in
their current state, so a value can be newer than its event. An older value would be wrong: a server writes a
transaction to the binlog before other sessions see its rows. With MySQL, the GTID shows when they do. Otherwise rows
are read with a shared lock, which InnoDB grants only after the end of a transaction that has changed the row.
"""

import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, cast

import pymysql

from rowtide.connector.config.model.database import DatabaseConfig
from rowtide.connector.errors import SnapshotError
from rowtide.connector.records.canonical import value_text
from rowtide.connector.records.connect_values import conversion
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.records.transforms import connect_record
from rowtide.connector.snapshot.chunks.key_condition import key_condition
from rowtide.connector.snapshot.records import SnapshotTable
from rowtide.connector.snapshot.structure.current_table import current_table
from rowtide.connector.source import server_queries
from rowtide.connector.source.binlog_stream import StreamBroken
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.connector.source.session import Session
from rowtide.envelope.json.java_numbers import to_float32
from rowtide.envelope.post_processors import ReselectOptions
from rowtide.envelope.schema import Schema
from rowtide.envelope.table import RecordColumn
from rowtide.envelope.transforms import ConnectRecord, TransformError
from rowtide.schema_history.model import TableId

log = logging.getLogger(__name__)

_KEYS = 500
"""How many rows a query looks up at most."""
_COMMIT_S = 10
"""How long a commit may last after the transaction is in the binlog, in seconds: as with semi-synchronous replicas.
Also how long a row may be locked by other transactions."""
_MARIADB_SKIPS = 100600
"""The first version of MariaDB that can skip locked rows; MySQL 8.0 can."""
_STREAMED = ("c", "u")
_IMPRECISE = frozenset({"float", "double", "json"})

_FRACTION = re.compile(r"\((\d)\)")
_MILLIS = 3
_CONNECT_TIMES = "org.apache.kafka.connect.data.Time"
_MISSING: Mapping[str, Any] = {}

Key = tuple[str, ...]
"""The canonical texts of a row's key."""


class _Wanted(NamedTuple):
    """A record with columns to read again."""

    record: ConnectRecord
    fields: Sequence[str]


class _Unread(NamedTuple):
    """The values that stay unchanged: the number of rows for each reason, and the columns."""

    rows: Counter[str]
    columns: set[str]


class _NotRead(Exception):
    """The reason why rows cannot be read."""


class _NeverRead(_NotRead):
    """The reason why no rows of a table can be read as long as neither the table nor the configuration changes."""


class _Form(NamedTuple):
    """The current form of a table.

    Attributes:
        created: its SHOW CREATE TABLE.
        table: makes records of its rows.
        columns: its columns in records, by the name of the field.
        key: the fields of the primary key.
    """

    created: str
    table: SnapshotTable
    columns: Mapping[str, RecordColumn]
    key: Sequence[str]


class ReselectColumns:
    """The post-processor. It connects to the server when it is first needed.

    Args:
        options: its options.
        database: the server.
        settings: the connector's settings for records, without transforms.
    """

    def __init__(self, options: ReselectOptions, database: DatabaseConfig, settings: PipelineSettings) -> None:
        self._options, self._database, self._settings = options, database, settings
        self._session: Session | None = None
        self._forms: dict[TableId, _Form] = {}
        self._warned: set[tuple[TableId, str]] = set()
        placeholder = settings.rules.values.unavailable_value_placeholder
        self._placeholders = {"bytes": placeholder, "string": placeholder.decode(errors="replace")}

    def close(self) -> None:
        """Close the connection."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def apply(self, records: Sequence[ConnectRecord]) -> Sequence[TransformError | None]:
        """Replace the values in ``after`` that must be read again.

        Raises:
            StreamBroken: the connection was lost, or the server cannot be reached.
            SnapshotError: rows cannot be read, and ``reselect.error.handling.mode`` is ``fail``.
        """
        found: dict[TableId, list[_Wanted]] = {}
        for record in records:
            source = record.value["source"]
            table = TableId(source["db"], source["table"] or "")
            if (table.database, table.table) not in self._settings.tables.always:
                fields = self._fields(record, table)
                if fields and record.key is None:  # even with reselect.error.handling.mode=fail, as in Debezium
                    self._warn(table, _NeverRead("it has no primary key"))
                elif fields:
                    found.setdefault(table, []).append(_Wanted(record, fields))
        for table, wanted in found.items():
            for begin in range(0, len(wanted), _KEYS):
                try:
                    self._replace(table, wanted[begin : begin + _KEYS])
                except _NotRead as reason:
                    self._report(table, reason)
        return [None] * len(records)

    def _fields(self, record: ConnectRecord, table: TableId) -> list[str]:
        """Return the fields of ``after`` to read again."""
        after = record.value.get("after")  # a post-processor may have deleted it
        if after is None or record.value["op"] not in _STREAMED:
            return []
        schema = row_schema(record)
        return [
            one.name
            for one in schema.fields
            if self._is_wanted(one.schema, after.get(one.name)) and self._options.columns.selects(f"{table}:{one.name}")
        ]

    def _is_wanted(self, schema: Schema, value: Any) -> bool:
        if value is None:
            return self._options.null_values
        return (
            self._options.unavailable_values and not schema.is_decimal and value == self._placeholders.get(schema.type)
        )

    def _replace(self, table: TableId, wanted: Sequence[_Wanted]) -> None:
        try:
            reasons = self._read(table, wanted)
        except DatabaseUnreachableError as error:
            self.close()
            if not error.retriable:
                raise
            raise StreamBroken(f"post.processors: {self._options.name}: {error}") from error
        except (SnapshotError, pymysql.MySQLError) as error:
            self.close()
            raise _NotRead(str(error.args[-1] if error.args else error)) from error
        if reasons:
            raise _NotRead("; ".join(reasons))

    def _read(self, table: TableId, wanted: Sequence[_Wanted]) -> list[str]:
        """Read rows, and return the reasons why some stay unchanged."""
        session = self._connected()
        unread = _Unread(Counter(), set())
        gtid = None if session.mariadb else wanted[0].record.value["source"].get("gtid")
        if gtid is not None:
            _await_commit(session, gtid)
            missing = self._rows(session, table, wanted, "", unread)
        else:
            missing = self._locked(session, table, wanted, unread)
        if missing:
            unread.rows["no longer exist"] = len(missing)
        reasons = [f"{count} of {len(wanted)} rows {reason}" for reason, count in unread.rows.items()]
        return reasons + [
            f"the type of column {name} has changed, or the column was dropped" for name in sorted(unread.columns)
        ]

    def _connected(self) -> Session:
        if self._session is None:
            self._session = Session(self._database, mariadb=self._settings.connector == "mariadb")
            self._session.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")  # locks rows, and no gaps
            self._session.execute(f"SET SESSION innodb_lock_wait_timeout = {_COMMIT_S}")
        return self._session

    def _locked(self, session: Session, table: TableId, wanted: Sequence[_Wanted], unread: _Unread) -> list[_Wanted]:
        """Read rows with shared locks, and return the records whose rows do not exist.

        A transaction that has locked many rows does not wait for another, so it cannot be part of a deadlock: a locked
        row is skipped, and later read alone, with waiting. If several rows can have a key, none of them is skipped.
        """
        lock = "LOCK IN SHARE MODE" if session.mariadb else "FOR SHARE"
        limit = time.monotonic() + _COMMIT_S
        rest: Sequence[_Wanted] = wanted
        skips = not session.mariadb or server_queries.server(session).version_number >= _MARIADB_SKIPS
        if skips and not self._options.use_event_key:
            rest = self._rows(session, table, wanted, f"{lock} SKIP LOCKED", unread)
        missing = []
        for one in rest:
            if time.monotonic() > limit:
                raise _NotRead(f"other transactions have locked rows for {_COMMIT_S} s")
            missing += self._rows(session, table, [one], lock, unread)
        return missing

    def _rows(
        self,
        session: Session,
        table: TableId,
        wanted: Sequence[_Wanted],
        lock: str,
        unread: _Unread,
    ) -> list[_Wanted]:
        """Replace the values of records with the current values of their rows.

        Args:
            session: has no open transaction.
            table: the table.
            wanted: its records.
            lock: the clause of the query that locks the rows.
            unread: receives the values that stay unchanged, except for rows that were not found.

        Returns:
            The records whose rows were not found.
        """
        keys, rows, form = self._found(session, table, wanted, lock)
        fields_of = {field.name: field.schema for field in row_schema(wanted[0].record).fields}
        convert = {name: _converted(form.columns.get(name), schema) for name, schema in fields_of.items()}
        missing = []
        for one, key in zip(wanted, keys, strict=True):
            row = None if key is None else rows.get(key, _MISSING)
            if row is _MISSING:
                missing.append(one)
            elif row is None:
                unread.rows["have a key that another row can also have"] += 1
            else:
                unread.columns.update(name for name in one.fields if convert[name] is None)
                for name in one.fields:
                    found = convert[name]
                    if found is not None and (row[name] is not None or fields_of[name].optional):
                        one.record.value["after"][name] = found(row[name])
        return missing

    def _found(
        self, session: Session, table: TableId, wanted: Sequence[_Wanted], lock: str
    ) -> tuple[Sequence[Key | None], Mapping[Key, Mapping[str, Any] | None], _Form]:
        """Read the current rows of records.

        Returns:
            The key of each record, ``None`` if it is not exact; the rows by key, ``None`` if several rows have it; and
            the form of the table.
        """
        session.execute("START TRANSACTION READ ONLY")
        try:
            # The structure cannot change from here until the end of the transaction.
            session.execute(f"SELECT 1 FROM {server_queries.quoted_table(table)} LIMIT 0")
            form = self._form(session, table)
            names = self._key_fields(form, wanted[0].record)
            key_of = _keys(form, names, wanted[0].record)
            keys = [key_of(one.record) for one in wanted]
            exact = sorted({key for key in keys if key is not None})
            found: dict[Key, Mapping[str, Any] | None] = {}
            if not exact:
                return keys, found, form
            condition = key_condition([form.columns[name].column for name in names], exact)
            if condition is None:
                raise _NeverRead("a column of the key has a type whose values cannot be looked up")
            query = f"{form.table.query(condition)} {lock}"
            for rows in session.rows(table, query, form.table.reader):
                batch = form.table.unplaced(rows, time.time_ns)
                records = [connect_record(batch, message) for message in batch.messages]
                key_of = _keys(form, names, records[0])
                for record in records:
                    key = key_of(record)
                    if key is not None:
                        found[key] = None if key in found else record.value["after"]
            return keys, found, form
        finally:
            if session.client.open:
                session.execute("ROLLBACK")

    def _form(self, session: Session, table: TableId) -> _Form:
        known = self._forms.get(table)
        created = server_queries.create_statement(session, table)
        if known is not None and known.created == created:
            return known
        structure, created = current_table(session, table)
        if structure is None:
            raise _NotRead("its structure cannot be parsed")
        form = SnapshotTable(structure, self._settings)
        columns = {one.field: one for one in form.records.columns}
        primary = {name.lower(): place for place, name in enumerate(structure.primary_key)}
        key = sorted(
            (one.field for one in columns.values() if one.column.name.lower() in primary),
            key=lambda field: primary[columns[field].column.name.lower()],
        )
        made = self._forms[table] = _Form(created, form, columns, key if len(key) == len(primary) else ())
        return made

    def _key_fields(self, form: _Form, record: ConnectRecord) -> Sequence[str]:
        """Return the fields of the key.

        Raises:
            _NeverRead: the table has no key, or a key whose values differ from those of the table.
        """
        names = form.key
        if self._options.use_event_key:
            names = [] if record.key_schema is None else [one.name for one in record.key_schema.fields]
        if not names:
            raise _NeverRead("it has no primary key, or not all columns of the key are captured")
        for name in names:
            current = form.columns.get(name)
            if current is None or row_schema(record).field(name) is None:
                raise _NeverRead(f"column {name} of the key is not in the rows")
            if current.mapper is not None or current.type.is_custom:
                raise _NeverRead(f"column {name} of the key is masked, truncated or converted")
            if current.column.data_type in _IMPRECISE:
                raise _NeverRead(f"column {name} of the key is of type {current.column.data_type}")
        return names

    def _report(self, table: TableId, reason: _NotRead) -> None:
        """Stop, or log the reason why columns keep their values."""
        if self._options.fails:
            raise SnapshotError(
                f"{self._message(table, reason)} ({self._options.name}.reselect.error.handling.mode=fail)"
            )
        self._warn(table, reason)

    def _warn(self, table: TableId, reason: _NotRead) -> None:
        if isinstance(reason, _NeverRead):  # of each row: once is enough
            if (table, str(reason)) in self._warned:
                return
            self._warned.add((table, str(reason)))
        log.warning("%s; they are left unchanged", self._message(table, reason))

    def _message(self, table: TableId, reason: _NotRead) -> str:
        return f"post.processors: {self._options.name}: columns of table {table} cannot be read again: {reason}"


def _await_commit(session: Session, gtid: str) -> None:
    """Wait until other sessions see a transaction of MySQL."""
    late = session.query(f"SELECT WAIT_FOR_EXECUTED_GTID_SET({session.literal(gtid)}, {_COMMIT_S})")[0][0]
    if int(late):
        raise _NotRead(f"the server has not executed the transaction {gtid} within {_COMMIT_S} s")


def row_schema(record: ConnectRecord) -> Schema:
    """Return the schema of ``after``."""
    assert record.value_schema is not None
    field = record.value_schema.field("after")
    assert field is not None
    return field.schema


def _keys(form: _Form, names: Sequence[str], record: ConnectRecord) -> Callable[[ConnectRecord], Key | None]:
    """Return the function from a record with the schemas of this one to its key.

    The function returns ``None`` for a key that several rows can have.
    """
    schema = record.key_schema
    in_key = schema is not None and all(schema.field(name) for name in names)  # no post-processor changes the key
    if schema is None or not in_key:
        schema = row_schema(record)
    columns = [(name, _text_of(form.columns[name], field.schema)) for name in names if (field := schema.field(name))]

    def key(record: ConnectRecord) -> Key | None:
        values = record.key if in_key else record.value["after"]
        try:
            texts = tuple(text(values[name]) for name, text in columns)
        except (ValueError, LookupError, ArithmeticError):
            return None
        return None if None in texts else cast("Key", texts)

    return key


def _text_of(current: RecordColumn, schema: Schema) -> Callable[[Any], str | None]:
    """Return the function from a Connect value to its canonical text; ``None`` if the text is ambiguous.

    Raises:
        _NeverRead: the values of the column are rounded.
    """
    column, kind = current.column, current.column.data_type
    if schema.type in ("float", "double"):
        raise _NeverRead(f"column {column.name} of the key is written as {schema.type}")
    fraction = _FRACTION.search(column.column_type)
    if (schema.name or "").startswith(_CONNECT_TIMES) and fraction and int(fraction[1]) > _MILLIS:
        raise _NeverRead(f"time.precision.mode=connect cuts off microseconds of column {column.name} of the key")
    convert = conversion(schema, "connect")
    # Zero dates and partial ones become the default, or the epoch (zero.date.handling.mode).
    replacements = (current.null, schema.default) if kind in ("date", "datetime", "timestamp") else ()
    unsigned = column.column_type.endswith("unsigned")

    def text(value: Any) -> str | None:
        if value is None or value in replacements or (kind == "enum" and "\\" in value):  # Debezium escapes labels
            return None
        found = value if convert is None else convert(value)
        if kind == "decimal" and isinstance(found, str):
            found = Decimal(found)
        elif kind == "bigint" and isinstance(found, Decimal | str):
            found = int(found)  # bigint.unsigned.handling.mode
        elif kind == "binary" and isinstance(found, bytes):
            found = found.rstrip(b"\0")
        elif isinstance(found, bool):
            found = int(found)
        if unsigned and type(found) is int and found < 0:
            found += 1 << 64
        return value_text(found)

    return text


def _converted(current: RecordColumn | None, schema: Schema) -> Callable[[Any], Any] | None:
    """Return the function from a current value to one of an event's schema; ``None`` if it would change."""
    if current is None:
        return None
    one = current.schema
    scales = [dict(schema.parameters or ()).get("scale") for schema in (one, schema)]
    if one.type == schema.type and one.name == schema.name and scales[0] == scales[1]:
        return lambda value: value
    # SHOW CREATE TABLE does not have the types that statements declare: BOOL, REAL, and JSON of MariaDB.
    kind = current.column.data_type
    if kind == "tinyint" and schema.type == "boolean" and current.column.column_type.startswith("tinyint(1)"):
        return lambda value: None if value is None else value != 0
    if kind == "double" and schema.type == "float":
        return lambda value: None if value is None else to_float32(value)
    if kind == "longtext" and schema.type == "string" and schema.name == "io.debezium.data.Json":
        return lambda value: value
    return None
