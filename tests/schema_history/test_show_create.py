"""SHOW CREATE TABLE of a model, read again, is the same model: every table of every recording."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from ddl_corpus import lines, name_of, recordings

from rowtide.schema_history.apply import event_of, tables_of_header
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import Column, DefaultKind, Table
from rowtide.schema_history.query import Flavor, QueryEvent
from rowtide.schema_history.show_create import show_create
from rowtide.schema_history.tables import Tables


def comparable(table: Table) -> Table:
    """The table without what its text does not tell, or what has no meaning.

    That are: constraints, and that an index was made for one of them; options of storage; Debezium's view of earlier
    statements; and of MySQL the display width of integers, which it no longer shows.
    """
    indexes = tuple(replace(index, generated=False) for index in table.indexes)
    columns = tuple(_column(column) for column in table.columns)
    return Table(
        table.id, columns, indexes, table.charset, table.collation, table.comment, "", table.kind, (), table.hidden
    )


def _column(column: Column) -> Column:
    kind = DefaultKind.EXPRESSION if column.default_kind is DefaultKind.NOW else column.default_kind
    if column.default_kind is DefaultKind.NOW and column.default is None:
        kind = DefaultKind.NULL if column.nullable else DefaultKind.NONE  # dropped, and not shown any more
    if column.nullable and kind is DefaultKind.NONE and column.generation is None:
        kind = DefaultKind.NULL  # DROP DEFAULT is not shown, and both servers read it as DEFAULT NULL
    width = None if column.data_type.endswith("int") else column.length
    # PAD_CHAR_TO_FULL_LENGTH is a matter of the session.
    default = column.default.rstrip(" ") if column.default and column.data_type == "char" else column.default
    return replace(column, default_kind=kind, default=default, length=width, form=None)


def changed(path: Path) -> Iterator[tuple[Tables, Table]]:
    """Every table after every statement that changed it."""
    recorded = lines(path)
    header = next(recorded)
    tables = tables_of_header(header, Flavor(header["server"]))
    for record in recorded:
        for entry in record["binlog"]:
            try:
                applied = tables.apply(event_of(entry))
            except SchemaHistoryError:
                continue  # what the binlog does not tell; the corpus test names it
            yield from ((tables, table) for _, table in applied.altered if table is not None)


@pytest.mark.parametrize("path", recordings(), ids=name_of)
def test_a_table_is_what_its_text_says(path: Path) -> None:
    seen: set[tuple[str, str]] = set()
    for tables, table in changed(path):
        if table.kind == "SEQUENCE":
            continue
        text = show_create(table, tables.server)
        *parts, options = text.split("\n")[1:]
        lines_of_it = {(options, part.rstrip(",")) for part in parts} | {(options, "")}
        if lines_of_it <= seen:
            continue  # every column and index was read before, in a table with the same options
        seen |= lines_of_it
        again = Tables(tables.server)
        again.apply(QueryEvent(text, table.id.database, sql_mode=0))
        (found,) = again
        assert comparable(found) == comparable(table), text
