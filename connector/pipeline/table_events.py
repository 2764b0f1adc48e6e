"""Turns the result of a statement into events of the captured tables as a whole."""

import re
from collections.abc import Callable, Iterator

from rowtide.connector.records.table_events import UNKNOWN, TableEvent, added_value
from rowtide.envelope.table import TableSchema
from rowtide.schema_history.catalog.changes import StatementResult
from rowtide.schema_history.model import Column, Table, TableId
from rowtide.topics.filters import CapturedNames

BRINGS_ROWS = re.compile(
    r"\b(?:EXCHANGE\s+PARTITION|CONVERT\s+(?:TABLE|PARTITION)|IMPORT\s+(?:PARTITION\b.*)?TABLESPACE)\b",
    re.IGNORECASE | re.DOTALL,
)
"""ALTER TABLE that brings rows into a table, which have no row events."""
_REMOVES_ROWS = re.compile(
    r"\b(?:(?:DROP|TRUNCATE)\s+PARTITION|DISCARD\s+(?:PARTITION\b.*)?TABLESPACE"
    r"|ALTER\s+(?:ONLINE\s+)?IGNORE\s+TABLE(?=\b.*\b(?:UNIQUE|PRIMARY)\b))\b",
    re.IGNORECASE | re.DOTALL,
)
"""ALTER TABLE that removes rows. With IGNORE, MariaDB removes those that a new unique key does not allow."""


def moved_rows(statement_class: str, text: str) -> str | None:
    """Return the words of a statement that moves rows into or out of a table without row events, if any."""
    found = BRINGS_ROWS.search(text) or _REMOVES_ROWS.search(text) if statement_class == "alter table" else None
    return None if found is None else " ".join(found[0].upper().split())


def table_events(
    applied: StatementResult,
    names: CapturedNames,
    records: Callable[[Table], TableSchema],
    seconds: int,
    moves_rows: str | None,
) -> Iterator[TableEvent]:
    """Yield the effects of a statement on captured tables.

    Args:
        applied: the result of the statement.
        names: which tables are captured.
        records: returns the schemas of a table's records.
        seconds: the time of the statement, since the epoch.
        moves_rows: the words of the statement by which rows come into a table or leave it without row events.
    """
    before = {table: known for table, known in applied.before if known is not None}
    now = dict(applied.altered)
    renames = list(applied.renamed())
    captured = {table: names.captures(table.database, table.table) for pair in renames for table in pair}
    # The rows of an online schema change's helper table are those of the table that it replaces.
    swapped = {new for old, new in renames if captured[new] and names.leaves_out(old.database, old.table)}
    moved: dict[TableId, TableId] = {}
    for old, new in renames:
        moved[new] = moved.pop(old, old)
        if new in swapped:
            continue
        if captured[old] and captured[new]:
            yield TableEvent("rename", new, former=old)
        elif captured[old] and old not in swapped:
            yield TableEvent("drop", old)
        elif captured[new]:
            yield TableEvent(
                "refuse", new, reason=f"{old}, which is not captured, was renamed to it: its rows are not known"
            )
    for table, structure in applied.altered:
        if not names.captures(table.database, table.table):
            continue
        if structure is None:
            if table not in {old for old, _ in renames}:
                yield TableEvent("drop", table)
            continue
        if moves_rows is not None:
            yield TableEvent("refuse", table, reason=f"{moves_rows} has moved or removed rows without row events")
        columns = _columns(records(structure))
        if applied.statement_class.startswith("create table"):
            yield TableEvent("create", table, after=columns)
            continue
        former = before.get(table if table in swapped else moved.get(table, table))
        earlier = () if former is None else _columns(records(former))
        renamed = [(old, new) for at, old, new in applied.renamed_columns if at == table]
        gone = [old for old, _ in renamed] + [name for at, name in applied.dropped_columns if at == table]
        known = {column.name.lower() for column in earlier} - {name.lower() for name in gone}
        known |= {new.lower() for _, new in renamed}
        values = _values(records(now[table] or structure), known, seconds)
        if table in swapped and not known <= {column.name.lower() for column in columns}:
            values = dict.fromkeys(values, UNKNOWN)  # one of them may be the column that is missing, renamed
        yield TableEvent("alter", table, before=earlier, after=columns, renamed=renamed, values=values)


def _columns(schema: TableSchema) -> tuple[Column, ...]:
    return tuple(column.column for column in schema.columns if column.in_value)


def _values(schema: TableSchema, known: set[str], seconds: int) -> dict[str, object]:
    """Return the values of the columns that are not known, in the rows that exist."""
    return {
        one.column.name: UNKNOWN if one.mapper or one.type.is_custom else added_value(one.column, seconds)
        for one in schema.columns
        if one.in_value and one.column.name.lower() not in known
    }
