"""Parses one statement.

Statements that change structures are parsed completely. Other statements are recognised by their first words, and the
rest is ignored, because it can be the body of a routine in any language.
"""

import re

from rowtide.schema_history.ddl.alter import parse_alter_table
from rowtide.schema_history.ddl.create import (
    parse_create_database,
    parse_create_index,
    parse_create_sequence,
    parse_create_table,
    sequence_options,
    skip_algorithm_and_lock,
    skip_wait,
)
from rowtide.schema_history.ddl.cursor import Cursor, words_of
from rowtide.schema_history.ddl.keys import accept_if_exists
from rowtide.schema_history.ddl.lexer import WORD, Dialect, tokenize
from rowtide.schema_history.ddl.options import database_options
from rowtide.schema_history.ddl.statements import (
    AlterDatabase,
    AlterSequence,
    Body,
    DropDatabase,
    DropIndex,
    DropTable,
    NoStructure,
    RenameTable,
    SetVariables,
    Statement,
    TruncateTable,
    Use,
)
from rowtide.schema_history.errors import UnparsedStatement

# First words of statements that never change a structure
_HARMLESS = words_of(
    "SELECT INSERT UPDATE DELETE REPLACE LOAD DO CALL SHOW EXPLAIN DESCRIBE DESC HANDLER WITH VALUES TABLE BEGIN START "
    "COMMIT ROLLBACK SAVEPOINT RELEASE XA LOCK UNLOCK GRANT REVOKE ANALYZE CHECK CHECKSUM OPTIMIZE REPAIR CACHE FLUSH "
    "RESET KILL PURGE CHANGE STOP INSTALL UNINSTALL SHUTDOWN BINLOG PREPARE EXECUTE DEALLOCATE IMPORT CLONE SIGNAL "
    "RESIGNAL GET HELP RESTART BACKUP COMMENT"
)
_OBJECTS = words_of(
    "VIEW PROCEDURE FUNCTION TRIGGER EVENT PACKAGE SERVER TABLESPACE LOGFILE UNDO RESOURCE USER ROLE LIBRARY INSTANCE "
    "PREPARE SPATIAL MATERIALIZED"
)
_BEFORE_OBJECTS = frozenset(("OR", "REPLACE", "ALGORITHM", "DEFINER", "SQL", "AGGREGATE", "JSON", "LOADABLE", "IF"))
_FIRST_WORD = re.compile(r"[\s(]*([A-Za-z]+)(?![\w$.])")
_STRUCTURE = re.compile(r"\s*(?:CREATE|ALTER|DROP|RENAME|TRUNCATE)\s+TABLE\s", re.IGNORECASE)
_LOOK_AHEAD = 400
_ENOUGH_WORDS = 12


def parse(sql: str, dialect: Dialect) -> Statement:
    """Parse one statement.

    Raises:
        UnparsedStatement: the statement cannot be parsed; the error has the position in its text.
    """
    if not _STRUCTURE.match(sql):
        found = _harmless(sql, dialect)
        if found:
            return Statement(NoStructure(found), sql.strip())
    c = Cursor(sql, dialect)
    if c.at_end():
        return Statement(NoStructure("empty"), sql.strip())
    if c.accept("SET", "STATEMENT"):
        c.skip_until("FOR")
        c.expect("FOR")
        found = _harmless(sql[c.token.start :], dialect)
        if found:
            return Statement(NoStructure(found), sql.strip())
    first = c.at  # the variables of SET STATEMENT are not reported
    body = _statement(c)
    text = c.text_from(first)
    if not c.at_end():
        c.fail("the end of the statement")
    return Statement(body, text.rstrip("; \t\r\n") if text.endswith(";") else text)


def _harmless(sql: str, dialect: Dialect) -> str:
    """Return the class of a statement if its first words imply that it changes no structure, or ``""``."""
    match = _FIRST_WORD.match(sql)
    if match and match[1].upper() in _HARMLESS:
        return match[1].lower()
    words = _first_words(sql, dialect)
    if not words:
        return ""
    if words[0] in _HARMLESS:
        return words[0].lower()
    if words[0] not in ("CREATE", "ALTER", "DROP", "RENAME"):
        return ""
    for at, word in enumerate(words[1:], 1):
        if word == "SPATIAL" and words[at + 1 : at + 2] != ["REFERENCE"]:
            return ""
        if word in _OBJECTS:
            return f"{words[0]} {word}".lower()
        if at == 1 and word not in _BEFORE_OBJECTS and word != "TEMPORARY":
            return ""
        if word in ("TABLE", "DATABASE", "SCHEMA", "INDEX", "SEQUENCE"):
            return ""
    return ""


def _first_words(sql: str, dialect: Dialect) -> list[str]:
    """Return the first keywords without comments; the text after them may have any syntax."""
    size = _LOOK_AHEAD
    while True:
        head = sql[:size]
        words = _readable_words(head, dialect)
        if len(words) >= _ENOUGH_WORDS or size >= len(sql):
            return words
        size *= 8


def _readable_words(text: str, dialect: Dialect) -> list[str]:
    try:
        tokens = tokenize(text, dialect)
    except UnparsedStatement as error:
        return _readable_words(text[: error.offset], dialect) if error.offset else []
    return [token.word for token in tokens if token.kind is WORD]


def _statement(c: Cursor) -> Body:
    if c.word == "UNIQUE" and c.ahead() == "INDEX":
        return parse_create_index(c, or_replace=False)  # Debezium's histories omit CREATE
    word = c.accept_one("CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE", "SET", "USE")
    if not word:
        c.fail("a statement")
    return _READERS[word](c)


def _create(c: Cursor) -> Body:
    or_replace = c.accept("OR", "REPLACE")
    temporary = c.accept("TEMPORARY")
    c.accept_one("ONLINE", "OFFLINE")
    c.accept("IGNORE")
    if c.accept("TABLE"):
        return parse_create_table(c, or_replace, temporary)
    if c.word in ("UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "INDEX"):
        return parse_create_index(c, or_replace)
    if c.accept_one("DATABASE", "SCHEMA"):
        return parse_create_database(c, or_replace)
    if c.accept("SEQUENCE"):
        return parse_create_sequence(c, or_replace, temporary)
    return c.fail("TABLE, INDEX or DATABASE")


def _alter(c: Cursor) -> Body:
    c.accept_one("ONLINE", "OFFLINE")
    c.accept("IGNORE")
    if c.accept("TABLE"):
        return parse_alter_table(c)
    if c.accept_one("DATABASE", "SCHEMA"):
        return _alter_database(c)
    if c.accept("SEQUENCE"):
        if_exists = accept_if_exists(c)
        name = c.table_name()
        return AlterSequence(name, if_exists, sequence_options(c)[0])
    return c.fail("TABLE or DATABASE")


def _alter_database(c: Cursor) -> AlterDatabase:
    at = c.at
    options = database_options(c)
    if c.at > at and c.at_end():
        return AlterDatabase(None, options)
    c.at = at
    name = c.name("a database name")
    return AlterDatabase(name, database_options(c))


def _drop(c: Cursor) -> Body:
    first = c.at - 1
    temporary = c.accept("TEMPORARY")
    if c.accept_one("TABLE", "TABLES", "SEQUENCE"):
        return _drop_table(c, first, temporary)
    if c.accept_one("DATABASE", "SCHEMA"):
        if_exists = accept_if_exists(c)
        return DropDatabase(c.name("a database name"), if_exists)
    c.accept_one("ONLINE", "OFFLINE")
    c.expect("INDEX")
    if_exists = accept_if_exists(c)
    name = c.name("an index name")
    c.expect("ON")
    table = c.table_name()
    skip_wait(c)
    skip_algorithm_and_lock(c)
    return DropIndex(table, name, if_exists)


def _drop_table(c: Cursor, first: int, temporary: bool) -> DropTable:
    if_exists = accept_if_exists(c)
    prefix = c.sql[c.tokens[first].start : c.token.start]
    names = [c.table_name()]
    while c.accept(","):
        names.append(c.table_name())
    skip_wait(c)
    return DropTable(tuple(names), temporary, if_exists, prefix, c.accept_one("RESTRICT", "CASCADE"))


def _rename(c: Cursor) -> RenameTable:
    first = c.at - 1
    c.accept_one("TABLE", "TABLES") or c.fail("TABLE")
    if_exists = accept_if_exists(c)
    prefix = c.sql[c.tokens[first].start : c.token.start]
    pairs, texts = [], []
    while True:
        at = c.at
        old = c.table_name()
        skip_wait(c)
        c.expect("TO")
        pairs.append((old, c.table_name()))
        texts.append(prefix + c.text_from(at))
        if not c.accept(","):
            return RenameTable(tuple(pairs), tuple(texts), if_exists)


def _truncate(c: Cursor) -> TruncateTable:
    c.accept("TABLE")
    name = c.table_name()
    skip_wait(c)
    return TruncateTable(name)


def _set(c: Cursor) -> Body:
    variables = []
    while True:
        first = c.at
        c.skip_until("=", ":=", ",")
        name = c.text_from(first).lower()
        if c.accept("=") or c.accept(":="):
            at = c.at
            c.skip_until(",", ";")
            variables.append((name, c.text_from(at)))
        if not c.accept(","):
            break
    if not variables or not {name for name, _ in variables} & {"character_set_server", "collation_server"}:
        return NoStructure("set")
    return SetVariables(tuple(variables))


def _use(c: Cursor) -> Use:
    return Use(c.name("a database name"))


_READERS = {
    "CREATE": _create,
    "ALTER": _alter,
    "DROP": _drop,
    "RENAME": _rename,
    "TRUNCATE": _truncate,
    "SET": _set,
    "USE": _use,
}
