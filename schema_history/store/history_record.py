"""Records of the schema history in Debezium's format: formats them like Jackson, and parses them.

A record has a statement, the position from which it applies, and a description of the tables after it. Debezium and
rowtide read each other's records.
"""

import json
import marshal
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rowtide.schema_history.catalog.changes import ChangeKind, SchemaChange
from rowtide.schema_history.errors import DamagedHistory
from rowtide.schema_history.model import DebeziumColumn, DebeziumTable, Table, TableId
from rowtide.schema_history.store.json_fields import (
    flag,
    json_object,
    number,
    objects,
    optional_number,
    optional_text,
    text,
    texts,
)

_MARSHAL_VERSION = 2
"""The format of :mod:`marshal` without references to equal objects: equal descriptions are equal bytes."""
_ID = re.compile(r'"((?:[^"]|"")*)"\."((?:[^"]|"")*)"')


@dataclass(frozen=True, slots=True)
class RecordedTable:
    """The description of one table in a record; it is parsed on access, because later records replace most of them.

    Attributes:
        kind: the kind of change.
        id: its name.
        previous_id: its former name, if it was renamed.
        packed: Debezium's JSON of the table, marshalled: as objects, it needs five times the memory. ``None`` if the
            table was dropped.
        comment: comment of the table.
    """

    kind: ChangeKind
    id: TableId
    previous_id: TableId | None
    packed: bytes | None
    comment: str | None = None

    @classmethod
    def of(
        cls,
        kind: ChangeKind,
        table_id: TableId,
        previous_id: TableId | None,
        fields: dict[str, Any] | None,
        comment: str | None,
    ) -> "RecordedTable":
        """Return the description with Debezium's JSON of the table, ``None`` if it was dropped."""
        packed = None if fields is None else marshal.dumps(fields, _MARSHAL_VERSION)
        return cls(kind, table_id, previous_id, packed, comment)

    @property
    def fields(self) -> Mapping[str, Any] | None:
        """Debezium's JSON of the table; ``None`` if it was dropped."""
        return None if self.packed is None else marshal.loads(self.packed)

    @property
    def debezium(self) -> DebeziumTable | None:
        """Debezium's description of the table without its columns; ``None`` if it was dropped.

        Raises:
            DamagedHistory: the JSON does not describe a table.
        """
        fields = self.fields
        if fields is None:
            return None
        try:
            return DebeziumTable(
                optional_text(fields.get("defaultCharsetName"), "defaultCharsetName"),
                texts(fields.get("primaryKeyColumnNames"), "primaryKeyColumnNames"),
                optional_text(self.comment, "comment"),
                tuple(
                    (text(item["name"], "name"), text(item["value"], "value"))
                    for item in objects(fields.get("attributes"), "attributes")
                ),
            )
        except (KeyError, TypeError) as error:
            raise self._damaged(error) from error

    @property
    def columns(self) -> tuple[DebeziumColumn, ...]:
        """Debezium's descriptions of the columns.

        Raises:
            DamagedHistory: the JSON does not describe a table.
        """
        try:
            columns = objects((self.fields or {"columns": []})["columns"], "columns")
            return tuple(map(_debezium_column, columns))
        except (KeyError, TypeError) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> DamagedHistory:
        return DamagedHistory(
            f"the schema history's record of table {self.id} is damaged ({error!r}); rebuild the history with "
            "snapshot.mode=recovery"
        )


@dataclass(frozen=True, slots=True)
class HistoryRecord:
    """A parsed record.

    Attributes:
        server: ``topic.prefix`` of the connector that wrote it.
        position: the fields of the position.
        ts_ms: time of writing, in milliseconds since the epoch.
        database: the statement's database, ``""`` if none.
        ddl: the statement; ``None`` if the record only describes tables.
        tables: the tables after the statement.
        session: settings of the statement's session, if they matter (see ``recovery.session_settings``).
    """

    server: str
    position: Mapping[str, Any]
    ts_ms: int
    database: str
    ddl: str | None
    tables: tuple[RecordedTable, ...]
    session: Mapping[str, Any] | None = None


def history_record(
    change: SchemaChange,
    server: str,
    position: Mapping[str, Any],
    ts_ms: int,
    *,
    comments: bool = False,
    session: Mapping[str, Any] | None = None,
) -> str:
    """Format a record.

    Args:
        change: the effect of the statement.
        server: ``topic.prefix``.
        position: fields of the offset after the statement.
        ts_ms: time of writing, in milliseconds since the epoch.
        comments: keep comments (``include.schema.comments``).
        session: settings of the statement's session, if they matter.
    """
    fields: dict[str, Any] = {
        "source": {"server": server},
        "position": {name: value for name, value in position.items() if value is not None},
        "ts_ms": ts_ms,
        "databaseName": change.database,
    }
    if change.schema is not None:
        fields["schemaName"] = change.schema
    if change.ddl:
        fields["ddl"] = change.ddl
    fields["tableChanges"] = _table_changes(change, comments=comments)
    if session is not None:
        fields["session"] = session
    return pretty(fields)


def _table_changes(change: SchemaChange, *, comments: bool) -> list[dict[str, Any]]:
    if change.table_id is None or change.kind in {ChangeKind.DATABASE, ChangeKind.TRUNCATE}:
        return []
    entry: dict[str, Any] = {"type": change.kind.value, "id": id_text(change.table_id)}
    if change.kind is ChangeKind.DROP:
        return [entry]
    if change.table is None:
        return []
    if change.previous_id is not None:
        entry["previousId"] = id_text(change.previous_id)
    entry["table"] = table_fields(change.table, comments=comments)
    entry["comment"] = change.table.debezium.comment if comments else None
    return [entry]


def id_text(table_id: TableId) -> str:
    """Return a table's name in Debezium's form."""
    database, table = (name.replace('"', '""') for name in (table_id.database, table_id.table))
    return f'"{database}"."{table}"'


def table_fields(table: Table, *, comments: bool = False) -> dict[str, Any]:
    """Return Debezium's JSON of a table."""
    columns = [column.debezium for column in table.columns if column.debezium is not None]
    return {
        "defaultCharsetName": table.debezium.default_charset_name,
        "primaryKeyColumnNames": list(table.debezium.primary_key),
        "columns": [_column_fields(column, n, comments=comments) for n, column in enumerate(columns, 1)],
        "attributes": [{"name": name, "value": value} for name, value in table.debezium.attributes],
    }


def _column_fields(column: DebeziumColumn, position: int, *, comments: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": column.name, "jdbcType": column.jdbc_type}
    if column.native_type is not None:
        fields["nativeType"] = column.native_type
    fields["typeName"] = column.type_name
    fields["typeExpression"] = column.type_expression
    fields["charsetName"] = column.charset_name
    if column.length is not None:
        fields["length"] = column.length
    if column.scale is not None:
        fields["scale"] = column.scale
    fields |= {
        "position": position,
        "optional": column.optional,
        "autoIncremented": column.auto_incremented,
        "generated": column.generated,
        "comment": column.comment if comments else None,
        "hasDefaultValue": column.has_default,
    }
    if column.default_expression is not None:
        fields["defaultValueExpression"] = column.default_expression
    fields["enumValues"] = list(column.enum_values)
    return fields


def pretty(value: Any, indent: str = "") -> str:
    """Return JSON in the layout of Jackson's DefaultPrettyPrinter: objects on several lines, arrays on one."""
    if isinstance(value, Mapping):
        if not value:
            return "{ }"
        inner = indent + "  "
        members = [f"{inner}{_text(name)} : {pretty(member, inner)}" for name, member in value.items()]
        return "{\n" + ",\n".join(members) + f"\n{indent}}}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[ " + ", ".join(pretty(item, indent) for item in value) + " ]" if value else "[ ]"
    return _text(value)


_ESCAPE = re.compile(r"\\u[0-9a-f]{4}|\\.")


def _text(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _ESCAPE.sub(lambda match: match[0][:2] + match[0][2:].upper(), text) if "\\u" in text else text


def parse_record(record: str, loads: Callable[[str], Any] = json.loads) -> HistoryRecord:
    """Parse a record.

    Args:
        record: one JSON object.
        loads: parses JSON; raises ``ValueError``.

    Raises:
        DamagedHistory: the text is not a record; the message says why.
    """
    try:
        fields = json_object(loads(record), "record")
        session = fields.get("session")
        return HistoryRecord(
            text(json_object(fields.get("source", {}), "source").get("server", ""), "server"),
            json_object(fields["position"], "position"),
            int(fields.get("ts_ms") or 0),
            optional_text(fields.get("databaseName"), "databaseName") or "",
            optional_text(fields.get("ddl"), "ddl"),
            tuple(map(recorded_table, objects(fields.get("tableChanges"), "tableChanges"))),
            None if session is None else json_object(session, "session"),
        )
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise DamagedHistory(f"not a record of a schema history: {error!r}") from error


def recorded_table(entry: Mapping[str, Any]) -> RecordedTable:
    """Return an item of ``tableChanges``.

    Raises:
        ValueError, KeyError, TypeError: it is not such an item.
    """
    kind, fields = ChangeKind(entry["type"]), entry.get("table")
    if fields is not None and not isinstance(json_object(fields, "table")["columns"], list):
        raise TypeError("'columns' of a table is not a list")
    if fields is None and kind is not ChangeKind.DROP:
        raise TypeError("'table' is missing")
    previous = entry.get("previousId")
    return RecordedTable.of(
        kind,
        _table_id(text(entry["id"], "id")),
        _table_id(text(previous, "previousId")) if previous else None,
        fields,
        entry.get("comment"),
    )


@lru_cache(maxsize=10_000)
def _table_id(name: str) -> TableId:
    match = _ID.fullmatch(name)
    if match is None:
        raise ValueError(f"{name!r} is not the name of a table")
    return TableId(match[1].replace('""', '"'), match[2].replace('""', '"'))


def _debezium_column(fields: Mapping[str, Any]) -> DebeziumColumn:
    return DebeziumColumn(
        name=text(fields["name"], "name"),
        jdbc_type=number(fields["jdbcType"], "jdbcType"),
        type_name=text(fields["typeName"], "typeName"),
        type_expression=optional_text(fields.get("typeExpression"), "typeExpression") or fields["typeName"],
        native_type=optional_number(fields.get("nativeType"), "nativeType"),
        charset_name=optional_text(fields.get("charsetName"), "charsetName"),
        length=optional_number(fields.get("length"), "length"),
        scale=optional_number(fields.get("scale"), "scale"),
        optional=flag(fields.get("optional", True), "optional"),
        auto_incremented=flag(fields.get("autoIncremented", False), "autoIncremented"),
        generated=flag(fields.get("generated", False), "generated"),
        has_default=flag(fields.get("hasDefaultValue", False), "hasDefaultValue"),
        default_expression=optional_text(fields.get("defaultValueExpression"), "defaultValueExpression"),
        enum_values=texts(fields.get("enumValues"), "enumValues"),
        comment=optional_text(fields.get("comment"), "comment"),
    )
