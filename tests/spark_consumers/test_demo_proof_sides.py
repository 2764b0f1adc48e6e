"""The checksums of the demo: equal in MySQL and Spark for equal rows, and different if a single value differs.

These tests are here and not in tests/docker because they share the Spark session of this folder.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from rowtide_demo.checksums.canonical_text import Column
from rowtide_demo.checksums.comparison import TableChecksum, compare
from rowtide_demo.checksums.mysql import checksums_in_mysql, columns_of
from rowtide_demo.checksums.spark import SETTINGS, checksum_in_spark
from rowtide_demo.shop.loading import insert
from rowtide_demo.shop.rows import generate_rows
from rowtide_demo.shop.schema import TABLES, Sizes

if TYPE_CHECKING:
    from pymysql import Connection
    from pymysql.cursors import Cursor
    from pyspark.sql import SparkSession
    from rowtide_stack import MySQL

pytestmark = [pytest.mark.servers, pytest.mark.spark]

ALTERED = {
    "customers": {
        "email": "CONCAT(email, '!')",
        "name": "CONCAT(name, ' ')",
        "city": "IF(city IS NULL, '', NULL)",
        "legacy_name": "IF(legacy_name IS NULL, '', UPPER(CONCAT('ж', legacy_name)))",
        "country": "'XX'",
        "level": "IF(level = 'gold', 'bronze', 'gold')",
        "interests": "interests ^ 1",
        "newsletter": "NOT newsletter",
        "credit": "credit + 0.01",
        "born": "IF(born IS NULL, '2000-01-01', born + INTERVAL 1 DAY)",
        "registered": "registered + INTERVAL 1 MICROSECOND",
        "seen": "IF(seen IS NULL, NOW(), seen + INTERVAL 1000 MICROSECOND)",
        "settings": "IF(settings IS NULL, '1', JSON_SET(settings, '$.theme.scale', 1.75))",
    },
    "products": {
        "description": "CONCAT(description, '\\n')",
        "cost": "cost - 0.000001",
        "weight": "weight + 0.001",
        "stock": "stock + 1",
        "ean": "ean ^ 9223372036854775808",
        "digest": "CONCAT(LEFT(digest, 15), CHAR(ASCII(RIGHT(digest, 1)) ^ 1))",
        "thumbnail": "IF(thumbnail IS NULL, '', CONCAT(thumbnail, '\\0'))",
        "features": "features ^ 2048",
        "attributes": "JSON_SET(attributes, '$.size[0]', -1)",
        "launched": "launched + 1",
        "ready_after": "IF(ready_after IS NULL, 0, -ready_after - 0.01)",
        "changed": "IF(changed IS NULL, NOW(), changed + INTERVAL 1 MICROSECOND)",
    },
}
"""An expression for each column that gives another value."""

_SPARK_TYPES = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "year"), "int"),
    **dict.fromkeys(("char", "varchar", "text", "enum", "set", "json"), "string"),
    **dict.fromkeys(("binary", "blob", "bit"), "binary"),
    "bigint": "decimal(20,0)",
    "date": "date",
    "datetime": "timestamp_ntz",
    "double": "double",
    "time": "bigint",
    "timestamp": "timestamp",
}
"""What ``rowtide tables`` makes of MySQL's types; decimals apart."""
_DECIMALS = {"credit": "decimal(12,2)", "price": "decimal(10,2)", "cost": "decimal(24,6)"}
Structure = dict[str, list[Column]]


def _value(column: Column, value: Any) -> Any:
    """A value as pymysql gives it, for Spark."""
    if value is None:
        return None
    match column.type:
        case "time":
            return value // dt.timedelta(microseconds=1)
        case "timestamp":
            return value.replace(tzinfo=dt.UTC)
        case "bigint":
            return Decimal(value)
        case "binary" | "blob" | "bit":
            return bytearray(value)
        case "set":
            return value if isinstance(value, str) else ",".join(sorted(value))
        case "json":
            return value.replace('", "', '","')  # as a message has it, in part
    return value


@pytest.fixture(scope="module")
def database(mysql: MySQL) -> Iterator[tuple[Connection[Cursor], str]]:
    """A connection in UTC to a database with some customers and products."""
    with mysql.database("proof") as made, made.connect(init_command="SET time_zone = '+00:00'") as connection:
        with connection.cursor() as cursor:
            for table in ALTERED:
                cursor.execute(f"CREATE TABLE {table} ({TABLES[table]}\n)")
                rows = list(generate_rows(table, Sizes(40, 40, 40, 40)))
                assert insert(cursor, table, rows, made.name) == len(rows)
        yield connection, made.name


@pytest.fixture(scope="module")
def structure(database: tuple[Connection[Cursor], str]) -> Structure:
    return columns_of(*database)


@pytest.fixture(scope="module")
def in_spark(
    database: tuple[Connection[Cursor], str], structure: Structure, spark: SparkSession
) -> dict[str, TableChecksum]:
    """The checksums in Spark of the same rows, which are read directly from MySQL."""
    session = spark.newSession()
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    found = {}
    for table, columns in structure.items():
        with database[0].cursor() as cursor:
            cursor.execute(f"SELECT * FROM {table}")
            rows = [[_value(*pair) for pair in zip(columns, row, strict=True)] for row in cursor.fetchall()]
        types = (f"{c.name} {_DECIMALS[c.name] if c.type == 'decimal' else _SPARK_TYPES[c.type]}" for c in columns)
        found[table] = checksum_in_spark(session.createDataFrame(rows, ", ".join(types)), columns)
    return found


def test_both_sides_are_equal_for_the_same_rows(
    database: tuple[Connection[Cursor], str], structure: Structure, in_spark: dict[str, TableChecksum]
) -> None:
    assert compare(checksums_in_mysql(*database, structure), in_spark) == []


@pytest.mark.parametrize(("table", "column"), [(table, column) for table in ALTERED for column in ALTERED[table]])
def test_one_altered_value_is_found(
    database: tuple[Connection[Cursor], str],
    structure: Structure,
    in_spark: dict[str, TableChecksum],
    table: str,
    column: str,
) -> None:
    connection, name = database
    connection.begin()
    try:
        with connection.cursor() as cursor:
            assert cursor.execute(f"UPDATE {table} SET {column} = {ALTERED[table][column]} LIMIT 1") == 1
        found = compare(checksums_in_mysql(connection, name, structure), in_spark)
    finally:
        connection.rollback()
    assert {difference.where for difference in found} == {f"{table}.{column}"}


def test_swapped_values_are_found(
    database: tuple[Connection[Cursor], str], structure: Structure, in_spark: dict[str, TableChecksum]
) -> None:
    connection, name = database
    connection.begin()
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT id, credit FROM customers LIMIT 2")
            (one, first), (other, second) = cursor.fetchall()
            cursor.execute("UPDATE customers SET credit = IF(id = %s, %s, %s) WHERE id IN (%s, %s)",
                           (one, second, first, one, other))  # fmt: skip
        found = compare(checksums_in_mysql(connection, name, structure), in_spark)
    finally:
        connection.rollback()
    assert [str(difference).split(":")[0] for difference in found] == ["customers.credit"]
