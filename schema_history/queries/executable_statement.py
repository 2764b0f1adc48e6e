"""Rewrites statements so that they can be executed in another session, with different settings.

The session needs ``sql_mode`` of :func:`required_mode`, the character set utf8mb4, and ``foreign_key_checks=0``.
"""

from rowtide.schema_history.ddl.lexer import NATIONAL, QUOTED, STRING, Dialect, Token, tokenize
from rowtide.schema_history.errors import UnparsedStatement
from rowtide.schema_history.server.query_event import Flavor

_MODES = {
    0: "REAL_AS_FLOAT",
    1: "PIPES_AS_CONCAT",
    3: "IGNORE_SPACE",
    6: "NO_UNSIGNED_SUBTRACTION",
    25: "ALLOW_INVALID_DATES",
    29: "HIGH_NOT_PRECEDENCE",
    31: "PAD_CHAR_TO_FULL_LENGTH",
}
_MODES_OF = {
    Flavor.MYSQL: {32: "TIME_TRUNCATE_FRACTIONAL"},
    Flavor.MARIADB: {
        8: "POSTGRESQL",
        9: "ORACLE",
        10: "MSSQL",
        11: "DB2",
        12: "MAXDB",
        32: "EMPTY_STRING_IS_NULL",
        34: "TIME_ROUND_FRACTIONAL",
    },
}
"""The modes that give a statement another meaning, by their bits. Quotes and backslashes are written for all modes."""


def executable(sql: str, dialect: Dialect) -> str:
    """Return a statement without the parts that only its own session or the server understands.

    Names in double quotes or brackets get backticks, backslashes that are not escapes are doubled, and ``START
    TRANSACTION`` is removed, which MySQL appends to ``CREATE TABLE ... SELECT`` in the binlog: it makes other
    statements of the session fail (error 3977).

    Args:
        sql: the statement; one that cannot be split into tokens is returned unchanged.
        dialect: of its session.
    """
    try:
        tokens = tokenize(sql, dialect)
    except UnparsedStatement:
        return sql
    made: list[str] = []
    end = 0
    for token in tokens:
        text = _text(token, sql[token.start : token.end], dialect)
        if text is not None:
            made += sql[end : token.start], text
            end = token.end
    words = [token.word for token in tokens if token.word != ";"]
    if words[0] == "CREATE" and words[-3:] == ["START", "TRANSACTION", ""]:
        start = next(token.start for token in reversed(tokens) if token.word == "START")
        return "".join((*made, sql[end:start].rstrip()))
    return "".join((*made, sql[end:]))


def _text(token: Token, text: str, dialect: Dialect) -> str | None:
    """Return another text for a token; ``None`` for its own."""
    if token.kind == QUOTED and text[0] != "`":
        return f"`{token.value.replace('`', '``')}`"
    if token.kind in (STRING, NATIONAL) and not dialect.backslash_escapes and "\\" in text:
        return text.replace("\\", "\\\\")
    return None


def required_mode(dialect: Dialect) -> str:
    """Return the ``sql_mode`` that the statement needs in another session, usually none."""
    modes = {**_MODES, **_MODES_OF[dialect.flavor]}
    return ",".join(name for bit, name in modes.items() if dialect.sql_mode >> bit & 1)
