"""MariaDB's COMPRESSED columns from a real server, with values whose length takes one to four bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.mysql.live_database import configured, snapshot, streamed
from tests.support.recordings.golden import written
from tests.support.recordings.live_snapshot import binlog_end

if TYPE_CHECKING:
    from rowtide_stack import Database

SIZES = (0, 5, 255, 256, 300, 65_535, 65_536, 70_001, 16_777_216)


@pytest.mark.servers
def test_values_of_every_length(mariadb_db: Database) -> None:
    mariadb_db.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT COMPRESSED, w VARCHAR(60000) CHARACTER SET latin1 COMPRESSED)"
    )
    config = configured(mariadb_db)
    taken = snapshot(config)
    list(taken.outputs())
    for size in SIZES:
        mariadb_db.execute(
            f"INSERT INTO t VALUES ({size}, REPEAT('x', {size}), REPEAT('ab', {min(size, 60_000)} DIV 2))"
        )
    steps = streamed(config, taken.tables, taken.offset, binlog_end(mariadb_db.server))
    rows = [json.loads(message.value or "")["after"] for step in steps for message in written(step.outputs)]
    assert [row["id"] for row in rows] == list(SIZES)
    for row in rows:
        assert row["v"] == "x" * row["id"]
        assert row["w"] == "ab" * (min(row["id"], 60_000) // 2)
