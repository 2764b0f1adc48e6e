"""Parses indexes and constraints in CREATE TABLE, ALTER TABLE and CREATE INDEX."""

from rowtide.schema_history.ddl.columns import references
from rowtide.schema_history.ddl.cursor import Cursor
from rowtide.schema_history.ddl.lexer import OPERATOR, QUOTED, WORD
from rowtide.schema_history.ddl.statements import CheckDef, ForeignKeyDef, IndexDef, KeyPartDef, PeriodDef

_KINDS = {"FULLTEXT": "fulltext", "SPATIAL": "spatial", "VECTOR": "vector"}
_BEGINNINGS = frozenset(("PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK", "CONSTRAINT"))


def is_key(c: Cursor) -> bool:
    """Return whether an index or constraint comes next, and not a column."""
    if c.word in _BEGINNINGS:
        return True
    if c.word == "PERIOD":
        return c.ahead() == "FOR"
    return c.word == "VECTOR" and c.ahead() in ("KEY", "INDEX")


def parse_key(c: Cursor) -> IndexDef | ForeignKeyDef | CheckDef | PeriodDef:
    """Parse an index or a constraint."""
    if c.accept("PERIOD"):
        return _period(c)
    name, if_not_exists = None, False
    if c.accept("CONSTRAINT"):
        if_not_exists = accept_if_not_exists(c)
        if c.word not in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK") or (c.word == "CHECK" and c.ahead() != "("):
            name = c.name()
    if c.accept("FOREIGN"):
        c.expect("KEY")
        if_not_exists = accept_if_not_exists(c) or if_not_exists
        index = None if c.word == "(" else c.name()
        columns = tuple(part.column for part in key_parts(c))
        return ForeignKeyDef(name, index, columns, references(c), if_not_exists)
    if c.accept("CHECK"):
        expression = c.parenthesized().text
        c.accept("NOT", "ENFORCED") or c.accept("ENFORCED")
        return CheckDef(name, expression, if_not_exists)
    return _index(c, name, if_not_exists)


def _period(c: Cursor) -> PeriodDef:
    c.expect("FOR")
    accept_if_not_exists(c)
    name = c.name()
    c.expect("(")
    start = c.column_name()
    c.expect(",")
    end = c.column_name()
    c.expect(")")
    return PeriodDef(name, start, end)


def accept_if_not_exists(c: Cursor) -> bool:
    """Consume IF NOT EXISTS, if it comes next."""
    return c.accept("IF", "NOT", "EXISTS")


def accept_if_exists(c: Cursor) -> bool:
    """Consume IF EXISTS, if it comes next."""
    return c.accept("IF", "EXISTS")


def _index(c: Cursor, constraint: str | None, if_not_exists: bool) -> IndexDef:
    if c.accept("PRIMARY"):
        c.expect("KEY")
        kind = "primary"
    elif c.accept("UNIQUE"):
        c.accept("KEY") or c.accept("INDEX")
        kind = "unique"
    elif word := c.accept_one(*_KINDS):
        c.accept("KEY") or c.accept("INDEX")
        kind = _KINDS[word]
    else:
        c.accept_one("KEY", "INDEX") or c.fail("an index")
        kind = "key"
    if_not_exists = accept_if_not_exists(c) or if_not_exists
    name = None
    if c.is_name() and not (c.word in ("USING", "TYPE") and c.ahead() != "("):
        name = c.name()
    return index_body(c, kind, name or constraint, if_not_exists)


def index_body(c: Cursor, kind: str, name: str | None, if_not_exists: bool = False) -> IndexDef:
    """Parse an index after its name: its type, its parts and its options."""
    hashed = _index_type(c)
    parts = key_parts(c)
    while True:
        if c.word in ("USING", "TYPE"):
            hashed = _index_type(c)
        elif not _index_option(c):
            return IndexDef(kind, name, parts, if_not_exists, hashed)


def _index_type(c: Cursor) -> bool:
    if c.accept_one("USING", "TYPE"):
        return c.advance().word == "HASH"
    return False


def _index_option(c: Cursor) -> bool:
    if c.accept("WITH", "PARSER"):
        c.name()
    elif c.accept_one("VISIBLE", "INVISIBLE", "IGNORED") or c.accept("NOT", "IGNORED"):
        pass
    elif c.accept_one("COMMENT", "KEY_BLOCK_SIZE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "CLUSTERING"):
        c.accept("=")
        c.advance()
    elif c.token.kind in (WORD, QUOTED) and c.ahead() == "=":
        c.at += 2
        c.advance()
    else:
        return False
    return True


def key_parts(c: Cursor) -> tuple[KeyPartDef, ...]:
    """Parse the parts of an index."""
    c.expect("(")
    parts = []
    while True:
        if c.word == "(":
            expression, column, length = c.parenthesized().text, "", None
        else:
            expression, column, length = None, c.column_name(), None
            if c.accept("("):
                length = int(c.number())
                c.expect(")")
        order = c.accept_one("ASC", "DESC")
        without_overlaps = c.accept("WITHOUT", "OVERLAPS")
        parts.append(KeyPartDef(column, length, expression, order == "DESC", without_overlaps))
        if not c.accept(","):
            break
    if c.token.kind is not OPERATOR:
        c.fail(")")
    c.expect(")")
    return tuple(parts)
