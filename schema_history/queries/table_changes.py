"""Finds the statements that changed a table, or may have changed it."""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from rowtide.schema_history.ddl.parser import parse
from rowtide.schema_history.ddl.statements import CreateDatabase, DropDatabase, NoStructure, TableName
from rowtide.schema_history.errors import UnparsedStatement
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
    """Return the changes of a table, also under its former names, and those of earlier tables with the same name."""
    logs: dict[TableId, list[TableChange]] = {}
    for change in changes:
        for old, new in change.renamed:
            logs[new] = [*logs.get(new, []), *logs.pop(old, [])]
        for changed in change.tables - {old for old, _ in change.renamed}:
            logs.setdefault(changed, []).append(change)
    return logs.get(table_id, [])


def may_change(event: QueryEvent, table: TableId, server: Server) -> bool:
    """Return whether a statement creates, changes, renames or drops a table or its database, or may do so.

    The result is used to prove that a table did not change, so it is true in case of doubt: for a statement that cannot
    be parsed and has the table's name somewhere, and for one that only copies the table's structure.
    """
    return may_change_any(event, (table,), server)


def may_change_any(event: QueryEvent, tables: Collection[TableId], server: Server) -> bool:
    """Return whether :func:`may_change` is true for one of the tables."""
    context, sql = context_of(event, server), statement_text(event, server.flavor)
    try:
        body = parse(sql, context.dialect).body
    except UnparsedStatement:
        words = Words(sql, event.database)
        return any(map(words.may_name, tables))
    if isinstance(body, NoStructure):
        return False
    if isinstance(body, DropDatabase | CreateDatabase):
        return any(body.name.casefold() == table.database.casefold() for table in tables)
    names = {((name.database or event.database).casefold(), name.table.casefold()) for name in _table_names(body)}
    return any((table.database.casefold(), table.table.casefold()) in names for table in tables)


class Words:
    """The words of a statement that cannot be parsed: it does not change tables that it does not name.

    Args:
        sql: the statement.
        database: its default database.
    """

    def __init__(self, sql: str, database: str) -> None:
        text = sql.casefold()
        quoted = {piece for quote in '`"' for piece in text.split(quote)}
        self._words = {*re.findall(r"[\w$]+", text), *quoted}
        self._databases = {database.casefold(), *re.findall(r"([\w$]+)\s*\.", text), *quoted}

    def may_name(self, table: TableId) -> bool:
        """Return whether the statement may concern a table or its database."""
        if not self._has(table.database) and table.database.casefold() not in self._databases:
            return False
        return self._has(table.table) or not self._words.isdisjoint(("database", "schema"))

    def candidates(self) -> Iterator[TableId]:
        """Yield all possible table names in it."""
        return (TableId(database, word) for database in self._databases for word in self._words)

    def _has(self, name: str) -> bool:
        return name.casefold() in self._words or "`" in name or '"' in name


def _table_names(part: object) -> Iterator[TableName]:
    """Yield all names of tables in a part of a statement."""
    if isinstance(part, TableName):
        yield part
    elif isinstance(part, tuple):
        for item in part:
            yield from _table_names(item)
