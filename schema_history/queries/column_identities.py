"""The columns of a table at each of its structures, with the same number for a column under all of its names. Pure."""

from collections.abc import Iterable, Mapping

from rowtide.schema_history.catalog.changes import ChangeKind
from rowtide.schema_history.ddl.statements import (
    AddColumn,
    AlterTable,
    ChangeColumn,
    CreateTable,
    CreateTableLike,
    DropColumn,
    RenameColumn,
)
from rowtide.schema_history.model import TableId
from rowtide.schema_history.queries.column_changes import statement_of
from rowtide.schema_history.server.query_event import Server
from rowtide.schema_history.store.history_record import HistoryRecord, RecordedTable

Identities = Mapping[str, int]
"""The number of each column, by its name, in the order of the table."""


def column_identities(
    records: Iterable[HistoryRecord], table: TableId, server: Server
) -> list[tuple[RecordedTable, Identities]]:
    """Return the structures of a table, oldest first, with the identities of their columns.

    A column keeps its number when it is renamed, moved or gets another type. A column that is dropped and added again
    has another number. The list begins where the history has the table continuously: after it was created, renamed from
    another name, or described by a snapshot, and after a statement that is not understood.

    Args:
        records: the schema history.
        table: its name.
        server: determines how statements are parsed.
    """
    found: list[tuple[RecordedTable, Identities]] = []
    last = 0
    for record in records:
        for one in record.tables:
            if one.id != table:
                if one.previous_id == table:
                    found.clear()
                continue
            known = _kept(record, one, found[-1][1], server) if found else None
            if known is None:
                found.clear()
            if one.kind is ChangeKind.DROP:
                continue
            columns: dict[str, int] = {}
            for column in one.columns:
                number = (known or {}).get(column.name.lower())
                if number is None:
                    number = last = last + 1
                columns[column.name] = number
            found.append((one, columns))
    return found


def ambiguous_names(structures: Iterable[Identities]) -> set[str]:
    """Return the names that have meant several columns, and all names of renamed columns."""
    names: dict[int, dict[str, str]] = {}
    numbers: dict[str, set[int]] = {}
    for columns in structures:
        for name, number in columns.items():
            names.setdefault(number, {})[name.lower()] = name
            numbers.setdefault(name.lower(), set()).add(number)
    return {
        name for found in names.values() for lower, name in found.items() if len(found) > 1 or len(numbers[lower]) > 1
    }


def _kept(record: HistoryRecord, one: RecordedTable, before: Identities, server: Server) -> dict[str, int] | None:
    """Return the columns that a statement keeps, by their new names in lower case; ``None`` if unknown."""
    if one.kind is ChangeKind.DROP or one.previous_id not in (None, one.id) or record.position.get("snapshot"):
        return None
    names = {name.lower(): number for name, number in before.items()}
    body = statement_of(record, server)
    if isinstance(body, CreateTable | CreateTableLike):
        return names if body.if_not_exists and not body.or_replace else None
    if isinstance(body, AlterTable):
        same = (body.name.database or record.database, body.name.table)
        is_same = [part.lower() for part in same] == [one.id.database.lower(), one.id.table.lower()]
        return _altered(body, names) if is_same else None
    return names if body is not None and {column.name.lower() for column in one.columns} == set(names) else None


def _altered(body: AlterTable, before: Mapping[str, int]) -> dict[str, int] | None:
    """Return the columns that ALTER TABLE keeps. All of its actions refer to the column names before it."""
    kept, moved, added = dict(before), dict[str, int](), set[str]()
    for action in body.actions:
        match action:
            case DropColumn(name=name):
                kept.pop(name.lower(), None)
            case RenameColumn(old=old, new=new) if old.lower() in before:
                moved[new.lower()] = before[old.lower()]
                kept.pop(old.lower(), None)
            case ChangeColumn(old=old) if old.lower() in before:
                moved[action.column.name.lower()] = before[old.lower()]
                kept.pop(old.lower(), None)
            case ChangeColumn(modify=False, if_exists=False):  # of MariaDB: a column that the statement adds
                return None
            case AddColumn() if not (action.if_not_exists and action.column.name.lower() in before):
                added.add(action.column.name.lower())
            case _:
                pass
    return {name: number for name, number in (kept | moved).items() if name in moved or name not in added}
