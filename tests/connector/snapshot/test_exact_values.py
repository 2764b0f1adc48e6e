"""Exact values: snapshots of all kinds have the digits of FLOAT and the texts of JSON that the stream has."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from pymysql.protocol import MysqlPacket

from rowtide.connector.config import Configuration
from rowtide.connector.records.batch import Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.rows.text_protocol_rows import ResultReader
from rowtide.connector.snapshot.initial import Snapshot
from rowtide.connector.source.session import Session
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId
from tests.support.incremental_stream import BesideStream
from tests.support.mysql.live_database import apply, configured, snapshot, streamed
from tests.support.recordings.golden import written

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

NUMBERS = (
    "16777216", "16777215", "3.4028235e38", "-3.4028235e38", "1e-45", "1.17549435e-38", "0", "-0e0", "1.1", "0.1",
    "123456.789", "8388608.5", "1e10", "-2.5e-7", "33554434", "46.61693",
)  # fmt: skip
TABLE = "f FLOAT, fixed FLOAT(10,3), positive FLOAT UNSIGNED, wide FLOAT(30), d DOUBLE, cut DOUBLE(20,5)"


def exact(config: Configuration) -> Configuration:
    return replace(config, values=replace(config.values, exact=True))


def fill(database: Database, key: str = "n INT PRIMARY KEY") -> None:
    database.execute(f"CREATE TABLE t ({key}, {TABLE}, at DATETIME(3), span TIME(2), text TEXT)")
    with database.server.connect(database.name) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = ''")  # a number beyond the range becomes the nearest one
        for place, number in enumerate(NUMBERS):
            key_value = number if key.startswith("k FLOAT") else str(place)
            cursor.execute(
                f"INSERT IGNORE INTO t VALUES ({key_value}, {number}, {number}, abs({number}), {number}, {number}, "
                f"{number}, '2024-02-29 10:11:12.34', '-100:01:02.5', 'é')"
            )
        connection.commit()


def rows(outputs: Iterable[Output], op: str) -> dict[str, dict[str, Any]]:
    """The rows of records, with numbers as texts, by key."""
    found = {}
    for message in written(outputs):
        if message.key is not None and message.value is not None and f'"op":"{op}"' in message.value:
            found[message.key] = json.loads(message.value, parse_float=str, parse_int=str)["after"]
    return found


def from_stream(
    taken: Snapshot, config: Configuration, begin: tuple[str, int], op: str = "c"
) -> dict[str, dict[str, Any]]:
    end = taken.offset.file, taken.offset.pos
    steps = streamed(config, Tables(taken.tables.server), SourceOffset(*begin), end)
    return rows((output for step in steps for output in step.outputs), op)


def position(database: Database) -> tuple[str, int]:
    database.server.execute("FLUSH BINARY LOGS")
    name, size = database.server.query("SHOW BINARY LOGS")[-1][:2]
    return str(name), int(size)


@pytest.mark.parametrize(("key", "threads"), [("n INT PRIMARY KEY", 1), ("k FLOAT PRIMARY KEY", 2)])
@pytest.mark.parametrize(
    "query", [None, "SELECT * FROM {} WHERE f IS NOT NULL ORDER BY f DESC", "SELECT 7 AS x, {}.* FROM {}"]
)
def test_a_snapshot_has_the_digits_of_the_stream(database: Database, key: str, query: str | None, threads: int) -> None:
    begin = position(database)
    fill(database, key)
    table = f"{database.name}.t"
    properties = {"snapshot.max.threads": str(threads)}
    if query is not None:
        properties |= {
            "snapshot.select.statement.overrides": table,
            f"snapshot.select.statement.overrides.{table}": query.replace("{}", table),
        }
    config = exact(configured(database, properties))
    taken = snapshot(config)
    found = rows(taken.outputs(), "r")
    assert len(found) >= len(NUMBERS) - 1, "0 and -0 are one key"
    assert found == from_stream(taken, config, begin)


@pytest.mark.parametrize("key", ["n INT PRIMARY KEY", "k FLOAT PRIMARY KEY"])
@pytest.mark.parametrize("read_only", ["true", "false"])
def test_an_incremental_snapshot_has_the_digits_of_the_stream(database: Database, key: str, read_only: str) -> None:
    """In chunks of three rows, whose bounds are keys."""
    beside = BesideStream(database, {"read.only": read_only}, chunk_size=3, exact_values=True)
    try:
        fill(database, key)
        beside.run_to_end()
        beside.execute(rf"{database.name}\.t")
        beside.run(lambda: not beside.snapshots.active)
        stream = rows(beside.outputs, "c")
        assert len(stream) >= len(NUMBERS) - 1
        assert rows(beside.outputs, "r") == stream
    finally:
        beside.close()


def test_a_float_key_compares_rows_of_a_chunk_with_events(database: Database) -> None:
    """Keys with the same six digits are different rows: a change of one does not hide another."""
    database.execute(
        "CREATE TABLE t (k FLOAT PRIMARY KEY, v INT)",
        "INSERT INTO t VALUES (16777214, 1), (16777215, 1), (16777216, 1)",
    )
    beside = BesideStream(database, lag_s=0.1, exact_values=True)
    try:
        database.execute("UPDATE t SET v = 2 WHERE k = 16777215")
        beside.execute(rf"{database.name}\.t")
        beside.run(lambda: not beside.snapshots.active)
        beside.run_to_end()
        found: dict[tuple[str, str], Any] = {}
        apply(found, beside.outputs)
        assert {row["k"]: row["v"] for row in found.values()} == {16777214.0: 1, 16777215.0: 2, 16777216.0: 1}
    finally:
        beside.close()


DOCUMENTS = (
    "'[1e10, 100000000000000000000.5, 1e20, 1e-7, 0.1, -0.0, 1.5e300, 123456789012345678, 18446744073709551615]'",
    "CAST(1.50 AS JSON)", "CAST(CAST(0 AS DECIMAL(10,4)) AS JSON)", "CAST(-0.000 AS JSON)", "'null'", "'{}'", "'[]'",
    "JSON_OBJECT('at', TIMESTAMP'2024-02-29 10:11:12', 'day', DATE'2024-02-29', 'time', TIME'10:11:12.5')",
    "JSON_ARRAY(x'00FF', CAST(REPEAT('x', 200) AS BINARY), b'101')",
    "JSON_OBJECT('é \U0001f600 \"', '\\\\ \\n \\t \\Z', 'b', JSON_ARRAY(true, NULL, JSON_OBJECT()))",
    "JSON_OBJECT('year', y, 'e', e, 'f', f)",
)  # fmt: skip


def test_json_has_one_text_in_snapshot_and_stream(mysql_db: Database) -> None:
    """The server's text, also of documents that an event changes in part."""
    begin = position(mysql_db)
    mysql_db.execute("CREATE TABLE t (n INT PRIMARY KEY, y YEAR, e ENUM('a'), f FLOAT, j JSON)")
    with mysql_db.server.connect(mysql_db.name) as connection, connection.cursor() as cursor:
        for place, document in enumerate(DOCUMENTS):
            cursor.execute(f"INSERT INTO t VALUES ({place}, 2024, 'a', 1.1, NULL)")
            cursor.execute(f"UPDATE t SET j = {document} WHERE n = {place}")
        cursor.execute("SET SESSION binlog_row_value_options = PARTIAL_JSON")
        for document in ("1e20", "CAST(2.50 AS JSON)", "TIMESTAMP'2024-02-29 10:11:12'", "x'00FF'", "'\\Z'"):
            cursor.execute("INSERT INTO t (n, j) SELECT MAX(n) + 1, JSON_OBJECT('a', 1, 'b', REPEAT('x', 100)) FROM t")
            cursor.execute(f"UPDATE t SET j = JSON_SET(j, '$.a', {document}) ORDER BY n DESC LIMIT 1")
        connection.commit()
    config = exact(configured(mysql_db))
    taken = snapshot(config)
    found = rows(taken.outputs(), "r")
    assert found == from_stream(taken, config, begin, op="u")
    texts = {str(number): text for number, text in mysql_db.query("SELECT n, j FROM t")}
    assert {row["n"]: row["j"] for row in found.values()} == texts


ALL_TYPES = """
    t1 TINYINT, t1u TINYINT UNSIGNED, t2 SMALLINT, t2u SMALLINT UNSIGNED, t3 MEDIUMINT, t3u MEDIUMINT UNSIGNED, t4 INT,
    t4u INT UNSIGNED, t8 BIGINT, t8u BIGINT UNSIGNED, y YEAR, de DECIMAL(30,5), da DATE, dt DATETIME, dt3 DATETIME(3),
    ts TIMESTAMP(6) NULL, ti TIME, ti6 TIME(6), c CHAR(5), v VARCHAR(300), b BINARY(3), bl LONGBLOB, e ENUM('a','b'),
    s SET('a','b'), bi BIT(10), j JSON, d DOUBLE, f FLOAT"""
LEAST = (
    "-128, 0, -32768, 0, -8388608, 0, -2147483648, 0, -9223372036854775808, 0, 1901, -1.5, '1000-01-01', '1000-01-01', "
    "'1000-01-01 00:00:00.001', '1970-01-02 00:00:01.000001', '-838:59:59', '-838:59:58.999999', '', '', '', '', 'a', "
    "'', 0, '[]', -1e300, -1.5"
)
GREATEST = (
    "127, 255, 32767, 65535, 8388607, 16777215, 2147483647, 4294967295, 9223372036854775807, 18446744073709551615, "
    "2155, 1e24, '9999-12-31', '9999-12-31 23:59:59', '9999-12-31 23:59:59.999', '2038-01-19 03:14:07.999999', "
    "'838:59:59', '00:00:00.000001', 'ab', REPEAT('é', 300), 'abc', REPEAT('x', 70000), 'b', 'a,b', 1023, "
    "'{\"a\": 1.5}', 2.5e-300, 2.5"
)


def test_a_prepared_statement_gives_the_texts_of_a_query(database: Database) -> None:
    """All but FLOAT: that of a query has six digits; here they are enough."""
    nulls = ", ".join(["NULL"] * 28)
    database.execute(
        f"CREATE TABLE t (n INT PRIMARY KEY, {ALL_TYPES})",
        *(f"INSERT INTO t VALUES ({place}, {row})" for place, row in enumerate((LEAST, GREATEST, nulls))),
    )
    with database.server.connect(database.name) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = ''")
        cursor.execute("INSERT INTO t (n, da, dt, dt3, ti) VALUES (3, 0, 0, 0, 0)")
        connection.commit()
    config = configured(database).database
    with Session(config, mariadb=database.server.name == "mariadb") as session:
        texts, prepared = ([*_texts(session, database, prepared=one)] for one in (False, True))
    assert len(texts) == 4
    assert prepared == texts


def _texts(session: Session, database: Database, *, prepared: bool) -> Iterator[tuple[bytes | None, ...]]:
    """Each row of a query as the texts of its columns."""

    def reader(names: Sequence[str]) -> ResultReader:
        def row(payload: bytes) -> tuple[bytes | None, ...]:
            packet = MysqlPacket(payload, "utf8")
            return tuple(packet.read_length_coded_string() for _ in names)

        def rows_of(buffer: bytes) -> tuple[list[tuple[bytes | None, ...]], int]:
            found, pos = [], 0
            while len(buffer) - pos > 4:
                end = pos + 4 + int.from_bytes(buffer[pos : pos + 3], "little")
                if end > len(buffer) or buffer[pos + 4] == 0xFE:
                    break
                found.append(row(buffer[pos + 4 : end]))
                pos = end
            return found, pos

        return ResultReader(rows_of, row)

    table = TableId(database.name, "t")
    for found in session.rows(table, f"SELECT * FROM {table} ORDER BY n", reader, prepared=prepared):
        yield from found
