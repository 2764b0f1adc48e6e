"""Reads columns of changed rows from the server again, as Debezium's ReselectColumnsPostProcessor does.

The rows of an event are looked up with one query, in a transaction that keeps the table's structure. They are as they
are now, so a value can be newer than its event.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import pymysql

from rowtide.connector.config.model.database import DatabaseConfig
from rowtide.connector.errors import SnapshotError
from rowtide.connector.records.canonical import value_text
from rowtide.connector.records.connect_values import conversion
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.records.transforms import connect_record
from rowtide.connector.snapshot.chunks.key_condition import key_condition
from rowtide.connector.snapshot.records import ReadTime, SnapshotTable
from rowtide.connector.snapshot.structure.current_table import current_table
from rowtide.connector.source import server_queries
from rowtide.connector.source.binlog_stream import StreamBroken
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.connector.source.session import Session
from rowtide.envelope.post_processors import ReselectOptions
from rowtide.envelope.schema import Schema
from rowtide.envelope.table import RecordColumn
from rowtide.envelope.transforms import ConnectRecord, TransformError
from rowtide.schema_history.model import TableId

log = logging.getLogger(__name__)

_KEYS = 500
"""How many rows a query looks up at most."""
_NOWHERE = SourceOffset("", 0)
_STREAMED = ("c", "u")
_IMPRECISE = frozenset({"float", "double", "json"})

Key = tuple[Any, ...]
"""The Connect values of a row's key."""


class _Wanted(NamedTuple):
    """A record with columns to read again."""

    record: ConnectRecord
    fields: Sequence[str]


class _NotRead(Exception):
    """Why rows cannot be read."""


class _Form(NamedTuple):
    """A table as it is now.

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
        settings: how the connector makes records, without transforms.
    """

    def __init__(self, options: ReselectOptions, database: DatabaseConfig, settings: PipelineSettings) -> None:
        self._options, self._database, self._settings = options, database, settings
        self._session: Session | None = None
        self._forms: dict[TableId, _Form] = {}
        placeholder = settings.rules.values.unavailable_value_placeholder
        self._placeholders = {"bytes": placeholder, "string": placeholder.decode(errors="surrogateescape")}

    def close(self) -> None:
        """Close the connection."""
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def apply(self, records: Sequence[ConnectRecord]) -> Sequence[TransformError | None]:
        """Replace the values in ``after`` that are to be read again.

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
                if fields:
                    found.setdefault(table, []).append(_Wanted(record, fields))
        for table, wanted in found.items():
            for begin in range(0, len(wanted), _KEYS):
                try:
                    self._replace(table, wanted[begin : begin + _KEYS])
                except _NotRead as reason:
                    self._report(table, str(reason))
        return [None] * len(records)

    def _fields(self, record: ConnectRecord, table: TableId) -> list[str]:
        """The fields of ``after`` to read again."""
        after = record.value["after"]
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
            rows, form = self._rows(table, wanted)
        except DatabaseUnreachableError as error:
            self.close()
            if not error.retriable:
                raise
            raise StreamBroken(f"post.processors: {self._options.name}: {error}") from error
        except (SnapshotError, pymysql.MySQLError) as error:
            self.close()
            raise _NotRead(str(error.args[-1] if error.args else error)) from error
        missing = 0
        for record, fields in wanted:
            row, schema = rows.get(self._key(form, record)), row_schema(record)
            if row is None:
                missing += 1
                continue
            for name in fields:
                field = schema.field(name)
                assert field is not None
                current = form.columns.get(name)
                if current is None or not _same_values(current.schema, field.schema):
                    raise _NotRead(f"column {name} has another type now, or was dropped")
                if row[name] is not None or field.schema.optional:
                    record.value["after"][name] = row[name]
        if missing:
            raise _NotRead(f"{missing} of {len(wanted)} rows do not exist any more")

    def _rows(self, table: TableId, wanted: Sequence[_Wanted]) -> tuple[Mapping[Key, Mapping[str, Any]], _Form]:
        """The rows of the records as they are now, by key, and the form of the table."""
        session = self._session
        if session is None:
            session = self._session = Session(self._database, mariadb=self._settings.connector == "mariadb")
        session.execute("START TRANSACTION READ ONLY")
        try:
            # The structure cannot change from here to the end of the transaction.
            session.execute(f"SELECT 1 FROM {server_queries.quoted_table(table)} LIMIT 0")
            form = self._form(session, table)
            keys = {self._key(form, one.record): one.record for one in wanted}
            condition = key_condition(
                [form.columns[name].column for name in self._key_fields(form, wanted[0].record)],
                [self._texts(form, key, record) for key, record in keys.items()],
            )
            if condition is None:
                raise _NotRead("a column of the key has a type whose values cannot be looked up")
            query = (
                f"SELECT {', '.join(form.table.selected)} FROM {server_queries.quoted_table(table)} WHERE {condition}"
            )
            found: dict[Key, Mapping[str, Any]] = {}
            for rows in session.rows(table, query, form.table.reader):
                read = ReadTime(0, _NOWHERE, time.time_ns)
                batch = form.table.batch(form.table.messages(rows, "true", read), 0, _NOWHERE)
                for message in batch.messages:
                    record = connect_record(batch, message)
                    found[self._key(form, record)] = record.value["after"]
            return found, form
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
        if not self._options.use_event_key:
            return form.key
        return [] if record.key_schema is None else [one.name for one in record.key_schema.fields]

    def _key(self, form: _Form, record: ConnectRecord) -> Key:
        """The values of a record's key.

        Raises:
            _NotRead: the table has no key, or one whose values are not those of the table.
        """
        names = self._key_fields(form, record)
        if not names:
            raise _NotRead("it has no primary key, or not all columns of the key are captured")
        after = record.value["after"]
        for name in names:
            current = form.columns.get(name)
            if current is None or name not in after:
                raise _NotRead(f"column {name} of the key is not in the rows")
            if current.mapper is not None or current.type.is_custom:
                raise _NotRead(f"column {name} of the key is masked, truncated or converted")
            if current.column.data_type in _IMPRECISE:
                raise _NotRead(f"column {name} of the key is of type {current.column.data_type}")
        return tuple(after[name] for name in names)

    def _texts(self, form: _Form, key: Key, record: ConnectRecord) -> list[str]:
        """The canonical texts of a key, by the schemas of the record that it is of."""
        texts, schema = [], row_schema(record)
        for name, value in zip(self._key_fields(form, record), key, strict=True):
            field = schema.field(name)
            assert field is not None
            column = form.columns[name].column
            if field.schema.type == "double" and column.data_type == "decimal":
                raise _NotRead(f"column {name} of the key is written as double")
            convert = conversion(field.schema, "connect", placeholder=None)
            found = value if convert is None or value is None else convert(value)
            if column.data_type == "bigint" and isinstance(found, Decimal | str):
                found = int(found)  # bigint.unsigned.handling.mode
            if type(found) is int and found < 0 and column.column_type.endswith("unsigned"):
                found += 1 << 64
            if column.data_type == "decimal" and isinstance(found, str):
                raise _NotRead(f"column {name} of the key is written as text")
            texts.append(value_text(found))
        return texts

    def _report(self, table: TableId, reason: str) -> None:
        """Stop, or log why columns keep their values."""
        message = f"post.processors: {self._options.name}: columns of table {table} cannot be read again: {reason}"
        if self._options.fails:
            raise SnapshotError(f"{message} ({self._options.name}.reselect.error.handling.mode=fail)")
        log.warning("%s; they stay as they are", message)


def row_schema(record: ConnectRecord) -> Schema:
    """Return the schema of ``after``."""
    assert record.value_schema is not None
    field = record.value_schema.field("after")
    assert field is not None
    return field.schema


def _same_values(one: Schema, other: Schema) -> bool:
    """Tell whether the values of two schemas mean the same."""
    scales = [dict(schema.parameters or ()).get("scale") for schema in (one, other)]
    return one.type == other.type and one.name == other.name and scales[0] == scales[1]
