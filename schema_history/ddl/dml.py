"""Finds the tables whose rows a statement changes: INSERT, REPLACE, UPDATE, DELETE, LOAD DATA and LOAD XML.

MariaDB's ANALYZE before such a statement executes it.

The parser of statements ignores them, because they change no structure. The binlog has such a statement if the format
of its session was not ROW.
"""

from collections.abc import Callable

from rowtide.schema_history.ddl.cursor import Cursor, words_of
from rowtide.schema_history.ddl.lexer import END, QUOTED, WORD, Dialect
from rowtide.schema_history.ddl.statements import TableName
from rowtide.schema_history.errors import UnparsedStatement

_MODIFIERS = words_of("LOW_PRIORITY DELAYED HIGH_PRIORITY QUICK IGNORE")
_AFTER_TABLES = words_of("SET WHERE ORDER LIMIT RETURNING ;")
_BETWEEN_TABLES = words_of("JOIN STRAIGHT_JOIN INNER CROSS LEFT RIGHT OUTER NATURAL FULL")
_NO_ALIAS = _BETWEEN_TABLES | _AFTER_TABLES | words_of("ON USING FORCE USE IGNORE FOR")
_QUERIES = words_of("SELECT WITH VALUES TABLE")
_STOPS = _BETWEEN_TABLES | _AFTER_TABLES | {",", ")", "}"}


HasColumn = Callable[[TableName, str], bool]
"""Whether a table may have a column."""


def changed_tables(
    sql: str, dialect: Dialect, has_column: HasColumn = lambda _table, _column: True
) -> tuple[TableName, ...] | None:
    """Return the tables that a statement changes, without those that it only reads.

    Args:
        sql: the statement.
        dialect: of its session.
        has_column: resolves the unqualified columns of an UPDATE.

    Returns:
        The tables; for an unqualified column, all tables that may have it. ``None`` if the statement is of another
        kind or cannot be understood.
    """
    try:
        c = Cursor(sql, dialect)
        return _changed(c, has_column) or None
    except UnparsedStatement:
        return None


def _changed(c: Cursor, has_column: HasColumn) -> tuple[TableName, ...]:
    if c.accept("SET", "STATEMENT"):
        c.skip_until("FOR")
        c.expect("FOR")
    if c.accept("ANALYZE"):
        c.skip_until("INSERT", "REPLACE", "UPDATE", "DELETE", "WITH", "SELECT", "TABLE", "TABLES")
    if c.accept("WITH"):
        c.skip_until("UPDATE", "DELETE", "INSERT", "REPLACE")
    match c.accept_one("INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD"):
        case "INSERT" | "REPLACE":
            _skip_modifiers(c)
            c.accept("INTO")
            return (c.table_name(),)
        case "LOAD":
            c.skip_until("INTO")
            c.expect("INTO", "TABLE")
            return (c.table_name(),)
        case "UPDATE":
            return _updated(c, has_column)
        case "DELETE":
            return _deleted(c)
    return ()


def _skip_modifiers(c: Cursor) -> None:
    while c.word in _MODIFIERS:
        c.at += 1


def _updated(c: Cursor, has_column: HasColumn) -> tuple[TableName, ...]:
    _skip_modifiers(c)
    tables = _references(c)
    c.expect("SET")
    found: list[TableName] = []
    while True:
        column = [c.name()]
        while c.accept("."):
            column.append(c.name())
        if len(column) == 1:
            found += [table for table, _ in tables if has_column(table, column[0])]
        else:
            found.append(_resolved(TableName(column[-3] if len(column) > 2 else None, column[-2]), tables))
        c.skip_until(",", "WHERE", "ORDER", "LIMIT", "RETURNING")
        if not c.accept(","):
            return tuple(dict.fromkeys(found))


def _deleted(c: Cursor) -> tuple[TableName, ...]:
    _skip_modifiers(c)
    c.accept("HISTORY")
    before_from = not c.accept("FROM")
    names = [_target(c)]
    while c.accept(","):
        names.append(_target(c))
    if before_from:
        c.expect("FROM")
    elif not c.accept("USING"):
        return tuple(names)  # of a single table
    tables = _references(c)
    return tuple(dict.fromkeys(_resolved(name, tables) for name in names))


def _target(c: Cursor) -> TableName:
    """Return the name of a table, with or without ``.*`` after it."""
    first, second = c.name(), None
    if c.accept(".") and not c.accept("*"):
        second = c.name()
        if c.accept("."):
            c.expect("*")
    return TableName(None, first) if second is None else TableName(first, second)


_Tables = list[tuple[TableName, str | None]]
"""Tables with their aliases."""


def _references(c: Cursor) -> _Tables:
    """Return the tables of a list of references, without those of subqueries."""
    tables: _Tables = []
    expected = True  # a table comes next, not a condition
    while c.token.kind is not END and c.word not in _AFTER_TABLES:
        if c.word in _BETWEEN_TABLES or c.word == ",":
            c.at += 1
            expected = True
        elif expected and c.word == "(" and c.ahead() not in _QUERIES:
            c.at += 1
        elif expected and c.accept("{"):
            c.accept("OJ")
        elif c.word == "(":
            c.skip_parentheses()
            expected = False
        elif expected and c.is_name():
            table = c.table_name()
            if c.word != "(":  # JSON_TABLE(…), LATERAL (…)
                tables.append((table, _alias(c)))
            expected = False
        else:
            c.at += 1  # ON, USING, a hint, or the end of a nested list
            while c.token.kind is not END and c.word not in _STOPS:
                c.skip_parentheses() if c.word == "(" else c.advance()
    return tables


def _alias(c: Cursor) -> str | None:
    if c.accept("PARTITION"):
        c.skip_parentheses()
    if c.accept("AS"):
        return c.name_or_string()
    if c.token.kind is QUOTED or (c.token.kind is WORD and c.word not in _NO_ALIAS):
        return c.name()
    return None


def _resolved(name: TableName, tables: _Tables) -> TableName:
    """Return the table that a name or an alias means."""
    for table, alias in tables:
        if name.database is None and alias is not None and alias.lower() == name.table.lower():
            return table
    for table, alias in tables:
        if alias is None and table.table.lower() == name.table.lower() and name.database in (None, table.database):
            return table
    return name
