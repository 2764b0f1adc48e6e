"""The last change of each column that gives rows another form."""

from __future__ import annotations

import pytest

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId
from rowtide.schema_history.queries.column_changes import column_changes
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.schema_history.store.history_record import HistoryRecord, history_record, parse_record

CREATE = "CREATE TABLE t (a INT, b VARCHAR(9) CHARACTER SET latin1, c ENUM('x','y'), g INT AS (a + 1))"
SERVER = Server(Flavor.MYSQL)


def changes(*statements: str, described: int = 0) -> dict[str, int]:
    """The number of the last statement that changed each column of table t; the first ones are of a snapshot."""
    tables, records = Tables(SERVER), list[HistoryRecord]()
    for number, statement in enumerate(("CREATE DATABASE d", *statements)):
        place = {"file": "b.000001", "pos": number} | ({"snapshot": True} if number <= described else {})
        made = tables.apply(QueryEvent(statement, "d", position="")).changes
        records += [parse_record(history_record(change, "p", place, 0)) for change in made]
    return {name: one.position.pos for name, one in column_changes(records, TableId("d", "t"), SERVER).items()}


@pytest.mark.parametrize(
    ("statement", "columns"),
    [
        ("ALTER TABLE t MODIFY a BIGINT", "a"),
        ("ALTER TABLE t MODIFY a INT NOT NULL", "a"),
        ("ALTER TABLE t MODIFY b VARCHAR(9) CHARACTER SET utf8mb4", "b"),
        ("ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4", "b,c"),
        ("ALTER TABLE t MODIFY c ENUM('x','z')", "c"),
        ("ALTER TABLE t DROP a, DROP g, ADD a INT", "a"),
        ("ALTER TABLE t MODIFY g INT AS (a + 2)", "g"),
        ("ALTER TABLE t ADD n INT DEFAULT 5", "n"),
        ("ALTER TABLE t RENAME COLUMN b TO n", "n"),
        ("ALTER TABLE t ADD KEY (a)", ""),
        ("ALTER TABLE t ALTER a SET DEFAULT 4", ""),
        ("ALTER TABLE t MODIFY a INT COMMENT 'more'", ""),
        ("CREATE TABLE IF NOT EXISTS t (a INT)", ""),
        ("CREATE TABLE u LIKE t", ""),
        ("TRUNCATE t", ""),
    ],
)
def test_only_columns_whose_values_can_change_count(statement: str, columns: str) -> None:
    found = changes(CREATE, statement)
    assert ",".join(sorted(name for name, at in found.items() if at == 2)) == columns
    assert {at for name, at in found.items() if name not in columns.split(",")} <= {1}


def test_changes_follow_a_renamed_table_and_end_with_it() -> None:
    renamed = CREATE.replace("TABLE t", "TABLE u"), "ALTER TABLE u MODIFY a BIGINT", "RENAME TABLE u TO t"
    assert changes(*renamed) == {"a": 2, "b": 1, "c": 1, "g": 1}
    assert {*changes(CREATE, "DROP TABLE t", CREATE).values()} == {3}
    assert changes(CREATE, "DROP TABLE t") == {}


def test_a_snapshot_that_describes_the_table_again_changes_nothing() -> None:
    assert {*changes(CREATE, "DROP TABLE t", CREATE, described=3).values()} == {1}
    assert changes(CREATE, "DROP TABLE t", CREATE.replace("a INT", "a BIGINT"), described=3)["a"] == 3
