"""ALTER TABLE that swaps the names of columns: records and history lose no column."""

import pytest

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table
from rowtide.schema_history.recovery.recover import recover
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.schema_history.store.history_record import history_record, parse_record

ORACLE, MAXDB = 1 << 9, 1 << 12


def altered(columns: str, actions: str, flavor: Flavor) -> Table:
    """The table, which is the same after a restart."""
    tables = Tables(Server(flavor))
    records = []
    for number, statement in enumerate((f"CREATE TABLE t ({columns})", f"ALTER TABLE t {actions}")):
        place = {"file": "b.000001", "pos": number}
        changes = tables.apply(QueryEvent(statement, "d")).changes
        records += [parse_record(history_record(change, "p", place, 0)) for change in changes]
    (table,) = tables
    (again,) = recover(records, Server(flavor), None)
    assert again == table
    return table


@pytest.mark.parametrize("flavor", Flavor, ids=lambda flavor: flavor.value)
@pytest.mark.parametrize(
    ("columns", "actions", "wanted"),
    [
        ("a INT, b TEXT", "CHANGE a b INT, CHANGE b a TEXT", "b INT, a TEXT"),
        ("a INT, b TEXT", "RENAME COLUMN a TO b, RENAME COLUMN b TO a", "b INT, a TEXT"),
        ("a INT, b TEXT", "CHANGE a b INT, RENAME COLUMN b TO a, ADD c DATE FIRST", "c DATE, b INT, a TEXT"),
        ("a INT, b TEXT, c DATE", "CHANGE a b INT, CHANGE b c TEXT, CHANGE c a DATE FIRST", "a DATE, b INT, c TEXT"),
        ("a NCHAR(3)", "ADD a TEXT, RENAME COLUMN a TO b", "b NCHAR, a TEXT"),
        ("a INT, b TEXT, c DATE", "DROP COLUMN a, CHANGE b a TEXT, CHANGE c b DATE", "a TEXT, b DATE"),
        ("a INT, b TEXT, c DATE", "MODIFY c YEAR, CHANGE a b INT, CHANGE b a TEXT", "b INT, a TEXT, c YEAR"),
    ],
)
def test_swapped_names(columns: str, actions: str, wanted: str, flavor: Flavor) -> None:
    table = altered(columns, actions, flavor)
    forms = [column.debezium for column in table.columns]
    assert ", ".join(f"{form.name} {form.type_name}" for form in forms if form is not None) == wanted
    assert [column.name for column in table.columns] == [form.name for form in forms if form is not None]


def test_the_key_follows_swapped_names() -> None:
    swap = "CHANGE a b INT, CHANGE b a INT"
    table = altered("a INT NOT NULL, b INT, PRIMARY KEY (a)", swap, Flavor.MYSQL)
    assert table.debezium.primary_key == table.primary_key == ("b",)
    table = altered("a INT, b INT, PRIMARY KEY (a)", f"{swap}, DROP PRIMARY KEY, ADD PRIMARY KEY (a)", Flavor.MYSQL)
    assert table.debezium.primary_key == table.primary_key == ("a",)


@pytest.mark.parametrize(
    ("definition", "sql_mode", "wanted"),
    [
        ("DATE", ORACLE, ("datetime", "DATETIME", 93)),
        ("TIMESTAMP(3) NULL", MAXDB, ("datetime(3)", "DATETIME", 93)),
        ("TIMESTAMP NULL", ORACLE | MAXDB, ("timestamp", "TIMESTAMP", 2014)),
    ],
)
def test_types_that_depend_on_the_sql_mode(definition: str, sql_mode: int, wanted: tuple[str, str, int]) -> None:
    tables = Tables(Server(Flavor.MARIADB))
    tables.apply(QueryEvent(f"CREATE TABLE t (a {definition})", "d", sql_mode=sql_mode))
    ((column,),) = (table.columns for table in tables)
    assert column.debezium is not None
    assert (column.column_type, column.debezium.type_name, column.debezium.jdbc_type) == wanted
