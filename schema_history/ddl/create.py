"""Parses CREATE TABLE, CREATE INDEX, CREATE DATABASE and MariaDB's CREATE SEQUENCE."""

from rowtide.schema_history.ddl.columns import parse_column
from rowtide.schema_history.ddl.cursor import Cursor
from rowtide.schema_history.ddl.keys import accept_if_not_exists, index_body, is_key, parse_key
from rowtide.schema_history.ddl.lexer import END, OPERATOR
from rowtide.schema_history.ddl.options import (
    database_options,
    is_query,
    skip_partitioning,
    table_options,
)
from rowtide.schema_history.ddl.statements import (
    CreateDatabase,
    CreateIndex,
    CreateSequence,
    CreateTable,
    CreateTableLike,
    DataType,
    Element,
    TableOptions,
)
from rowtide.schema_history.ddl.types import parse_type

_INDEX_KINDS = {"UNIQUE": "unique", "FULLTEXT": "fulltext", "SPATIAL": "spatial", "VECTOR": "vector"}


def parse_create_table(c: Cursor, or_replace: bool, temporary: bool) -> CreateTable | CreateTableLike:
    """Parse CREATE TABLE after the word TABLE."""
    if_not_exists = accept_if_not_exists(c)
    name = c.table_name()
    if c.accept("LIKE"):
        return CreateTableLike(name, c.table_name(), temporary, if_not_exists, or_replace)
    if c.word == "(" and c.ahead() == "LIKE":
        c.at += 2
        like = CreateTableLike(name, c.table_name(), temporary, if_not_exists, or_replace)
        c.expect(")")
        return like
    elements: tuple[Element, ...] = ()
    if c.word == "(" and not is_query(c):
        c.at += 1
        elements = element_list(c)
        c.expect(")")
    options = table_options(c)
    if skip_partitioning(c) and c.word in ("WITH", "START"):
        options = table_options(c)
    query = is_query(c)
    if query:
        while c.token.kind is not END:
            c.at += 1
    elif c.accept("START", "TRANSACTION"):
        pass
    return CreateTable(name, elements, options, temporary, if_not_exists, or_replace, query)


def element_list(c: Cursor) -> tuple[Element, ...]:
    """Parse columns, indexes and constraints up to the closing parenthesis."""
    elements: list[Element] = []
    while True:
        elements.append(parse_key(c) if is_key(c) else parse_column(c))
        if not c.accept(","):
            return tuple(elements)


def parse_create_index(c: Cursor, or_replace: bool) -> CreateIndex:
    """Parse CREATE INDEX from UNIQUE, FULLTEXT, SPATIAL or INDEX on."""
    word = c.accept_one(*_INDEX_KINDS)
    c.expect("INDEX")
    if_not_exists = accept_if_not_exists(c)
    name = c.name("an index name")
    hashed = bool(c.accept_one("USING", "TYPE")) and c.advance().word == "HASH"
    c.expect("ON")
    table = c.table_name()
    skip_wait(c)
    index = index_body(c, _INDEX_KINDS.get(word, "key"), name, if_not_exists)
    skip_wait(c)
    skip_algorithm_and_lock(c)
    if hashed and not index.hashed:
        index = type(index)(index.kind, index.name, index.parts, index.if_not_exists, hashed=True)
    return CreateIndex(table, index, or_replace)


def skip_wait(c: Cursor) -> None:
    """Skip WAIT and NOWAIT."""
    if c.accept("WAIT"):
        c.number()
    c.accept("NOWAIT")


def skip_algorithm_and_lock(c: Cursor) -> None:
    """Skip ALGORITHM and LOCK clauses."""
    while c.accept_one("ALGORITHM", "LOCK"):
        c.accept("=")
        c.advance()


def parse_create_database(c: Cursor, or_replace: bool) -> CreateDatabase:
    """Parse CREATE DATABASE after the word DATABASE."""
    if_not_exists = accept_if_not_exists(c)
    return CreateDatabase(c.name("a database name"), database_options(c), if_not_exists, or_replace)


_SEQUENCE_WORDS = frozenset(
    ("START", "INCREMENT", "MINVALUE", "MAXVALUE", "CACHE", "CYCLE", "NOCACHE", "NOCYCLE", "NOMINVALUE", "NOMAXVALUE")
)
_SEQUENCE_FILLERS = frozenset(("WITH", "BY", "NO", "RESTART"))


def sequence_options(c: Cursor) -> tuple[DataType | None, TableOptions]:
    """Parse the options of CREATE and ALTER SEQUENCE."""
    data_type, options = None, TableOptions()
    while c.token.kind is not END and c.word != ";":
        if c.accept("AS"):
            data_type = parse_type(c)
        elif c.accept_one(*_SEQUENCE_WORDS) or c.accept_one(*_SEQUENCE_FILLERS):
            while c.accept("=") or c.accept("WITH") or c.accept("BY") or c.accept("-"):
                pass
            if not c.word and c.token.kind is not END and c.token.kind is not OPERATOR:
                c.advance()
        else:
            at = c.at
            options = table_options(c)
            if c.at == at:
                c.fail("a sequence option")
    return data_type, options


def parse_create_sequence(c: Cursor, or_replace: bool, temporary: bool) -> CreateSequence:
    """Parse CREATE SEQUENCE after the word SEQUENCE."""
    if_not_exists = accept_if_not_exists(c)
    name = c.table_name()
    data_type, options = sequence_options(c)
    return CreateSequence(name, options, temporary, if_not_exists, or_replace, data_type)
