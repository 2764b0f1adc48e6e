"""Defaults of MariaDB columns whose value the server sets, and of the columns of periods."""

import pytest

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from tests.support.ddl.made_tables import column, made
from tests.support.ddl.shown_tables import comparable, shown_again

VERSIONED = (
    "CREATE TABLE t (a INT, s TIMESTAMP(6) AS ROW START, e TIMESTAMP(6) AS ROW END, PERIOD FOR SYSTEM_TIME (s, e)) "
    "WITH SYSTEM VERSIONING"
)
COUNTER = "CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY)"
ZERO = "'0000-00-00 00:00:00'"


@pytest.mark.parametrize(
    ("defaults", "shown"),
    [
        (("NOW()",), "current_timestamp()"),
        (("(NOW())",), "current_timestamp()"),
        (("CURRENT_TIMESTAMP(3)",), "current_timestamp(3)"),
        (("(1 + 2)",), "(1 + 2)"),
        (("NOW()", "'2020-01-01'"), None),
        (("NOW()", "(5)"), None),
        (("NOW()", "NULL"), None),
    ],
)
def test_a_row_end_keeps_a_default_that_is_an_expression(defaults: tuple[str, ...], shown: str | None) -> None:
    alters = [f"ALTER TABLE t ALTER e SET DEFAULT {default}" for default in defaults]
    assert column(Flavor.MARIADB, VERSIONED, *alters)["column_default"] == shown
    tables = Tables(Server(Flavor.MARIADB))
    for statement in (VERSIONED, *alters):
        tables.apply(QueryEvent(statement, "d"))
    (table,) = tables
    assert shown_again(table, tables.server) == comparable(table)


def test_auto_increment_keeps_a_default_that_is_an_expression() -> None:
    alters = [f"ALTER TABLE t ALTER a SET DEFAULT {default}" for default in ("5", "(UUID())", "(5)")]
    shown = [column(Flavor.MARIADB, COUNTER, *alters[: n + 1])["column_default"] for n in range(3)]
    assert shown == [None, "UUID()", None]


def test_drop_default_of_a_row_end() -> None:
    alters = ("ALTER TABLE t ALTER e SET DEFAULT NOW()", "ALTER TABLE t ALTER e DROP DEFAULT")
    assert column(Flavor.MARIADB, VERSIONED, *alters)["column_default"] is None


def implicit(sql: str) -> QueryEvent:
    return QueryEvent(sql, "d", sql_mode=0, explicit_defaults_for_timestamp=False)


def test_null_in_parentheses_is_not_a_default_of_a_timestamp() -> None:
    found = column(Flavor.MARIADB, implicit("CREATE TABLE t (s TIMESTAMP DEFAULT (NULL))"))
    assert (found["column_default"], found["extra"]) == ("current_timestamp()", "on update current_timestamp()")


def test_a_key_declared_null_is_not_promoted() -> None:
    found = column(Flavor.MARIADB, implicit("CREATE TABLE t (s TIMESTAMP KEY NULL)"))
    assert (found["is_nullable"], found["column_default"], found["extra"]) == ("NO", ZERO, "")
    found = column(Flavor.MARIADB, implicit("CREATE TABLE t (s TIMESTAMP NULL PRIMARY KEY)"))  # the last word counts
    assert found["extra"] == "on update current_timestamp()"


def test_a_row_start_counts_as_the_first_timestamp() -> None:
    assert column(Flavor.MARIADB, VERSIONED, implicit("ALTER TABLE t ADD x TIMESTAMP"))["column_default"] == ZERO


def test_a_timestamp_of_a_period_is_not_promoted() -> None:
    create = implicit("CREATE TABLE t (s TIMESTAMP, e TIMESTAMP, x TIMESTAMP, PERIOD FOR p (s, e))")
    found = made(Flavor.MARIADB, create)["columns"]
    assert [(c["column_default"], c["extra"]) for c in found] == [(ZERO, "")] * 3
    again = ("ALTER TABLE t ALTER s SET DEFAULT '2020-01-01'", "ALTER TABLE t ALTER s DROP DEFAULT")
    dropped = made(Flavor.MARIADB, create, *map(implicit, again))["columns"]
    assert [(c["column_default"], c["extra"]) for c in dropped] == [(None, ""), (ZERO, ""), (ZERO, "")]


def test_a_unique_key_with_row_start_has_no_row_end() -> None:
    alter = "ALTER TABLE t ADD UNIQUE (a), ADD UNIQUE (s, a), ADD UNIQUE (e)"
    found = made(Flavor.MARIADB, VERSIONED, alter)["unique_keys"]
    assert found == {"a": ["a", "e"], "s": ["s", "a"], "e": ["e"]}


def test_a_key_without_overlaps_ends_with_its_last_column_beside_the_period() -> None:
    create = (
        "CREATE TABLE t (id INT, k INT, f DATE, u DATE, PERIOD FOR p (f, u), UNIQUE (id, p WITHOUT OVERLAPS), "
        "PRIMARY KEY (k, p WITHOUT OVERLAPS))"
    )
    found = made(Flavor.MARIADB, create, "ALTER TABLE t DROP COLUMN id, RENAME COLUMN f TO g")
    assert (found["primary_key"], found["unique_keys"]) == (["k", "u", "g"], {})
    assert made(Flavor.MARIADB, create, "ALTER TABLE t DROP COLUMN k")["primary_key"] == []


def test_without_versioning_applies_to_versioned_tables_only_but_is_kept() -> None:
    create = "CREATE TABLE t (a INT, v INT WITHOUT SYSTEM VERSIONING)"
    assert column(Flavor.MARIADB, create)["extra"] == ""
    versioned = f"{create} WITH SYSTEM VERSIONING"
    drop = "ALTER TABLE t DROP SYSTEM VERSIONING"
    assert column(Flavor.MARIADB, versioned, drop)["extra"] == "WITHOUT SYSTEM VERSIONING"


def test_an_invisible_column_without_versioning() -> None:
    create = "CREATE TABLE t (a INT, v INT WITHOUT SYSTEM VERSIONING INVISIBLE) WITH SYSTEM VERSIONING"
    assert column(Flavor.MARIADB, create)["extra"] == "INVISIBLE, WITHOUT SYSTEM VERSIONING"
