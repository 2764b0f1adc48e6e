"""Names the database of each table in a statement, because messages do not have the session's default database."""

from collections.abc import Iterator, Sequence

from rowtide.schema_history.ddl.lexer import QUOTED, WORD, Dialect, Token, tokenize
from rowtide.schema_history.errors import UnparsedStatement

_BEFORE_NAME = frozenset({"IF", "NOT", "EXISTS"})
_TABLES = frozenset({"TABLE", "TABLES", "SEQUENCE"})
_OBJECTS = _TABLES | {"INDEX"}
"""The kinds of objects that a statement can change: the first of these words in it counts."""
_SECOND = frozenset({"WITH", "CONVERT", "TO"})
"""The words before TABLE in EXCHANGE PARTITION p WITH TABLE, CONVERT TABLE, and CONVERT PARTITION p TO TABLE."""
_NOT_TABLES = frozenset({"COLUMN", "INDEX", "KEY"})
"""The words after RENAME in ALTER TABLE that rename something other than the table."""

_QUERY = frozenset({"(", ")", "SELECT", "TABLE", "VALUES", "WITH"})


def with_database(sql: str, database: str, dialect: Dialect) -> str:
    """Return a statement in which every table has a database.

    Args:
        sql: ALTER, CREATE, DROP, RENAME or TRUNCATE TABLE, or CREATE or DROP INDEX.
        database: the session's default database; empty if there was none.
        dialect: of the statement.
    """
    try:
        tokens = tokenize(sql, dialect)
    except UnparsedStatement:  # the structure was recovered without the statement
        return sql
    prefix, end = f"`{database.replace('`', '``')}`", 0
    made: list[str] = []
    for place in _tables(tokens) if database else ():
        token = tokens[place]
        if token.word == "." or (token.kind in (WORD, QUOTED) and tokens[place + 1].word != "."):
            made += sql[end : token.start], prefix, "" if token.word == "." else "."
            end = token.start
    return "".join((*made, sql[end:]))


def _tables(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield the places of the names of tables, in order; those with a database are the places of the database.

    A name may have a dot before it instead, which means the default database.
    """
    words = [token.word for token in tokens]
    begin = words.index("FOR") + 1 if words[:2] == ["SET", "STATEMENT"] and "FOR" in words else 0
    first = words[begin]
    of_index = next((word for word in words if word in _OBJECTS), "") == "INDEX"
    named = False
    for place, word in enumerate(words[:-1]):
        after = _after_condition(words, place + 1)
        if of_index:
            if word == "ON" and not named:
                named = True
                yield after
        elif word in _TABLES and (not named or words[place - 1] in _SECOND):
            several = not named and first in ("DROP", "RENAME")
            named = True
            yield from _list(words, after) if several else (after,)
            if first == "CREATE":
                yield from _like(words, after)
        elif first == "TRUNCATE" and place == begin and words[place + 1] != "TABLE":
            yield place + 1
        elif word == "REFERENCES":
            yield after
        elif word == "UNION" and first in ("ALTER", "CREATE"):
            yield from _merged(words, place + 1)
        elif word == "RENAME" and first == "ALTER" and words[place + 1] not in _NOT_TABLES:
            yield place + 2 if words[place + 1] in ("TO", "AS", "=") else place + 1


def _after_condition(words: Sequence[str], place: int) -> int:
    """Return the place after IF EXISTS or IF NOT EXISTS."""
    while words[place] in _BEFORE_NAME:
        place += 1
    return place


def _list(words: Sequence[str], place: int) -> Iterator[int]:
    """Yield the names in ``a, b`` of DROP TABLE, and in ``a TO b, c TO d`` of RENAME TABLE."""
    yield place
    for separator in range(place, len(words) - 1):
        if words[separator] in (",", "TO"):
            yield separator + 1


def _like(words: Sequence[str], place: int) -> Iterator[int]:
    """Yield the model of CREATE TABLE name LIKE model, which may be in parentheses."""
    if words[place] == ".":
        place += 2
    else:
        place += 3 if words[place + 1] == "." else 1
    if words[place] == "(":
        place += 1
    if words[place] == "LIKE":
        yield place + 1


def _merged(words: Sequence[str], place: int) -> Iterator[int]:
    """Yield the names in ``UNION=(a, b)`` of a MERGE table, but none in the UNION of a query."""
    place += words[place] == "="
    if words[place] != "(" or words[place + 1] in _QUERY:
        return
    for begin in range(place, len(words) - 1):
        if words[begin] == ")":
            return
        if words[begin] in ("(", ","):
            yield begin + 1
