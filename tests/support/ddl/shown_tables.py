"""Parses the SHOW CREATE TABLE of a model, which must result in the same model except for what the text omits."""

from dataclasses import replace

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Column, DefaultKind, Table
from rowtide.schema_history.server.query_event import QueryEvent, Server
from rowtide.schema_history.structure.show_create import show_create


def shown_again(table: Table, server: Server) -> Table:
    """The table that results from its text, in the form of `comparable`."""
    again = Tables(server)
    again.apply(QueryEvent(show_create(table, server), table.id.database, sql_mode=0))
    (found,) = again
    return comparable(found)


def comparable(table: Table) -> Table:
    """The table without what its text omits, or what has no effect.

    These are constraints and the indexes created for them, storage options, Debezium's view of earlier statements, and
    in MySQL the display width of integers, which it no longer shows.
    """
    indexes = tuple(
        replace(i, generated=False, parts=tuple(replace(part, period=False) for part in i.parts)) for i in table.indexes
    )
    columns = tuple(_column(column) for column in table.columns)
    if table.kind == "BASE TABLE":  # DROP SYSTEM VERSIONING leaves the attributes of columns
        columns = tuple(replace(column, without_system_versioning=False) for column in columns)
    return Table(
        table.id, columns, indexes, table.charset, table.collation, table.comment, "", table.kind, (), table.hidden
    )


def _column(column: Column) -> Column:
    if column.generation is not None:
        column = replace(column, default_kind=DefaultKind.NONE, default=None)
    kind = DefaultKind.EXPRESSION if column.default_kind is DefaultKind.NOW else column.default_kind
    if column.default_kind is DefaultKind.NOW and column.default is None:
        kind = DefaultKind.NULL if column.nullable else DefaultKind.NONE  # dropped, and no longer shown
    if column.nullable and kind is DefaultKind.NONE and column.generation is None:
        kind = DefaultKind.NULL  # DROP DEFAULT is not shown, and both servers read it as DEFAULT NULL
    if column.on_update is not None and (column.default or "").startswith("0000-00-00") and not column.nullable:
        kind, column = DefaultKind.NONE, replace(column, default=None)  # in MariaDB, no default means the zero date
    if column.compressed and column.default == "":
        kind, column = (
            DefaultKind.NONE,
            replace(column, default=None),
        )  # for COMPRESSED, it means the empty text
    width = None if column.data_type.endswith("int") else column.length
    # PAD_CHAR_TO_FULL_LENGTH depends on the session.
    default = column.default.rstrip(" ") if column.default and column.data_type == "char" else column.default
    return replace(column, default_kind=kind, default=default, length=width, debezium=None)
