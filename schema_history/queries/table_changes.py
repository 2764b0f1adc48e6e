"""Which statements changed a table, and which may have changed it."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from rowtide.schema_history.ddl.parser import parse
from rowtide.schema_history.ddl.statements import CreateDatabase, DropDatabase, NoStructure, TableName
from rowtide.schema_history.errors import UnparsedDdl
from rowtide.schema_history.model import TableId
from rowtide.schema_history.position.binlog_position import BinlogPosition
from rowtide.schema_history.server.query_event import QueryEvent, Server
from rowtide.schema_history.structure.context import context_of, statement_text


@dataclass(frozen=True, slots=True)
class TableChange:
    """A statement that changed tables.

    Attributes:
        position: its position in the binlog.
        ddl: its text.
        tables: the tables that it changed.
        renamed: old and new name of each table that it renamed.
    """

    position: BinlogPosition
    ddl: str
    tables: frozenset[TableId]
    renamed: tuple[tuple[TableId, TableId], ...] = ()


def changes_of_table(changes: Iterable[TableChange], table_id: TableId) -> list[TableChange]:
    """The changes of a table, under its former names too, and those of earlier tables of the same name."""
    logs: dict[TableId, list[TableChange]] = {}
    for change in changes:
        for old, new in change.renamed:
            logs[new] = [*logs.get(new, []), *logs.pop(old, [])]
        for changed in change.tables - {old for old, _ in change.renamed}:
            logs.setdefault(changed, []).append(change)
    return logs.get(table_id, [])


def may_change(event: QueryEvent, table: TableId, server: Server) -> bool:
    """Whether a statement creates, changes, renames or drops a table or its database, or may do so.

    The answer serves to prove that a table did not change, so it is true in case of doubt: for a statement that cannot
    be parsed, and for one that only copies the table's structure.
    """
    return may_change_any(event, (table,), server)


def may_change_any(event: QueryEvent, tables: Collection[TableId], server: Server) -> bool:
    """Whether :func:`may_change` is true for one of the tables."""
    context = context_of(event, server)
    try:
        body = parse(statement_text(event, server.flavor), context.dialect).body
    except UnparsedDdl:
        return True
    if isinstance(body, NoStructure):
        return False
    if isinstance(body, DropDatabase | CreateDatabase):
        return any(body.name.casefold() == table.database.casefold() for table in tables)
    names = {((name.database or event.database).casefold(), name.table.casefold()) for name in _table_names(body)}
    return any((table.database.casefold(), table.table.casefold()) in names for table in tables)


def _table_names(part: object) -> Iterator[TableName]:
    """All names of tables in a part of a statement."""
    if isinstance(part, TableName):
        yield part
    elif isinstance(part, tuple):
        for item in part:
            yield from _table_names(item)
