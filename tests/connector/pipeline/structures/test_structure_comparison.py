"""Structures compared with TABLE_MAPs: everything that the event has is compared, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rowtide.connector.pipeline.structures.comparison import contradictions, structure_text, table_text
from rowtide.connector.protocol.events.table_structure import BinlogType, MappedColumn, TableStructure
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server

MYSQL, MARIADB = Server(Flavor.MYSQL, "8.4.3"), Server(Flavor.MARIADB, "11.4.5-MariaDB")
UTF8MB4, LATIN1, BINARY = 255, 8, 63


def made(columns: str, server: Server = MYSQL) -> Table:
    tables = Tables(server)
    tables.apply(QueryEvent(f"CREATE TABLE t ({columns}) CHARSET utf8mb4", "d"))
    (table,) = tables
    return table


def mapped(kind: BinlogType, metadata: int = 0, **more: object) -> MappedColumn:
    return MappedColumn(kind, metadata, nullable=True, **more)  # type: ignore[arg-type]


def differences(table: Table, *columns: MappedColumn, key: tuple[int, ...] | None = None) -> list[str]:
    primary_key = None if key is None else tuple((index, 0) for index in key)
    return list(map(str, contradictions(TableStructure("d", "t", columns, primary_key), table)))


LONG, LONGLONG = mapped(BinlogType.LONG), mapped(BinlogType.LONGLONG)
VARCHAR = mapped(BinlogType.VARCHAR, 40)


@pytest.mark.parametrize(
    ("columns", "event"),
    [
        ("a TINYINT UNSIGNED", mapped(BinlogType.TINY, unsigned=True)),
        ("a MEDIUMINT", mapped(BinlogType.INT24)),
        ("a VARCHAR(10)", VARCHAR),
        ("a VARCHAR(10) CHARACTER SET latin1", mapped(BinlogType.VARCHAR, 10, collation=LATIN1)),
        ("a CHAR(255)", mapped(BinlogType.STRING, 1020, collation=UTF8MB4)),
        ("a VARBINARY(10)", mapped(BinlogType.VARCHAR, 10, collation=BINARY)),
        ("a DECIMAL(12,3)", mapped(BinlogType.NEWDECIMAL, 12 << 8 | 3, unsigned=False)),
        ("a DATETIME(3)", mapped(BinlogType.DATETIME2, 3)),
        ("a DATETIME(3)", mapped(BinlogType.DATETIME)),  # of a table from before MySQL 5.6.4
        ("a DATE", mapped(BinlogType.NEWDATE)),
        ("a BIT(9)", mapped(BinlogType.BIT, 9)),
        ("a MEDIUMTEXT", mapped(BinlogType.BLOB, 3, collation=UTF8MB4)),
        ("a POINT", mapped(BinlogType.GEOMETRY, 4)),
        ("a ENUM('x','y')", mapped(BinlogType.ENUM, 1, collation=UTF8MB4, values=(b"x", b"y"))),
        ("a SET('1','2','3','4','5','6','7','8','9')", mapped(BinlogType.SET, 2)),
        ("a INT GENERATED ALWAYS AS (1)", LONG),
    ],
)
def test_a_structure_that_fits(columns: str, event: MappedColumn) -> None:
    assert differences(made(columns), event) == []


@pytest.mark.parametrize(
    ("columns", "event", "wrong"),
    [
        ("a INT", LONGLONG, "has the type LONGLONG, not that of a int"),
        ("a INT", replace(LONG, nullable=False), "is NOT NULL"),
        ("a INT NOT NULL", LONG, "may be NULL"),
        ("a INT", replace(LONG, unsigned=True), "is unsigned"),
        ("a INT UNSIGNED", replace(LONG, unsigned=False), "is not unsigned"),
        ("a VARCHAR(20)", VARCHAR, "has the type VARCHAR(40), not that of a varchar(20)"),
        ("a VARCHAR(40) CHARSET ascii", replace(VARCHAR, collation=LATIN1), "is in character set latin1, not ascii"),
        ("a DECIMAL(12,3)", mapped(BinlogType.NEWDECIMAL, 12 << 8 | 2),
         "has the type NEWDECIMAL(12,2), not that of a decimal(12,3)"),
        ("a DATETIME(3)", mapped(BinlogType.DATETIME2, 6), "has the type DATETIME2(6), not that of a datetime(3)"),
        ("a DATETIME", mapped(BinlogType.TIMESTAMP2), "has the type TIMESTAMP2, not that of a datetime"),
        ("a TEXT", mapped(BinlogType.BLOB, 3), "has the type BLOB(3), not that of a text"),
        ("a JSON", mapped(BinlogType.BLOB, 4), "has the type BLOB(4), not that of a json"),
        ("a ENUM('x','y')", mapped(BinlogType.ENUM, 1, collation=UTF8MB4, values=(b"x", b"z")),
         "has the labels 'x', 'z', not 'x', 'y'"),
    ],
)  # fmt: skip
def test_a_structure_that_contradicts(columns: str, event: MappedColumn, wrong: str) -> None:
    assert differences(made(columns), event) == [f"column a {wrong}"]


@pytest.mark.parametrize(
    ("columns", "event", "harmless"),
    [
        ("a VARCHAR(20)", replace(VARCHAR, collation=UTF8MB4), True),
        ("a VARCHAR(20)", VARCHAR, False),  # perhaps in another character set
        ("a VARBINARY(20)", VARCHAR, True),
        ("a BLOB", mapped(BinlogType.BLOB, 4), True),
        ("a BINARY(20)", mapped(BinlogType.STRING, 10, collation=BINARY), False),  # values are filled up with zeros
        ("a VARCHAR(20)", mapped(BinlogType.BLOB, 2, collation=UTF8MB4), False),
        ("a DOUBLE", mapped(BinlogType.FLOAT, 4), True),
        ("a FLOAT", mapped(BinlogType.DOUBLE, 8), False),
        ("a INT", replace(LONG, nullable=False), True),
        ("a INT NOT NULL", LONG, False),
        ("a INT", mapped(BinlogType.SHORT), False),
    ],
)
def test_some_contradictions_are_harmless(columns: str, event: MappedColumn, *, harmless: bool) -> None:
    (found,) = contradictions(TableStructure("d", "t", (event,)), made(columns))
    assert found.harmless == harmless


def test_bytes_and_text_are_distinguished() -> None:
    as_bytes, as_text = (mapped(BinlogType.VARCHAR, 10, collation=collation) for collation in (BINARY, LATIN1))
    text, octets = made("a VARCHAR(10) CHARSET latin1"), made("a VARBINARY(10)")
    assert differences(text, as_bytes) == ["column a is in character set binary, not latin1"]
    assert differences(octets, as_text) == ["column a is in character set latin1, not binary"]


def test_the_number_of_columns_is_always_compared() -> None:
    assert differences(made("a INT, b INT"), LONG) == ["it has 1 columns, not 2 (a, b)"]


@pytest.mark.parametrize(
    ("columns", "wrong"),
    [
        ("a BIGINT, b INT", []),
        ("A BIGINT, B INT", []),
        ("a BIGINT", ["its columns are a, b, not a"]),
        ("b BIGINT, a INT", ["its columns are a, b, not b, a"]),
        ("a BIGINT, b INT, PRIMARY KEY (b)", ["column b may be NULL", "its primary key is (), not (b)"]),
    ],
)
def test_names_and_keys_are_compared_with_full_metadata(columns: str, wrong: list[str]) -> None:
    assert differences(made(columns), replace(LONGLONG, name="a"), replace(LONG, name="b")) == wrong


def test_a_table_map_may_have_a_unique_key_as_the_primary_key() -> None:
    events = [mapped(BinlogType.LONG, name=name) for name in "ab"]
    events[1] = replace(events[1], nullable=False)
    assert differences(made("a INT, b INT NOT NULL, UNIQUE (b)"), *events, key=(1,)) == []
    assert differences(made("a INT, b INT NOT NULL"), *events, key=(1,)) == ["its primary key is (b), not ()"]


def test_the_end_of_a_row_is_in_the_keys_of_versioned_tables() -> None:
    row = "TIMESTAMP(6) GENERATED ALWAYS AS ROW"
    period = f"s {row} START, e {row} END, PERIOD FOR SYSTEM_TIME (s, e)"
    table = made(f"a INT PRIMARY KEY, {period}) WITH SYSTEM VERSIONING PARTITION BY HASH (a", MARIADB)
    at = [replace(mapped(BinlogType.TIMESTAMP2, 6, name=name), nullable=False) for name in "se"]
    assert differences(table, replace(LONG, name="a", nullable=False), *at, key=(0, 2)) == []


def test_less_is_compared_if_only_debeziums_form_is_known() -> None:
    known = replace(made("a INT, b VARCHAR(5)"), complete=False)
    assert differences(known, replace(LONG, nullable=False), mapped(BinlogType.VARCHAR, 99)) == []
    assert differences(known, LONGLONG, VARCHAR) == ["column a has the type LONGLONG, not that of a int"]


def test_both_structures_are_written_alike() -> None:
    events = replace(LONG, nullable=False, unsigned=True), VARCHAR, mapped(BinlogType.DOUBLE, 8, name="c")
    assert structure_text(TableStructure("d", "t", events)) == "(LONG UNSIGNED NOT NULL, VARCHAR(40), c DOUBLE)"
    assert table_text(made("a INT UNSIGNED NOT NULL, b TEXT")) == "(a int unsigned NOT NULL, b text)"
