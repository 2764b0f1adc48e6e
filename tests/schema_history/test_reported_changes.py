"""Which changes a statement is reported with: Debezium's listeners decide that, not the structure."""

import pytest

from rowtide.schema_history.changes import ChangeKind
from rowtide.schema_history.query import Flavor, QueryEvent, Server
from rowtide.schema_history.tables import Tables


def tables(*statements: str, flavor: Flavor = Flavor.MYSQL) -> Tables:
    known = Tables(Server(flavor))
    for statement in ("create database d", *statements):
        known.apply(QueryEvent(statement, database="d"))
    return known


@pytest.mark.parametrize(
    ("create", "index", "key"),
    [
        ("create table t (a int not null, b int)", "create unique index u on t (a)", ("a",)),
        ("create table t (a int not null, b int)", "create unique index u on t (a, b)", ()),
    ],
)
def test_a_unique_index_on_a_table_without_key_is_reported(create: str, index: str, key: tuple[str, ...]) -> None:
    (change,) = tables(create).apply(QueryEvent(index, database="d")).changes
    assert change.kind is ChangeKind.ALTER
    assert str(change.table_id) == "d.t"
    assert change.table is not None
    assert change.table.form.primary_key == key
    assert change.ddl == index.removeprefix("create ")


@pytest.mark.parametrize(
    ("create", "index"),
    [
        ("create table t (a int primary key, b int not null)", "create unique index u on t (b)"),
        ("create table t (a int not null)", "create unique index u on t ((a + 1))"),
        ("create table t (a int not null)", "create index i on t (a)"),
    ],
)
def test_any_other_index_is_only_a_statement(create: str, index: str) -> None:
    (change,) = tables(create).apply(QueryEvent(index, database="d")).changes
    assert change.kind is ChangeKind.DATABASE
    assert change.table_id is None
    assert change.ddl == index


def test_mariadb_reports_the_whole_statement() -> None:
    known = tables("create table t (a int not null)", flavor=Flavor.MARIADB)
    (change,) = known.apply(QueryEvent("create unique index u on t (a)", database="d")).changes
    assert change.ddl == "create unique index u on t (a)"
