"""The databases of tables in statements."""

from __future__ import annotations

import pytest

from rowtide.databus.server.statements import with_database
from rowtide.schema_history.ddl.lexer import Dialect
from rowtide.schema_history.server.query_event import Flavor

DIALECT = Dialect(Flavor.MYSQL, 80400, 0)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("ALTER TABLE t ADD x int", "ALTER TABLE `d`.t ADD x int"),
        ("/* why */ alter table `t` rename to u", "/* why */ alter table `d`.`t` rename to `d`.u"),
        ("alter table t rename u, add y int", "alter table `d`.t rename `d`.u, add y int"),
        (
            "alter table t rename column a to b, rename key i to j",
            "alter table `d`.t rename column a to b, rename key i to j",
        ),
        ("alter table t exchange partition p with table u", "alter table `d`.t exchange partition p with table `d`.u"),
        ("alter table t convert partition p to table u", "alter table `d`.t convert partition p to table `d`.u"),
        (
            "alter table t convert table u to partition p values less than (9)",
            "alter table `d`.t convert table `d`.u to partition p values less than (9)",
        ),
        ("set statement a=1 for drop table t, u", "set statement a=1 for drop table `d`.t, `d`.u"),
        ("set statement a=1 for truncate t", "set statement a=1 for truncate `d`.t"),
        ("alter table t add check (a like b)", "alter table `d`.t add check (a like b)"),
        ("create table if not exists t (`table` int)", "create table if not exists `d`.t (`table` int)"),
        (
            "create table t (a int references p(id)) comment 'table x'",
            "create table `d`.t (a int references `d`.p(id)) comment 'table x'",
        ),
        ("create table t like u", "create table `d`.t like `d`.u"),
        ("create table s.t (like u)", "create table s.t (like `d`.u)"),
        ("drop table if exists a, s.b, `c` cascade", "drop table if exists `d`.a, s.b, `d`.`c` cascade"),
        ("drop tables a, b", "drop tables `d`.a, `d`.b"),
        ("create sequence s", "create sequence `d`.s"),
        ("create or replace table t (a int, index (a))", "create or replace table `d`.t (a int, index (a))"),
        ("rename table a to b, s.c to d", "rename table `d`.a to `d`.b, s.c to `d`.d"),
        ("truncate t", "truncate `d`.t"),
        ("truncate table t", "truncate table `d`.t"),
        ("create unique index i on t (a)", "create unique index i on `d`.t (a)"),
        ("drop index i on `t`", "drop index i on `d`.`t`"),
        ("drop table .t, s.u", "drop table `d`.t, s.u"),
        ("create table . `t` like .u", "create table `d`. `t` like `d`.u"),
        ("rename table .t to .u", "rename table `d`.t to `d`.u"),
        ("create index i on .t (a)", "create index i on `d`.t (a)"),
        (
            "create table t (a int) engine=merge union=(u, `v`, s.w)",
            "create table `d`.t (a int) engine=merge union=(`d`.u, `d`.`v`, s.w)",
        ),
        ("alter table t union (.u) insert_method=last", "alter table `d`.t union (`d`.u) insert_method=last"),
        ("alter table t union=()", "alter table `d`.t union=()"),
        ("create table t select 1 union (select a from u)", "create table `d`.t select 1 union (select a from u)"),
    ],
)
def test_each_table_has_a_database(sql: str, expected: str) -> None:
    assert with_database(sql, "d", DIALECT) == expected


def test_a_database_is_quoted_and_nothing_changes_without_one() -> None:
    assert with_database("truncate t", "a`b", DIALECT) == "truncate `a``b`.t"
    assert with_database("truncate t", "", DIALECT) == "truncate t"
