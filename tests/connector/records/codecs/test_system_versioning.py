"""System-versioned tables of MariaDB: records describe the current rows only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rowtide.connector.records.codecs.system_versioning import is_current
from tests.support.mysql.live_database import Rows, apply, configured, snapshot, streamed
from tests.support.recordings.live_snapshot import binlog_end

if TYPE_CHECKING:
    from rowtide_stack import Database

_MICROSECONDS = "s TIMESTAMP(6) GENERATED ALWAYS AS ROW START, e TIMESTAMP(6) GENERATED ALWAYS AS ROW END"


@pytest.mark.parametrize(
    ("end", "current"),
    [
        (None, True),
        (2147483647_999999, True),
        (4294967295_999999, True),
        (2147483647_000000, False),
        (1700000000_999999, False),
        (12345, False),
    ],
)
def test_a_row_is_current_until_it_ends(end: int | None, current: bool) -> None:
    assert is_current(end) is current


@pytest.mark.servers
@pytest.mark.parametrize("columns", ["", f", {_MICROSECONDS}, PERIOD FOR SYSTEM_TIME (s, e)"])
def test_the_stream_reproduces_the_current_table(mariadb_db: Database, columns: str) -> None:
    mariadb_db.execute(f"CREATE TABLE t (id INT PRIMARY KEY, v INT{columns}) WITH SYSTEM VERSIONING")
    config = configured(mariadb_db)
    taken = snapshot(config)
    rows: Rows = {}
    apply(rows, taken.outputs())
    mariadb_db.execute(
        "INSERT INTO t (id, v) VALUES (1, 1), (2, 2), (3, 3), (4, 4), (5, 5)",
        "UPDATE t SET v = v + 10 WHERE id IN (1, 2)",
        "DELETE FROM t WHERE id IN (2, 3)",
        "REPLACE INTO t (id, v) VALUES (4, 44), (6, 66)",
        "INSERT INTO t (id, v) VALUES (5, 0) ON DUPLICATE KEY UPDATE v = 55",
        "UPDATE t SET id = 7 WHERE id = 1",
        "INSERT INTO t (id, v) VALUES (2, 222)",
        "DELETE HISTORY FROM t",
    )
    end = binlog_end(mariadb_db.server)
    for step in streamed(config, taken.tables, taken.offset, end):
        apply(rows, step.outputs)
    found = {row["id"]: row["v"] for row in rows.values()}
    assert found == dict(mariadb_db.query("SELECT id, v FROM t"))
    assert found == {2: 222, 4: 44, 5: 55, 6: 66, 7: 11}
