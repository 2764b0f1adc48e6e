"""Parses options of tables and databases, and skips the partitions and the query after them."""

from rowtide.schema_history.ddl.cursor import Cursor, words_of
from rowtide.schema_history.ddl.lexer import END, OPERATOR, QUOTED, WORD
from rowtide.schema_history.ddl.statements import TableOptions
from rowtide.schema_history.ddl.types import accept_charset_keyword, charset_value
from rowtide.schema_history.server.query_event import Flavor

_VALUED = words_of(
    "ENGINE TYPE AUTO_INCREMENT AVG_ROW_LENGTH CHECKSUM TABLE_CHECKSUM COMPRESSION CONNECTION DELAY_KEY_WRITE "
    "ENCRYPTION INSERT_METHOD KEY_BLOCK_SIZE MAX_ROWS MIN_ROWS PACK_KEYS PASSWORD ROW_FORMAT STATS_AUTO_RECALC "
    "STATS_PERSISTENT STATS_SAMPLE_PAGES SECONDARY_ENGINE AUTOEXTEND_SIZE ENGINE_ATTRIBUTE "
    "SECONDARY_ENGINE_ATTRIBUTE SEQUENCE TRANSACTIONAL PAGE_CHECKSUM COMMENT UNION ENCRYPTED PAGE_COMPRESSED "
    "PAGE_COMPRESSION_LEVEL ENCRYPTION_KEY_ID"
)
_QUERIES = words_of("SELECT WITH VALUES TABLE")
_ACTIONS = words_of("RENAME ALGORITHM LOCK")
"""Actions of ALTER TABLE that look like an option of a storage engine: ``RENAME = t``."""


def table_options(c: Cursor) -> TableOptions:
    """Parse all table options that come next, with or without commas between them."""
    options = TableOptions()
    while True:
        found = table_option(c, options)
        if found is None:
            return options
        options = found
        if c.word == "," and _is_option(c, 1):
            c.at += 1


def _is_option(c: Cursor, steps: int) -> bool:
    word, following = c.ahead(steps), c.ahead(steps + 1)
    if following == "=" or word in _VALUED:
        return True
    if word in ("CHARSET", "COLLATE", "TABLESPACE"):
        return True
    pairs = (("DEFAULT", "CHARSET"), ("DEFAULT", "CHARACTER"), ("DEFAULT", "COLLATE"), ("DEFAULT", "CHAR"))
    more = (("CHARACTER", "SET"), ("CHAR", "SET"), ("DATA", "DIRECTORY"), ("INDEX", "DIRECTORY"), ("STORAGE", "DISK"))
    return (word, following) in pairs or (word, following) in more or (word, following) == ("STORAGE", "MEMORY")


def table_option(c: Cursor, options: TableOptions) -> TableOptions | None:
    """Parse one table option, and return ``options`` with it, or ``None`` if none comes next."""
    given = _charset_or_collation(c, options)
    if given is not None:
        return given
    word = c.word
    if word == "WITH" and c.ahead() == "SYSTEM":
        c.at += 1
        c.expect("SYSTEM", "VERSIONING")
        return options._replace(system_versioning=True)
    if word == "START" and c.ahead() == "TRANSACTION":
        c.at += 2
        return options
    if word in ("DATA", "INDEX") and c.ahead() == "DIRECTORY":
        c.at += 2
        c.accept("=")
        c.string()
        return options
    if word == "TABLESPACE":
        c.at += 1
        c.accept("=")
        c.name_or_string()
        return options
    if word == "STORAGE" and c.ahead() in ("DISK", "MEMORY", "DEFAULT"):
        c.at += 2
        return options
    if word in _VALUED and c.token.kind is WORD:
        return _valued(c, options)
    if c.word in _ACTIONS:
        return None
    if c.token.kind in (WORD, QUOTED) and c.ahead() == "=" and c.dialect.flavor is Flavor.MARIADB:
        c.at += 2  # an option of a storage engine
        c.advance()
        return options
    return None


def _valued(c: Cursor, options: TableOptions) -> TableOptions | None:
    word = c.word
    c.at += 1
    if not c.accept("=") and (c.token.kind is END or c.token.kind is OPERATOR) and c.word != "(":
        c.fail("a value")
    if word == "COMMENT":
        first = c.at
        text = c.string()
        return options._replace(comment=text, raw_comment=c.text_from(first))
    if word == "UNION":
        c.skip_parentheses()
        return options
    if word in ("ENGINE", "TYPE"):
        return options._replace(engine=c.name_or_string())
    if word == "SEQUENCE":
        return options._replace(sequence=c.advance().value.lower() in ("1", "yes"))
    if c.accept("-"):
        pass
    c.advance()
    return options


def _charset_or_collation(c: Cursor, options: TableOptions) -> TableOptions | None:
    at = c.at
    c.accept("DEFAULT")
    if accept_charset_keyword(c):
        c.accept("=")
        charset = "" if c.token.kind is WORD and c.accept("DEFAULT") else charset_value(c)
        return options._replace(charset=charset)
    if c.accept("COLLATE"):
        c.accept("=")
        if c.token.kind is WORD and c.accept("DEFAULT"):
            return options._replace(collation="")
        name = "binary" if c.accept("BINARY") else c.name_or_string()
        return options._replace(collation=name)
    c.at = at
    return None


def database_options(c: Cursor) -> TableOptions:
    """Parse the options of CREATE and ALTER DATABASE."""
    options = TableOptions()
    while True:
        given = _charset_or_collation(c, options)
        if given is not None:
            options = given
            continue
        at = c.at
        c.accept("DEFAULT")
        if c.accept("ENCRYPTION"):
            c.accept("=")
            c.string()
        elif c.accept("COMMENT"):
            c.accept("=")
            options = options._replace(comment=c.string())
        elif c.accept("READ", "ONLY"):
            c.accept("=")
            c.advance()
        elif c.accept("UPGRADE", "DATA", "DIRECTORY", "NAME"):
            pass
        else:
            c.at = at
            return options


def skip_partitioning(c: Cursor) -> bool:
    """Skip PARTITION BY with all definitions, and return whether it came next."""
    if not (c.word == "PARTITION" and c.ahead() == "BY"):
        return False
    while c.token.kind is not END and c.word not in (",", ";"):
        if is_query(c):
            break
        if c.word == "(":
            c.skip_parentheses()
        else:
            c.at += 1
    return True


def is_query(c: Cursor) -> bool:
    """Return whether a query comes next, with or without AS, IGNORE or REPLACE before it."""
    at = c.at
    c.accept_one("IGNORE", "REPLACE")
    c.accept("AS")
    found = c.word in _QUERIES and c.token.kind is WORD
    if c.word == "WITH" and c.ahead() == "SYSTEM":
        found = False
    if c.word == "(":
        steps = 1
        while c.ahead(steps) == "(":
            steps += 1
        found = c.ahead(steps) in _QUERIES
    c.at = at
    return found
