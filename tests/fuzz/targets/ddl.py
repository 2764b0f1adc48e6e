"""Statements of both servers, on the tables that their recordings had at that point."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.queries.information_schema import table_json
from rowtide.schema_history.server.query_event import Flavor
from rowtide.schema_history.store.history_record import history_record
from rowtide.schema_history.structure.show_create import show_create
from tests.fuzz.mutators import mutated, spliced
from tests.fuzz.recorded import recorded_statements

_FLAVORS = tuple(Flavor)
_SQL_MODES = (0, 2, 4, 1 << 20, 1 << 29, 1411383296, 2**64 - 1)
_WORDS = """
( ) (( )) , ; . .. ` ' " '' /* */ /*! /*!99999 /*M!100000 -- # @ @@ [ ] { } = := * + - ~ ! || && -> ->>
0 1 -1 255 65535 65536 4294967296 18446744073709551616 1e400 1e-400 .5 0x b'' x'' b'2' 0b1 x'zz' x'f'
CREATE ALTER DROP TABLE DATABASE INDEX ADD COLUMN CHANGE MODIFY RENAME TO AS LIKE SELECT IF NOT EXISTS
PRIMARY KEY UNIQUE FULLTEXT SPATIAL FOREIGN REFERENCES CHECK CONSTRAINT DEFAULT NULL GENERATED ALWAYS
STORED VIRTUAL CHARACTER SET COLLATE CHARSET utf8 utf8mb4 latin1 binary ucs2 utf16 BINARY ASCII UNICODE
ENUM SET DECIMAL FLOAT DOUBLE BIT YEAR DATE TIME DATETIME TIMESTAMP VARCHAR CHAR TEXT BLOB JSON GEOMETRY
VECTOR SERIAL INTERVAL CASE WHEN THEN ELSE END AND OR XOR NOT IN BETWEEN IS PARTITION BY RANGE LIST HASH
SUBPARTITION PARTITIONS VALUES LESS THAN MAXVALUE FIRST AFTER COMMENT ON UPDATE NOW() CURRENT_TIMESTAMP
WITH SYSTEM VERSIONING PERIOD FOR OVERLAPS TEMPORARY REPLACE SEQUENCE INVISIBLE SRID ZEROFILL UNSIGNED
"""
_PARTS = (
    "\0", "\\", "\\'", "\u00a0", "\U0001f600", "\n", "é", "_utf8'", "_binary x'ff'", "N'", "'" * 4, "ENUM('a','b')",
    "'" + "9" * 5000 + "'", "9" * 400, "0" * 400, "(" * 300, ")" * 300, "NOT " * 2000, "- " * 2000, "a." * 50,
    "CASE WHEN " * 500, "/*! " * 50, "((1)+" * 300, "1+" * 3000, "f(" * 500, "{" * 300, "d.t.c", "a" * 70_000,
)  # fmt: skip
_TOKENS = tuple(text.encode() for text in (*_WORDS.split(), *_PARTS))


class Statements:
    """An input is the number of a recorded statement (two bytes), its mode, and the statement instead of it."""

    declared = (SchemaHistoryError,)

    def __init__(self, files: int | None = None) -> None:
        self._files = files

    def make(self, random: Random) -> bytes:
        """A damaged statement."""
        flavor = random.randrange(len(_FLAVORS))
        found = recorded_statements(_FLAVORS[flavor], self._files)
        number = random.randrange(len(found))
        text = _bytes(found[number][1].sql)
        if random.random() < 0.1:
            text = spliced(random, text, _bytes(random.choice(found)[1].sql))
        text = mutated(random, text, _TOKENS)
        mode = random.choice((0, 0, 0, *range(1, len(_SQL_MODES) + 1)))
        return bytes((flavor,)) + number.to_bytes(2, "little") + bytes((mode,)) + text

    def run(self, data: bytes) -> None:
        """Apply the statement, and print the tables that it changes."""
        if len(data) < 4:
            return
        found = recorded_statements(_FLAVORS[data[0] % len(_FLAVORS)], self._files)
        tables, event = found[int.from_bytes(data[1:3], "little") % len(found)]
        mode = _SQL_MODES[data[3] - 1] if 0 < data[3] <= len(_SQL_MODES) else event.sql_mode
        tables = tables.copy()
        result = tables.apply(replace(event, sql=data[4:], sql_mode=mode, position="f:4"))
        for change in result.changes:
            history_record(change, "p", {}, 0).encode()
        for table_id, _ in result.altered:
            table = tables.table(table_id.database, table_id.table)
            if table is not None:
                table_json(table, tables.server.flavor)
                show_create(table, tables.server)


def _bytes(sql: str | bytes) -> bytes:
    return sql if isinstance(sql, bytes) else sql.encode("utf-8", "replace")
