"""MariaDB takes the table, and its database, in front of the name of a key that ALTER TABLE drops."""

import pytest

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server

DROPS = {
    "DROP FOREIGN KEY {}fk": ("foreign", "fk"),
    "DROP FOREIGN KEY IF EXISTS {}fk": ("foreign", "fk"),
    "DROP CONSTRAINT {}fk": ("foreign", "fk"),
    "DROP KEY {}k": ("", "k"),
    "DROP INDEX IF EXISTS {}k": ("", "k"),
}


@pytest.mark.parametrize("qualifier", ["", "c.", "`c`.", "d.c.", "."])
@pytest.mark.parametrize("drop", DROPS)
def test_a_key_is_dropped_by_a_qualified_name(drop: str, qualifier: str) -> None:
    tables = Tables(Server(Flavor.MARIADB, "11.4.5-MariaDB"))
    for sql in (
        "CREATE DATABASE d",
        "CREATE TABLE p (id INT PRIMARY KEY)",
        "CREATE TABLE c (id INT, KEY k (id), KEY o (id), CONSTRAINT fk FOREIGN KEY (id) REFERENCES p (id))",
        f"ALTER TABLE c {drop.format(qualifier)}",
    ):
        tables.apply(QueryEvent(sql, database="d", sql_mode=0))
    table = tables.table("d", "c")
    assert table is not None
    kind, name = DROPS[drop]
    names = [one.name for one in (table.constraints if kind else table.indexes)]
    assert name not in names
    assert len(table.indexes) + len(table.constraints) == 2
