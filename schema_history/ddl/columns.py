"""Parses column definitions: a name, a type, and attributes in any order."""

from rowtide.schema_history.ddl.cursor import Cursor
from rowtide.schema_history.ddl.lexer import BITS, HEX, NATIONAL, NUMBER, OPERATOR, QUOTED, STRING, WORD
from rowtide.schema_history.ddl.statements import (
    Attribute,
    CheckDef,
    ColumnDef,
    DataType,
    Default,
    Expression,
    ForeignKeyDef,
    Literal,
    Now,
    ReferenceDef,
)
from rowtide.schema_history.ddl.types import parse_type
from rowtide.schema_history.server.query_event import Flavor

NOW_WORDS = frozenset(("NOW", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"))
_ODBC_DATES = {"D": "date", "T": "time", "TS": "timestamp"}


def parse_column(c: Cursor) -> ColumnDef:
    """Parse the definition of a column, with its name."""
    name = c.column_name()
    attributes: list[Attribute] = []
    if c.dialect.flavor is Flavor.MARIADB and c.word in ("GENERATED", "AS") and _row_column(c):
        return ColumnDef(name, DataType(("TIMESTAMP",), ("6",)), (Attribute("ROW", _row(c)),))
    data_type = parse_type(c)
    while True:
        attribute = _attribute(c)
        if attribute is None:
            return ColumnDef(name, data_type, tuple(attributes))
        attributes.append(attribute)


def _row_column(c: Cursor) -> bool:
    at = c.at
    matches = (c.accept("GENERATED", "ALWAYS") or True) and c.accept("AS", "ROW")
    c.at = at
    return matches


def _row(c: Cursor) -> str:
    c.accept("GENERATED", "ALWAYS")
    c.expect("AS", "ROW")
    return c.accept_one("START", "END") or c.fail("START or END")


def _attribute(c: Cursor) -> Attribute | None:
    word = c.word
    reader = _ATTRIBUTES.get(word)
    if reader is not None and c.token.kind is WORD:
        return reader(c)
    if c.token.kind in (WORD, QUOTED) and c.ahead() == "=" and c.dialect.flavor is Flavor.MARIADB:
        c.at += 2  # an attribute of a storage engine
        c.advance()
        return Attribute("ENGINE OPTION")
    return None


def _null(c: Cursor) -> Attribute:
    c.at += 1
    return Attribute("NULL")


def _not(c: Cursor) -> Attribute:
    c.at += 1
    if c.accept("NULL"):
        if c.dialect.oracle or c.dialect.flavor is Flavor.MARIADB:
            c.accept("ENABLE")
        return Attribute("NOT NULL")
    if c.accept("SECONDARY"):
        return Attribute("NOT SECONDARY")
    c.expect("ENFORCED")
    return Attribute("ENFORCED")


def _default(c: Cursor) -> Attribute:
    c.at += 1
    return Attribute("DEFAULT", parse_default(c))


def _on(c: Cursor) -> Attribute:
    c.expect("ON", "UPDATE")
    now = accept_now(c)
    if now is None:
        c.fail("CURRENT_TIMESTAMP")
    return Attribute("ON UPDATE", now)


def _key(c: Cursor) -> Attribute:
    if c.accept("UNIQUE"):
        c.accept("KEY") or c.accept("INDEX")
        return Attribute("UNIQUE")
    c.accept("PRIMARY")
    c.expect("KEY")
    return Attribute("PRIMARY")


def _comment(c: Cursor) -> Attribute:
    c.at += 1
    c.accept("=")
    first = c.at
    text = c.string()
    return Attribute("COMMENT", text, c.text_from(first))


def _collate(c: Cursor) -> Attribute:
    c.at += 1
    c.accept("=")
    first = c.at
    name = "binary" if c.accept("BINARY") else c.name_or_string()
    return Attribute("COLLATE", name, c.text_from(first))


def _word_value(c: Cursor) -> Attribute:
    kind = c.advance().word
    c.accept("=")
    if c.token.kind is OPERATOR:
        c.fail("a value")
    c.advance()
    return Attribute(kind)


def _srid(c: Cursor) -> Attribute:
    c.at += 1
    if c.accept("="):
        pass
    return Attribute("SRID", int(c.number()))


def _flag(c: Cursor) -> Attribute:
    return Attribute(c.advance().word)


def _compressed(c: Cursor) -> Attribute:
    c.at += 1
    if c.accept("="):
        c.advance()
    return Attribute("COMPRESSED")


def _serial(c: Cursor) -> Attribute:
    c.expect("SERIAL", "DEFAULT", "VALUE")
    return Attribute("SERIAL DEFAULT VALUE")


def _generated(c: Cursor) -> Attribute:
    if c.accept("GENERATED"):
        c.expect("ALWAYS")
    c.expect("AS")
    if c.accept("ROW"):
        return Attribute("ROW", c.accept_one("START", "END") or c.fail("START or END"))
    expression = c.parenthesized()
    stored = c.accept_one("VIRTUAL", "STORED", "PERSISTENT")
    return Attribute("STORED" if stored in ("STORED", "PERSISTENT") else "VIRTUAL", expression)


def _check(c: Cursor) -> Attribute:
    name = None
    if c.accept("CONSTRAINT") and c.word != "CHECK":
        name = c.name()
    c.expect("CHECK")
    return Attribute("CHECK", CheckDef(name, c.parenthesized().text))


def _references(c: Cursor) -> Attribute:
    return Attribute("REFERENCES", ForeignKeyDef(None, None, (), references(c)))


def _versioning(c: Cursor) -> Attribute:
    kind = c.advance().word
    c.expect("SYSTEM", "VERSIONING")
    return Attribute(f"{kind} SYSTEM VERSIONING")


def references(c: Cursor) -> ReferenceDef:
    """Parse REFERENCES and its clauses."""
    c.expect("REFERENCES")
    table = c.table_name()
    columns = _referenced_columns(c) if c.word == "(" else ()
    actions = {"DELETE": "", "UPDATE": ""}
    while True:
        if c.accept("MATCH"):
            c.advance()
        elif c.word == "ON" and (event := c.ahead()) in actions:
            c.at += 2
            actions[event] = _action(c)
        else:
            return ReferenceDef(table, columns, actions["DELETE"], actions["UPDATE"])


def _referenced_columns(c: Cursor) -> tuple[str, ...]:
    c.expect("(")
    names = []
    while True:
        names.append(c.column_name())
        if c.word == "(":
            c.skip_parentheses()
        c.accept_one("ASC", "DESC")
        if not c.accept(","):
            c.expect(")")
            return tuple(names)


def _action(c: Cursor) -> str:
    for words in (("SET", "NULL"), ("SET", "DEFAULT"), ("NO", "ACTION")):
        if c.accept(*words):
            return " ".join(words)
    return c.accept_one("RESTRICT", "CASCADE") or c.fail("an action")


_ATTRIBUTES = {
    "NULL": _null,
    "NOT": _not,
    "DEFAULT": _default,
    "ON": _on,
    "AUTO_INCREMENT": _flag,
    "SERIAL": _serial,
    "PRIMARY": _key,
    "KEY": _key,
    "UNIQUE": _key,
    "COMMENT": _comment,
    "COLLATE": _collate,
    "COLUMN_FORMAT": _word_value,
    "STORAGE": _word_value,
    "ENGINE_ATTRIBUTE": _word_value,
    "SECONDARY_ENGINE_ATTRIBUTE": _word_value,
    "SRID": _srid,
    "REF_SYSTEM_ID": _srid,
    "VISIBLE": _flag,
    "INVISIBLE": _flag,
    "ENFORCED": _flag,
    "COMPRESSED": _compressed,
    "GENERATED": _generated,
    "AS": _generated,
    "CONSTRAINT": _check,
    "CHECK": _check,
    "REFERENCES": _references,
    "WITH": _versioning,
    "WITHOUT": _versioning,
}


def accept_now(c: Cursor) -> Now | None:
    """Parse CURRENT_TIMESTAMP or one of its synonyms, if it comes next."""
    if c.word not in NOW_WORDS or (c.word == "NOW" and c.ahead() != "("):
        return None
    first, fsp = c.at, 0
    c.at += 1
    if c.accept("("):
        if c.token.kind is NUMBER:
            fsp = int(c.number())
        c.expect(")")
    return Now(fsp, c.text_from(first))


def parse_default(c: Cursor) -> Default:
    """Parse the value after DEFAULT."""
    if c.word == "(":
        return c.parenthesized()
    literal = accept_literal(c)
    if literal is not None:
        return literal
    now = accept_now(c)
    if now is not None:
        return now
    if c.dialect.flavor is Flavor.MARIADB:
        return _bare_expression(c)
    return c.fail("a default value")


def _bare_expression(c: Cursor) -> Expression:
    first = c.at
    if c.accept("NEXT", "VALUE", "FOR"):
        c.table_name()
    elif c.accept("CASE"):
        c.skip_until("END")
        c.expect("END")
    elif c.token.kind in (WORD, QUOTED):
        c.at += 1
        while c.accept("."):
            c.name()
        if c.word == "(":
            c.skip_parentheses()
    else:
        c.fail("a default value")
    return Expression(c.text_from(first), tuple(c.tokens[first : c.at]), parenthesized=False)


def accept_literal(c: Cursor) -> Literal | None:
    """Parse a literal with its sign and introducer, if one comes next."""
    first, token = c.at, c.token
    sign = c.accept_one("-", "+")
    token = c.token
    if token.kind is NUMBER:
        c.at += 1
        return Literal("number", token.value, c.text_from(first), sign)
    if sign:
        while c.accept_one("-", "+"):
            pass
        inner = accept_literal(c)
        if inner is None:
            c.at = first
            return None
        return Literal(inner.kind, inner.value, c.text_from(first), sign, inner.charset)
    if token.kind in (STRING, NATIONAL):
        value = c.string()
        if not value and c.dialect.empty_string_is_null:
            return Literal("null", "", c.text_from(first))
        national = token.kind is NATIONAL
        return Literal("string", value, c.text_from(first), charset="utf8mb3" if national else None, national=national)
    if token.kind in (HEX, BITS):
        c.at += 1
        return Literal("hex" if token.kind is HEX else "bits", token.value, c.text_from(first))
    if token.kind is WORD:
        return _word_literal(c, first)
    if token.word == "{" and c.ahead() in _ODBC_DATES:
        kind = _ODBC_DATES[c.ahead()]
        c.at += 2
        value = c.string()
        c.expect("}")
        return Literal(kind, value, c.text_from(first))
    return None


def _word_literal(c: Cursor, first: int) -> Literal | None:
    word, following = c.word, c.tokens[c.at + 1].kind
    if word == "NULL":
        c.at += 1
        return Literal("null", "", c.text_from(first))
    if word in ("TRUE", "FALSE"):
        c.at += 1
        return Literal("bool", word, c.text_from(first))
    if word in ("DATE", "TIME", "TIMESTAMP") and following is STRING:
        c.at += 1
        return Literal(word.lower(), c.string(), c.text_from(first))
    if word.startswith("_") and following in (STRING, HEX, BITS):
        c.at += 1
        token = c.token
        if token.kind is STRING:
            kind, value = "string", c.string()
            if not value and c.dialect.empty_string_is_null:
                kind = "null"
        else:
            kind, value = ("hex" if token.kind is HEX else "bits"), c.advance().value
        return Literal(kind, value, c.text_from(first), charset=word[1:].lower())
    return None
