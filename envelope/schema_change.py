"""Records of the schema change topic: a DDL statement and the tables after it."""

from collections.abc import Sequence
from typing import Any

from rowtide.envelope.schema import BOOLEAN, INT32, INT64, OPTIONAL_INT32, OPTIONAL_STRING, STRING, Schema, struct
from rowtide.envelope.source import source_schema
from rowtide.schema_history.catalog.changes import ChangeKind, SchemaChange
from rowtide.schema_history.model import DebeziumColumn, Table

_OPTIONAL_BOOLEAN = BOOLEAN.with_optional(True)
_STRINGS = Schema("array", optional=True, items=STRING)
_COLUMN = struct(
    "io.debezium.connector.schema.Column",
    {
        "name": STRING,
        "jdbcType": INT32,
        "nativeType": OPTIONAL_INT32,
        "typeName": STRING,
        "typeExpression": OPTIONAL_STRING,
        "charsetName": OPTIONAL_STRING,
        "length": OPTIONAL_INT32,
        "scale": OPTIONAL_INT32,
        "position": INT32,
        "optional": _OPTIONAL_BOOLEAN,
        "autoIncremented": _OPTIONAL_BOOLEAN,
        "generated": _OPTIONAL_BOOLEAN,
        "comment": OPTIONAL_STRING,
        "defaultValueExpression": OPTIONAL_STRING,
        "enumValues": _STRINGS,
    },
    version=1,
)
_TABLE = struct(
    "io.debezium.connector.schema.Table",
    {
        "defaultCharsetName": OPTIONAL_STRING,
        "primaryKeyColumnNames": _STRINGS,
        "columns": Schema("array", items=_COLUMN),
        "comment": OPTIONAL_STRING,
    },
    version=1,
    optional=True,
)
_CHANGE = struct("io.debezium.connector.schema.Change", {"type": STRING, "id": STRING, "table": _TABLE}, version=1)


def key_schema(connector: str) -> Schema:
    """Return the schema of the keys."""
    return struct(f"io.debezium.connector.{connector}.SchemaChangeKey", {"databaseName": STRING}, version=1)


def value_schema(connector: str) -> Schema:
    """Return the schema of the values."""
    return struct(
        f"io.debezium.connector.{connector}.SchemaChangeValue",
        {
            "source": source_schema(connector),
            "ts_ms": INT64,
            "databaseName": OPTIONAL_STRING,
            "schemaName": OPTIONAL_STRING,
            "ddl": OPTIONAL_STRING,
            "tableChanges": Schema("array", items=_CHANGE),
        },
        version=1,
    )


def change_value(change: SchemaChange, source: dict[str, Any], ts_ms: int, *, comments: bool) -> dict[str, Any]:
    """Return the value of one record.

    Args:
        change: a schema change of the statement.
        source: the ``source`` block.
        ts_ms: time of processing.
        comments: ``include.schema.comments``.
    """
    return {
        "source": source,
        "ts_ms": ts_ms,
        "databaseName": change.database,
        "schemaName": change.schema,
        "ddl": change.ddl or None,
        "tableChanges": table_changes(change, comments=comments),
    }


def table_changes(change: SchemaChange, *, comments: bool) -> Sequence[dict[str, Any]]:
    """Return the ``tableChanges`` of a schema change: none for a database, one for a table."""
    if change.table_id is None or change.kind in {ChangeKind.DATABASE, ChangeKind.TRUNCATE}:
        return []
    table = None
    if change.kind is not ChangeKind.DROP:
        if change.table is None:
            return []  # the same statement drops it again
        table = _table_value(change.table, comments=comments)
    name = f'"{change.table_id.database}"."{change.table_id.table}"'
    return [{"type": change.kind.value, "id": name, "table": table}]


def _table_value(table: Table, *, comments: bool) -> dict[str, Any]:
    columns = [column.debezium for column in table.columns if column.debezium is not None]
    return {
        "defaultCharsetName": table.debezium.default_charset_name,
        "primaryKeyColumnNames": list(table.debezium.primary_key),
        "columns": [_column_value(column, position, comments=comments) for position, column in enumerate(columns, 1)],
        "comment": table.debezium.comment if comments else None,
    }


def _column_value(column: DebeziumColumn, position: int, *, comments: bool) -> dict[str, Any]:
    return {
        "name": column.name,
        "jdbcType": column.jdbc_type,
        "nativeType": column.native_type,
        "typeName": column.type_name,
        "typeExpression": column.type_expression,
        "charsetName": column.charset_name,
        "length": column.length,
        "scale": column.scale,
        "position": position,
        "optional": column.optional,
        "autoIncremented": column.auto_incremented,
        "generated": column.generated,
        "comment": column.comment if comments else None,
        "defaultValueExpression": column.default_expression,
        "enumValues": list(column.enum_values) or None,
    }
