"""Whether a statement could change one table: for a proof that nothing has, so every doubt counts as yes."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from rowtide.schema_history.ddl.parser import parse
from rowtide.schema_history.ddl.statements import CreateDatabase, DropDatabase, NoStructure, TableName
from rowtide.schema_history.errors import UnparsedDdl
from rowtide.schema_history.model import TableId
from rowtide.schema_history.server.query_event import QueryEvent, Server
from rowtide.schema_history.structure.context import context_of, statement_text


def may_change(event: QueryEvent, table: TableId, server: Server) -> bool:
    """Whether the statement makes, changes, renames or drops the table, or its database, or may do so.

    True as well for a statement that is not understood, and for one that only copies the table's structure.
    """
    context = context_of(event, server)
    try:
        body = parse(statement_text(event, server.flavor), context.dialect).body
    except UnparsedDdl:
        return True
    if isinstance(body, NoStructure):
        return False
    if isinstance(body, DropDatabase | CreateDatabase):
        return _same(body.name, table.database)
    return any(
        _same(name.table, table.table) and _same(name.database or event.database, table.database)
        for name in _names(body)
    )


def _names(part: object) -> Iterator[TableName]:
    """All names of tables in a statement."""
    if isinstance(part, TableName):
        yield part
    elif isinstance(part, tuple):
        for item in part:
            yield from _names(item)
    elif is_dataclass(part):
        for member in fields(part):
            yield from _names(getattr(part, member.name))


def _same(name: str, other: str) -> bool:
    return name.casefold() == other.casefold()
