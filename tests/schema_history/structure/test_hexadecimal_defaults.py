"""Defaults written as hexadecimal or binary literals: records have their values, not their digits."""

import pytest

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import DebeziumColumn
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server


def form(*statements: str, flavor: Flavor = Flavor.MYSQL) -> DebeziumColumn:
    tables = Tables(Server(flavor))
    for statement in ("create database d", *statements):
        tables.apply(QueryEvent(statement, database="d"))
    table = tables.table("d", "t")
    assert table is not None
    found = table.columns[0].debezium
    assert found is not None
    assert not found.hexadecimal
    return found


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(
    ("declared", "default"),
    [
        ("varchar(20) character set utf8mb4 default 0xF09F988078", "😀x"),
        ("varchar(20) character set latin1 default 0xE4", "ä"),
        ("char(3) character set utf8mb4 default X'616263'", "abc"),
        ("enum('a','b') character set utf8mb4 default 0x62", "b"),
        ("varbinary(4) default 0x4142", "AB"),
        ("binary(4) default 0x0102", "\1\2\0\0"),
        ("varbinary(4) default 0x00FF", None),  # no text
        ("bit(8) default 0x0f", "1111"),
        ("int default 0x0f", "15"),
        ("int default 0b101", "5"),
        ("bit(4) default 0b101", "101"),
        ("bit(4) default b'0101'", "0101"),
        ("varchar(9) default '0x41'", "0x41"),
    ],
)
def test_the_description_has_the_value_not_the_digits(declared: str, default: str | None, flavor: Flavor) -> None:
    found = form(f"create table t (c {declared}, i int)", flavor=flavor)
    assert (found.has_default, found.default_expression) == (True, default)


@pytest.mark.parametrize(
    ("declared", "default"),
    [
        ("text character set latin1 default x'C3C4'", "ÃÄ"),
        ("text character set utf8mb4 not null default 0xC3A4", "ä"),
        ("blob default 0x00FF", None),
        ("tinytext default 0b1000001", "A"),
    ],
)
def test_large_columns_of_mariadb(declared: str, default: str | None) -> None:
    assert form(f"create table t (c {declared})", flavor=Flavor.MARIADB).default_expression == default


@pytest.mark.parametrize(
    "statement",
    [
        "alter table t add column c varchar(9) character set utf8mb4 default 0xC3A4 first",
        "alter table t change column i c varchar(9) character set utf8mb4 default 0xC3A4",
        "alter table t modify i varchar(9) character set utf8mb4 default 0xC3A4",
        "alter table t modify i varchar(9) character set utf8mb4; alter table t alter column i set default 0xC3A4",
    ],
)
def test_every_change_of_a_table(statement: str) -> None:
    assert form("create table t (i int default 1)", *statement.split("; ")).default_expression == "ä"


def test_later_changes_keep_the_value() -> None:
    create = "create table t (c varchar(9) character set utf8mb4 default 0xC3A4)"
    assert form(create, "alter table t add column d int", "rename table t to u, u to t").default_expression == "ä"


@pytest.mark.parametrize("flavor", Flavor)
def test_set_default_takes_binary_digits(flavor: Flavor) -> None:
    create = "create table t (c bit(3) default b'1')"
    assert form(create, "alter table t alter c set default b'101'", flavor=flavor).default_expression == "101"
    assert form(create, "alter table t alter c set default 0b101", flavor=flavor).default_expression == "101"
