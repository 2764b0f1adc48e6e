"""Debezium's descriptions; the expected ones are those of its parsers: MySQL connector 3.6, MariaDB connector 3.5."""

import pytest

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server

MYSQL, MARIADB = Flavor.MYSQL, Flavor.MARIADB


def made(flavor: Flavor, *statements: str) -> Table:
    tables = Tables(Server(flavor))
    for statement in ("CREATE DATABASE d CHARACTER SET utf8mb4", *statements):
        tables.apply(QueryEvent(statement, "d"))
    table = tables.table("d", "t")
    assert table is not None
    return table


@pytest.mark.parametrize(
    ("alter", "mysql", "mariadb"),
    [
        ("ADD b INT UNIQUE", (), ("b",)),
        ("ADD COLUMN (b INT NOT NULL UNIQUE KEY)", (), ("b",)),
        ("ADD b SERIAL", (), ("b",)),
        ("MODIFY a INT UNIQUE", (), ("a",)),
        ("CHANGE a b INT NOT NULL UNIQUE FIRST", (), ("b",)),
        ("ADD b INT UNIQUE, ADD PRIMARY KEY (a)", ("a",), ("a",)),
        ("ADD UNIQUE (a)", (), ()),
    ],
)
def test_the_key_of_records_after_a_unique_column(alter: str, mysql: tuple[str, ...], mariadb: tuple[str, ...]) -> None:
    for flavor, wanted in ((MYSQL, mysql), (MARIADB, mariadb)):
        assert made(flavor, "CREATE TABLE t (a INT)", f"ALTER TABLE t {alter}").debezium.primary_key == wanted


def test_a_unique_column_does_not_replace_a_key() -> None:
    for flavor in Flavor:
        table = made(flavor, "CREATE TABLE t (a INT PRIMARY KEY)", "ALTER TABLE t ADD b INT NOT NULL UNIQUE")
        assert table.debezium.primary_key == ("a",)


@pytest.mark.parametrize(
    ("declared", "mysql", "mariadb"),
    [
        ("INT ZEROFILL", "INT UNSIGNED ZEROFILL", "INT UNSIGNED ZEROFILL"),
        ("INT SIGNED ZEROFILL", "INT UNSIGNED ZEROFILL", "INT UNSIGNED ZEROFILL"),
        ("INT UNSIGNED SIGNED", "INT SIGNED", "INT UNSIGNED"),
        ("DOUBLE PRECISION ZEROFILL", "DOUBLE PRECISION UNSIGNED ZEROFILL", "DOUBLE PRECISION UNSIGNED ZEROFILL"),
    ],
)
def test_the_type_names_of_numbers(declared: str, mysql: str, mariadb: str) -> None:
    for flavor, wanted in ((MYSQL, mysql), (MARIADB, mariadb)):
        (column,) = made(flavor, f"CREATE TABLE t (a {declared})").columns
        assert column.debezium is not None
        assert column.debezium.type_name == wanted


@pytest.mark.parametrize(
    ("data_type", "mysql", "mariadb"),
    [
        ("CHAR(3)", "latin1", "latin1"),
        ("TEXT", "latin1", "latin1"),
        ("ENUM('a')", "latin1", "utf8mb4"),
        ("DATE", "latin1", None),
        ("BLOB", "latin1", None),
    ],
)
def test_the_character_set_of_a_collation(data_type: str, mysql: str | None, mariadb: str | None) -> None:
    for flavor, wanted in ((MYSQL, mysql), (MARIADB, mariadb)):
        (column,) = made(flavor, f"CREATE TABLE t (a {data_type} COLLATE latin1_bin)").columns
        assert column.debezium is not None
        assert column.debezium.charset_name == wanted


def test_default_as_the_character_set_of_a_database_changes_nothing_for_mariadb() -> None:
    alter = "ALTER DATABASE d CHARACTER SET latin1"
    table = made(MARIADB, alter, "ALTER DATABASE d CHARSET DEFAULT", "CREATE TABLE t (a TEXT)")
    assert table.debezium.default_charset_name == "latin1"


def test_the_options_of_an_existing_database_count() -> None:
    for flavor in Flavor:
        create = "CREATE DATABASE IF NOT EXISTS d CHARSET latin1"
        assert made(flavor, create, "CREATE TABLE t (a TEXT)").debezium.default_charset_name == "latin1"


@pytest.mark.parametrize(
    "statements",
    [
        ("CREATE TABLE t (id INT, s DATE, e DATE, PERIOD FOR p (s, e), PRIMARY KEY (id, p WITHOUT OVERLAPS))",),
        (
            "CREATE TABLE t (id INT NOT NULL, s DATE NOT NULL, e DATE NOT NULL, PERIOD FOR P (s, e))",
            "ALTER TABLE t ADD UNIQUE (id, p WITHOUT OVERLAPS)",
        ),
        (
            "CREATE TABLE t (id INT, s DATE, e DATE)",
            "ALTER TABLE t ADD PERIOD FOR p (s, e), ADD PRIMARY KEY (id, p WITHOUT OVERLAPS)",
        ),
        (
            "CREATE TABLE t (id INT, s DATE, e DATE, PERIOD FOR p (s, e))",
            "ALTER TABLE t ADD PRIMARY KEY (id, p WITHOUT OVERLAPS)",
        ),
        (
            "CREATE TABLE t (id INT NOT NULL, s DATE NOT NULL, e DATE NOT NULL, PERIOD FOR p (s, e))",
            "CREATE UNIQUE INDEX i ON t (id, p WITHOUT OVERLAPS)",
        ),
    ],
)
def test_a_key_without_overlaps_has_the_columns_of_its_period(statements: tuple[str, ...]) -> None:
    """Debezium leaves them out, and gives all periods of an id the same key."""
    assert made(MARIADB, *statements).debezium.primary_key == ("id", "e", "s")
