"""Exact values: a table has the same schemas and values in snapshot and stream, however its statements spell it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

from rowtide.connector.config import Configuration, from_properties
from rowtide.connector.records.batch import Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.catalog.tables import Tables
from tests.support.connector_properties import address
from tests.support.mysql.live_database import snapshot, streamed
from tests.support.recordings.golden import written

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

TABLES = {
    "character set binary": (
        """id INT PRIMARY KEY, a CHAR(5) CHARACTER SET binary, b VARCHAR(5) CHARACTER SET binary, c TEXT CHARSET binary,
        d CHAR(3) BYTE, e VARCHAR(5) BYTE, f TEXT BYTE, g CHAR(5) COLLATE binary, h LONGTEXT CHARACTER SET binary""",
        "1, x'C3A9', x'C3A9', x'FF', x'FF', x'FF', x'FF', x'C3A9', x'FF'",
    ),
    "synonyms": (
        """id INT PRIMARY KEY, a NATIONAL CHAR(5), b NCHAR(5), c NVARCHAR(5), d LONG, e LONG VARBINARY, f LONG VARCHAR,
        g CHARACTER VARYING(4), h INT1, i MIDDLEINT, j FLOAT4, k FLOAT8, l DEC(5, 2), m FIXED(5, 2), n REAL, o BOOL,
        p TEXT(10), q BLOB(70000), r FLOAT(30), s FLOAT(7, 3), t INT(5) ZEROFILL, u TINYINT(1) UNSIGNED, v BIT(9)""",
        "1, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 1, 6, 1.5, 2.5, 3.25, 4.25, 6.5, 5, 'p', 'q', 2.25, 3.125, 7, 9, b'101'",
    ),
    "hexadecimal labels": (
        """id INT PRIMARY KEY, a ENUM(0x9353, 0x9373) CHARACTER SET sjis, b SET(0x9353, 0x9373) CHARACTER SET sjis,
        c ENUM(x'C3A9', 'b') CHARACTER SET utf8mb4, d ENUM(x'E9', 'b') CHARACTER SET latin1,
        e ENUM(b'01100001', 'b')""",
        "1, 1, 3, 1, 1, 1",
    ),
    "defaults": (
        """id INT PRIMARY KEY, a FLOAT DEFAULT false, b DOUBLE DEFAULT true, c DECIMAL(5, 2) DEFAULT false,
        d INT DEFAULT true, e BIT DEFAULT true, f VARCHAR(5) DEFAULT false, g YEAR DEFAULT true,
        h VARCHAR(5) NOT NULL DEFAULT x'41', i BIT(8) NOT NULL DEFAULT 65, j INT NOT NULL DEFAULT 1.6,
        k TIME NOT NULL DEFAULT 101, l TIME NOT NULL DEFAULT '1 2:3', m ENUM('a', 'b') NOT NULL DEFAULT 'A'""",
        "1, 1, 2, 3, 4, b'1', 'f', 2020, 'h', b'1', 10, '1:02:03', '4:05:06', 'b'",
    ),
}
VALUES = {
    "character set binary": {"a": "w6kAAAA=", "b": "w6k=", "c": "/w==", "d": "/wAA"},
    "synonyms": {"n": 6.5, "o": 5, "r": 2.25},
    "hexadecimal labels": {"a": "鉄", "b": "鉄,都", "c": "é", "d": "é", "e": "a"},
    "defaults": {"a": 1.0, "m": "b"},
}


def configuration(database: Database) -> Configuration:
    properties = {
        "name": "exact",
        "topic.prefix": "exact",
        "database.flavor": database.server.name,
        "database.server.id": "184055",
        "database.include.list": database.name,
        "bootstrap.servers": "127.0.0.1:1",
        "schema.history.internal.kafka.topic": "history",
        "schema.history.internal.store.only.captured.databases.ddl": "true",
    }
    return from_properties({**properties, **address(database.server)})


def end(database: Database) -> tuple[str, int]:
    status = "SHOW MASTER STATUS" if database.server.name == "mariadb" else "SHOW BINARY LOG STATUS"
    ((file, pos, *_),) = database.server.query(status)
    return str(file), int(pos)


def rows(outputs: Iterable[Output]) -> list[tuple[Any, Any, Any]]:
    """The schema of rows, the key and the row of each record."""
    found = []
    for message in written(outputs):
        if message.key is not None and '"op":"' in str(message.value):
            value = json.loads(message.value or "")
            (schema,) = (field["fields"] for field in value["schema"]["fields"] if field["field"] == "after")
            found.append((schema, json.loads(message.key)["payload"], value["payload"]["after"]))
    return found


def both(database: Database, *statements: str) -> tuple[list[tuple[Any, Any, Any]], list[tuple[Any, Any, Any]]]:
    """The rows of a snapshot after the statements, and of the stream that begins before them."""
    begin = end(database)
    database.execute(*statements)
    config = configuration(database)
    taken = snapshot(config)
    read = rows(taken.outputs())
    steps = streamed(config, Tables(taken.tables.server), SourceOffset(*begin), end(database))
    return read, rows(output for step in steps for output in step.outputs)


@pytest.mark.parametrize("name", TABLES)
def test_the_spelling_of_a_table_does_not_matter(database: Database, name: str) -> None:
    columns, values = TABLES[name]
    read, changed = both(database, f"CREATE TABLE t ({columns})", f"INSERT INTO t VALUES ({values})")
    assert read == changed
    ((_, _, row),) = read
    assert {column: row[column] for column in VALUES[name]} == VALUES[name]


@pytest.mark.parametrize(
    "statements",
    [
        ("ALTER DATABASE CHARACTER SET binary", "CREATE TABLE t (id INT PRIMARY KEY, a CHAR(3), b TEXT)"),
        ("CREATE TABLE t (id INT PRIMARY KEY, a CHAR(3), b TEXT)", "ALTER TABLE t CONVERT TO CHARACTER SET binary"),
        ("CREATE TABLE t (id INT PRIMARY KEY, a CHAR(3), b TEXT) CHARACTER SET binary",),
    ],
)
def test_the_character_set_of_a_table_or_database_is_binary(database: Database, statements: Iterable[str]) -> None:
    read, changed = both(database, *statements, "INSERT INTO t VALUES (1, x'C3A9', x'FF')")
    assert read == changed
    assert [row for _, _, row in read] == [{"id": 1, "a": "w6kA", "b": "/w=="}]


def test_labels_that_are_no_text(mariadb_db: Database) -> None:
    """They become U+FFFD. An error while they were read counted as a lost connection, and was retried for ever."""
    create = "CREATE TABLE t (id INT PRIMARY KEY, a ENUM(0xFFFF, 'b'), b ENUM('😀', 'c') CHARACTER SET utf8mb4)"
    read, changed = both(mariadb_db, "SET sql_mode = ''", create, "INSERT INTO t VALUES (1, 1, 1), (2, 2, 2)")
    assert read == changed
    assert [row for _, _, row in read] == [{"id": 1, "a": "\ufffd\ufffd", "b": "😀"}, {"id": 2, "a": "b", "b": "c"}]


def test_a_key_without_overlaps(mariadb_db: Database) -> None:
    create = "CREATE TABLE t (id INT, s DATE, e DATE, PERIOD FOR p (s, e), PRIMARY KEY (id, p WITHOUT OVERLAPS))"
    insert = "INSERT INTO t VALUES (1, '1970-01-02', '1970-01-03'), (1, '1970-01-04', '1970-01-05')"
    read, changed = both(mariadb_db, create, insert)
    assert read == changed
    assert [key for _, key, _ in read] == [{"id": 1, "e": 2, "s": 1}, {"id": 1, "e": 4, "s": 3}]
