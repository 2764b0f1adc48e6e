"""ALTER TABLE in MariaDB with several actions on the same column."""

import pytest

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from tests.support.ddl.made_tables import made


@pytest.mark.parametrize(
    ("alter", "wanted"),
    [
        ("DROP x, ADD k INT, ADD x TEXT, MODIFY X CHAR(20)", "a int(11), k int(11), X char(20)"),
        ("ADD x2 INT, DROP x, ADD x TEXT, MODIFY x DATE FIRST", "x date, a int(11), x2 int(11)"),
        ("MODIFY COLUMN x DATE, ADD y INT, CHANGE x y TEXT", "a int(11), x date, y text"),
        ("ADD y INT FIRST, MODIFY x DATE, CHANGE x y TEXT FIRST", "y text, a int(11), x date"),
        ("ADD b INT, ADD c INT, CHANGE b c TEXT", "a int(11), x int(11), b int(11), c text"),
        ("ADD b INT, MODIFY b TEXT FIRST", "b text, a int(11), x int(11)"),
    ],
)
def test_a_definition_can_replace_another_of_the_same_statement(alter: str, wanted: str) -> None:
    create = "CREATE TABLE t (a INT, x INT)"
    columns = made(Flavor.MARIADB, create, f"ALTER TABLE t {alter}")["columns"]
    assert ", ".join(f"{c['name']} {c['column_type']}" for c in columns) == wanted
    tables = Tables(Server(Flavor.MARIADB))
    for statement in (create, f"ALTER TABLE t {alter}"):
        tables.apply(QueryEvent(statement, "d"))
    (table,) = tables
    described = [c.debezium.name + " " + c.debezium.type_name for c in table.columns if c.debezium is not None]
    assert described == [f"{c.name} {c.data_type.upper()}" for c in table.columns]


def test_a_new_default_applies_to_the_first_matching_definition() -> None:
    alter = "ALTER TABLE t DROP x, ADD x TEXT, MODIFY x CHAR(20) FIRST, ALTER x SET DEFAULT 'y'"
    first, _ = made(Flavor.MARIADB, "CREATE TABLE t (a INT, x INT)", alter)["columns"]
    assert (first["name"], first["column_default"]) == ("x", "NULL")


def test_keys_of_a_column_that_is_changed_twice_follow_the_first() -> None:
    create = "CREATE TABLE t (a INT, x INT, UNIQUE u (x, a))"
    found = made(Flavor.MARIADB, create, "ALTER TABLE t DROP x, ADD x TEXT, ADD y INT, CHANGE x y INT")
    assert found["unique_keys"] == {"u": ["x(4)", "a"]}
