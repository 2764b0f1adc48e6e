"""The event type and the table that Canal reads from a statement."""

from __future__ import annotations

import pytest

from rowtide.canal.entries.ddl import Classified, classify, classify_dml
from rowtide.canal.entries.entry import EventType
from rowtide.schema_history.ddl.lexer import Dialect
from rowtide.schema_history.ddl.parser import parse
from rowtide.schema_history.server.query_event import Flavor

DIALECT = Dialect(Flavor.MYSQL, 90700, 0)


def found(sql: str, database: str = "shop") -> Classified | None:
    return classify(parse(sql, DIALECT).body, sql, database)


@pytest.mark.parametrize(
    ("sql", "kind", "table"),
    [
        ("create table t (id int)", EventType.CREATE, "shop.t"),
        ("create table other.t like t", EventType.CREATE, "other.t"),
        ("alter table t add column c int, add index (c)", EventType.ALTER, "shop.t"),
        ("alter table t add index (c), add column d int", EventType.CINDEX, "shop.t"),
        ("alter table t add index (c), comment 'x'", EventType.ALTER, "shop.t"),
        ("alter table t add primary key (id)", EventType.CINDEX, "shop.t"),
        ("alter table t add constraint f foreign key (a) references u (a), drop index i", EventType.DINDEX, "shop.t"),
        ("alter table t drop primary key", EventType.ALTER, "shop.t"),
        ("alter table t rename to other.u", EventType.RENAME, "other.u"),
        ("rename table a to b, c to d", EventType.RENAME, "shop.b"),
        ("drop table `a``b`, c", EventType.ERASE, "shop.a`b"),
        ("truncate other.t", EventType.TRUNCATE, "other.t"),
        ("create unique index i on t (a)", EventType.CINDEX, "shop.t"),
        ("drop index i on t", EventType.DINDEX, "shop.t"),
        ("insert into t values (1)", EventType.INSERT, "shop.t"),
        ("update other.t set a = 1", EventType.UPDATE, "other.t"),
        ("delete from t where a = 1", EventType.DELETE, "shop.t"),
    ],
)
def test_the_first_table_or_action_of_a_statement_counts(sql: str, kind: EventType, table: str) -> None:
    database, _, name = table.partition(".")
    assert found(sql) == Classified(kind, database, name)


@pytest.mark.parametrize(
    ("sql", "database"),
    [
        ("create database shop", "shop"),
        ("create database if not exists `my-shop` character set latin1", "`my-shop`"),
        ("drop schema shop", "shop"),
        ("alter schema shop character set latin1", None),
    ],
)
def test_statements_about_databases_are_queries_without_a_table(sql: str, database: str | None) -> None:
    assert found(sql) == Classified(EventType.QUERY, database, None)


@pytest.mark.parametrize(
    "sql",
    [
        "alter database shop character set latin1",
        "alter table t add foreign key (a) references u (a)",
        "alter table t partition by hash (id)",
        "alter table t remove partitioning",
        "grant select on *.* to u",
        "create view v as select 1",
        "drop procedure p",
        "savepoint s",
        "replace into t values (1)",
    ],
)
def test_statements_that_canal_does_not_classify_make_no_entry(sql: str) -> None:
    assert found(sql) is None


def test_a_statement_of_rows_names_its_table_without_a_database() -> None:
    assert classify_dml("/* from the shop */ INSERT IGNORE INTO `order items` VALUES (1)", None) == Classified(
        EventType.INSERT, None, "order items"
    )
    assert classify_dml("load data infile 'x' into table t", None) is None
