"""Selects tables by a pattern, and compares their DDL between two points in time."""

import difflib
from collections.abc import Iterator
from fnmatch import fnmatchcase

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table
from rowtide.schema_history.server.query_event import Server
from rowtide.schema_history.structure.show_create import show_create

_WHOLE_TABLE = 10_000
"""Lines of context around a difference: more than any table has."""


def matching_tables(tables: Tables, pattern: str) -> list[Table]:
    """Return the tables whose name ``database.table`` matches a pattern with ``*`` and ``?``, sorted by name."""
    names = [table_id for table_id in tables.names() if fnmatchcase(str(table_id), pattern)]
    found = (tables.table(table_id.database, table_id.table) for table_id in sorted(names, key=str))
    return [table for table in found if table is not None]


def diff_tables(before: Tables, after: Tables, pattern: str, server: Server, labels: tuple[str, str]) -> Iterator[str]:
    """Yield the lines of a unified diff of the tables' DDL.

    Args:
        before: the tables at the first point in time.
        after: the tables at the second one.
        pattern: selects the tables, as in ``matching_tables``.
        server: determines the syntax of the DDL.
        labels: texts of the two points in time, for the headings.
    """
    old, new = ({table.id: table for table in matching_tables(tables, pattern)} for tables in (before, after))
    for table_id in sorted(old.keys() | new.keys(), key=str):
        yield from difflib.unified_diff(
            _ddl_lines(old.get(table_id), server),
            _ddl_lines(new.get(table_id), server),
            f"{table_id} at {labels[0]}",
            f"{table_id} at {labels[1]}",
            lineterm="",
            n=_WHOLE_TABLE,
        )


def _ddl_lines(table: Table | None, server: Server) -> list[str]:
    return [] if table is None else show_create(table, server).split("\n")
