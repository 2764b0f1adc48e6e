"""The same column under all of its names."""

import pytest

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId
from rowtide.schema_history.queries.column_identities import column_identities
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.schema_history.store.history_record import HistoryRecord, history_record, parse_record

CREATE = "CREATE TABLE t (a INT, b INT)"


def structures(*statements: str, described: int = 0, flavor: Flavor = Flavor.MYSQL) -> list[str]:
    """The structures of table t, such as ``a:1 b:2``; the first statements are of a snapshot."""
    server = Server(flavor)
    tables, records = Tables(server), list[HistoryRecord]()
    for number, statement in enumerate(("CREATE DATABASE d", *statements)):
        place = {"file": "b.000001", "pos": number} | ({"snapshot": True} if number <= described else {})
        made = tables.apply(QueryEvent(statement, "d", position="")).changes
        records += [parse_record(history_record(change, "p", place, 0)) for change in made]
    found = column_identities(records, TableId("d", "t"), server)
    return [" ".join(f"{name}:{number}" for name, number in columns.items()) for _, columns in found]


@pytest.mark.parametrize(
    ("statement", "after"),
    [
        ("ALTER TABLE t RENAME COLUMN a TO x", "x:1 b:2"),
        ("ALTER TABLE d.t CHANGE a x BIGINT AFTER b", "b:2 x:1"),
        ("ALTER TABLE t MODIFY a BIGINT, ADD KEY (b)", "a:1 b:2"),
        ("ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO a", "b:1 a:2"),
        ("ALTER TABLE t RENAME COLUMN a TO b, RENAME COLUMN b TO c, ADD a INT", "b:1 c:2 a:3"),
        ("ALTER TABLE t DROP a, RENAME COLUMN b TO a", "a:2"),
        ("ALTER TABLE t DROP a, ADD a INT", "b:2 a:3"),
        ("ALTER TABLE t DROP a, ADD c INT", "b:2 c:3"),
        ("ALTER TABLE t RENAME COLUMN A TO a", "a:1 b:2"),
        ("CREATE INDEX i ON t (a)", "a:1 b:2"),
        ("CREATE TABLE IF NOT EXISTS t (z INT)", "a:1 b:2"),
    ],
)
def test_a_column_keeps_its_number(statement: str, after: str) -> None:
    found = structures(CREATE, statement)
    assert found[0] == "a:1 b:2"
    assert found[-1] == after


def test_actions_of_mariadb() -> None:
    statement = "ALTER TABLE t ADD COLUMN IF NOT EXISTS a INT, DROP COLUMN IF EXISTS z, CHANGE IF EXISTS z y INT"
    assert structures(CREATE, statement, flavor=Flavor.MARIADB)[-1] == "a:1 b:2"


@pytest.mark.parametrize(
    "statements",
    [
        (CREATE, "DROP TABLE t", CREATE),
        (CREATE, "RENAME TABLE t TO u", CREATE),
        ("CREATE TABLE u (a INT, b INT)", "RENAME TABLE u TO t"),
        ("CREATE TABLE u (a INT, b INT)", "ALTER TABLE u RENAME TO t"),
        (CREATE, "CREATE TABLE u LIKE t", "ALTER TABLE t RENAME TO o", "ALTER TABLE u RENAME TO t"),
        (CREATE, "CREATE TABLE u LIKE t", "RENAME TABLE t TO o, u TO t"),
    ],
)
def test_another_table_of_the_name_has_other_columns(statements: tuple[str, ...]) -> None:
    found = structures(*statements)
    assert len(found) == 1
    assert found[0].replace(" ", ":").split(":")[::2] == ["a", "b"]
    assert structures(*statements, "ALTER TABLE t RENAME COLUMN a TO x")[1].startswith("x:")


def test_a_snapshot_that_describes_the_table_begins_anew() -> None:
    assert structures(CREATE, "DROP TABLE t", CREATE.replace("b", "c"), described=3) == ["a:3 c:4"]


def test_a_dropped_table_has_no_structure() -> None:
    assert structures(CREATE, "DROP TABLE t") == []
