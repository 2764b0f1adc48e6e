"""Records of the schema history in Debezium's format: formatted as Jackson does, and parsed.

A record has a statement, the position from which on it applies, and a description of the tables after it. Debezium and
rowtide read each other's records.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from rowtide.schema_history.catalog.changes import ChangeKind, SchemaChange
from rowtide.schema_history.errors import DamagedHistory
from rowtide.schema_history.model import DebeziumColumn, DebeziumTable, Table, TableId

_ID = re.compile(r'"((?:[^"]|"")*)"\."((?:[^"]|"")*)"')


@dataclass(frozen=True, slots=True)
class RecordedTable:
    """The description of one table in a record; it is parsed on access, because later records replace most of them.

    Attributes:
        kind: what happened to the table.
        id: its name.
        previous_id: its former name, if it was renamed.
        fields: Debezium's JSON of the table; ``None`` if it was dropped.
        comment: comment of the table.
    """

    kind: ChangeKind
    id: TableId
    previous_id: TableId | None
    fields: Mapping[str, Any] | None
    comment: str | None = None

    @property
    def debezium(self) -> DebeziumTable | None:
        """Debezium's description of the table without its columns; ``None`` if it was dropped.

        Raises:
            DamagedHistory: the JSON does not describe a table.
        """
        if self.fields is None:
            return None
        try:
            return DebeziumTable(
                self.fields.get("defaultCharsetName"),
                tuple(self.fields.get("primaryKeyColumnNames") or ()),
                self.comment,
                tuple((item["name"], item["value"]) for item in self.fields.get("attributes") or ()),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise self._damaged(error) from error

    @property
    def columns(self) -> tuple[DebeziumColumn, ...]:
        """Debezium's descriptions of the columns.

        Raises:
            DamagedHistory: the JSON does not describe a table.
        """
        try:
            return tuple(_debezium_column(column) for column in (self.fields or {"columns": ()})["columns"])
        except (KeyError, TypeError, AttributeError) as error:
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
        change: what the statement did.
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
        "ddl": change.ddl,
        "tableChanges": _table_changes(change, comments=comments),
    }
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
    """A table's name as Debezium writes it."""
    database, table = (name.replace('"', '""') for name in (table_id.database, table_id.table))
    return f'"{database}"."{table}"'


def table_fields(table: Table, *, comments: bool = False) -> dict[str, Any]:
    """Debezium's JSON of a table."""
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
    """JSON in the layout of Jackson's DefaultPrettyPrinter: objects on several lines, arrays on one."""
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


def parse_record(text: str, loads: Callable[[str], Any] = json.loads) -> HistoryRecord:
    """Parse a record.

    Args:
        text: one JSON object.
        loads: parses JSON; raises ``ValueError``.

    Raises:
        DamagedHistory: the text is not a record; the message says why.
    """
    try:
        fields = loads(text)
        return HistoryRecord(
            fields.get("source", {}).get("server", ""),
            fields["position"],
            int(fields.get("ts_ms") or 0),
            fields.get("databaseName") or "",
            fields.get("ddl"),
            tuple(_recorded_table(entry) for entry in fields.get("tableChanges") or ()),
            _session(fields),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedHistory(f"not a record of a schema history: {error!r}") from error


def _session(fields: Mapping[str, Any]) -> Mapping[str, Any] | None:
    session = fields.get("session")
    if session is not None and not isinstance(session, dict):
        raise TypeError("'session' is not an object")
    return session


def _recorded_table(entry: Mapping[str, Any]) -> RecordedTable:
    fields = entry.get("table")
    if fields is not None and not isinstance(fields["columns"], list):
        raise TypeError("'columns' of a table is not a list")
    previous = entry.get("previousId")
    return RecordedTable(
        ChangeKind(entry["type"]),
        _table_id(entry["id"]),
        _table_id(previous) if previous else None,
        fields,
        entry.get("comment"),
    )


@cache
def _table_id(text: str) -> TableId:
    match = _ID.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not the name of a table")
    return TableId(match[1].replace('""', '"'), match[2].replace('""', '"'))


def _debezium_column(fields: Mapping[str, Any]) -> DebeziumColumn:
    return DebeziumColumn(
        name=fields["name"],
        jdbc_type=fields["jdbcType"],
        type_name=fields["typeName"],
        type_expression=fields.get("typeExpression") or fields["typeName"],
        native_type=fields.get("nativeType"),
        charset_name=fields.get("charsetName"),
        length=fields.get("length"),
        scale=fields.get("scale"),
        optional=fields.get("optional", True),
        auto_incremented=fields.get("autoIncremented", False),
        generated=fields.get("generated", False),
        has_default=fields.get("hasDefaultValue", False),
        default_expression=fields.get("defaultValueExpression"),
        enum_values=tuple(fields.get("enumValues") or ()),
        comment=fields.get("comment"),
    )
