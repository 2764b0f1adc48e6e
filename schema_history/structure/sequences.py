"""MariaDB's sequences: tables of eight columns."""

from dataclasses import replace

from rowtide.schema_history.ddl.statements import ColumnDef, CreateSequence, DataType
from rowtide.schema_history.model import Column, Database, DefaultKind, Table, TableId
from rowtide.schema_history.structure.columns import build_column
from rowtide.schema_history.structure.context import Context
from rowtide.schema_history.structure.tables import charset_and_collation, inherited_charset

_BIGINT = DataType(("BIGINT",), ("21",))
_VALUES = ("next_not_cached_value", "minimum_value", "maximum_value", "start_value", "increment")
_COMMENTS = {
    "start_value": "start value when sequences is created or value if RESTART is used",
    "increment": "increment value",
    "cycle_option": "0 if no cycles are allowed, 1 if the sequence should begin a new cycle "
    "when maximum_value is passed",
    "cycle_count": "How many cycles have been done",
}


def build_sequence(table_id: TableId, statement: CreateSequence, database: Database | None, ctx: Context) -> Table:
    """Return the table after CREATE SEQUENCE."""
    charset, collation = charset_and_collation(statement.options, ctx, *inherited_charset(database, ctx))
    return Table(
        id=table_id,
        columns=_columns(statement.type or _BIGINT, ctx),
        charset=charset,
        collation=collation,
        comment=statement.options.comment or "",
        engine=statement.options.engine or "",
        kind="SEQUENCE",
    )


def alter_sequence(table: Table, data_type: DataType, ctx: Context) -> Table:
    """Return the table after ALTER SEQUENCE ... AS type."""
    return replace(table, columns=_columns(data_type, ctx))


def _columns(data_type: DataType, ctx: Context) -> tuple[Column, ...]:
    if not data_type.arguments:
        data_type = data_type._replace(arguments=(str(_WIDTHS[data_type.words[-1].lower()]),))
    types = dict.fromkeys(_VALUES, data_type)
    types["increment"] = _BIGINT
    types["cache_size"] = DataType(("BIGINT",), ("21",), options=("UNSIGNED",))
    types["cycle_option"] = DataType(("TINYINT",), ("1",), options=("UNSIGNED",))
    types["cycle_count"] = _BIGINT
    columns = []
    for name, written in types.items():
        column = build_column(ColumnDef(name, written), ctx, "utf8mb4", "utf8mb4_general_ci")
        comment = _COMMENTS.get(name, "")
        columns.append(replace(column, nullable=False, default_kind=DefaultKind.NONE, comment=comment))
    return tuple(columns)


_WIDTHS = {"tinyint": 5, "smallint": 7, "mediumint": 9, "int": 12, "integer": 12, "bigint": 21}
