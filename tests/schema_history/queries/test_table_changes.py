"""Statements that may change a table: in case of doubt they do."""

import pytest

from rowtide.schema_history.model import TableId
from rowtide.schema_history.queries.table_changes import may_change
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server

ANSI_QUOTES = 4


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t ADD x INT",
        "ALTER TABLE D.`T` ADD x INT",
        'ALTER TABLE "t" ADD x INT',
        "/* t */ CREATE /*!32302 OR REPLACE */ TABLE t (a INT)",
        "CREATE TABLE IF NOT EXISTS t LIKE u",
        "CREATE TABLE `t` (\n  `a` int\n) START TRANSACTION",
        "RENAME TABLE u TO v, t TO w",
        "RENAME TABLE u TO e.t, e.u TO d.t",
        "ALTER TABLE u RENAME TO t",
        "ALTER TABLE u EXCHANGE PARTITION p WITH TABLE t",
        "ALTER TABLE u CONVERT TABLE t TO PARTITION p VALUES LESS THAN (5)",
        "CREATE UNIQUE INDEX i ON t (a)",
        "DROP INDEX i ON d.t",
        "DROP TABLE u, v, t",
        "DROP DATABASE D",
        "CREATE OR REPLACE DATABASE d",
        "ALTER TABLE T FROM THE FUTURE",
        "ALTER TABLE `t` FROM THE FUTURE",
        "ALTER TABLE u FROM `t`THE FUTURE",
        "ALTER DATABASE d FROM THE FUTURE",
        "ALTER SCHEMA FROM THE FUTURE",
        "TRUNCATE t",
    ],
)
def test_statements_that_may_change_the_table(statement: str) -> None:
    event = QueryEvent(statement, "d", sql_mode=ANSI_QUOTES if '"' in statement else 0)
    assert may_change(event, TableId("d", "t"), Server(Flavor.MARIADB))


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE tt ADD t INT, COMMENT 't'",
        "ALTER TABLE e.t ADD x INT",
        "CREATE TABLE u (t INT, KEY t (t))",
        "DROP DATABASE t",
        "CREATE VIEW v AS SELECT * FROM t",
        "INSERT INTO t VALUES (1)",
        "GRANT SELECT ON t TO u",
        "ANALYZE TABLE t",
        "FLUSH TABLES t",
        "ALTER TABLE u FROM THE FUTURE",
        "ALTER TABLE `tt` FROM THE FUTURE_t",
        "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET @a = 1",
    ],
)
def test_statements_that_cannot_change_the_table(statement: str) -> None:
    assert not may_change(QueryEvent(statement, "d"), TableId("d", "t"), Server(Flavor.MARIADB))


def test_the_default_database_counts() -> None:
    table = TableId("d", "t")
    assert not may_change(QueryEvent("DROP TABLE t", "e"), table, Server(Flavor.MYSQL))
    assert may_change(QueryEvent("DROP TABLE t", "D"), table, Server(Flavor.MYSQL))
