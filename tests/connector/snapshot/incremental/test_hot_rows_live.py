"""Incremental snapshots on real servers while the same rows change all the time: each table is read to its end."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from rowtide.connector.records.batch import Batch
from tests.support.incremental_stream import BesideStream

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

ROWS, HOT = 30, 17
MINIMAL = {"binlog.row.image.minimal.allowed": "true", "decimal.handling.mode": "string"}
TABLES = {
    "a_minimal_row_image": ("id INT PRIMARY KEY", "id", MINIMAL, "SET SESSION binlog_row_image = MINIMAL"),
    "a_float_as_key": ("id FLOAT PRIMARY KEY", "id", {}, "DO 0"),
    "a_key_that_is_not_unique": ("id INT, KEY (id)", "id", {}, "DO 0"),
    "changes_that_may_be_left_out": (
        "id INT PRIMARY KEY", "id",
        {"skip.messages.without.change": "true", "column.include.list": r".*\.t\.(id|v)"}, "DO 0",
    ),
}  # fmt: skip
PER_SECOND = 500


class HotRow:
    """Changes one row, at most ``PER_SECOND`` times a second."""

    def __init__(self, database: Database, prepare: str) -> None:
        self._database, self._prepare = database, prepare
        self.stopped = threading.Event()
        self.changes = 0

    def run(self) -> None:
        with self._database.server.connect(self._database.name) as connection, connection.cursor() as cursor:
            cursor.execute(self._prepare)
            begin = time.monotonic()
            while not self.stopped.is_set():
                cursor.execute(f"UPDATE t SET v = v + 1 WHERE id = {HOT}")
                connection.commit()
                self.changes += 1
                time.sleep(max(0.0, begin + self.changes / PER_SECOND - time.monotonic()))


@contextmanager
def hot_row(database: Database, prepare: str) -> Iterator[HotRow]:
    """Change the row while the block runs."""
    load = HotRow(database, prepare)
    thread = threading.Thread(target=load.run)
    thread.start()
    try:
        yield load
    finally:
        load.stopped.set()
        thread.join()


@pytest.mark.parametrize("kind", TABLES)
def test_a_row_that_changes_all_the_time_is_read(database: Database, kind: str) -> None:
    definition, key, properties, prepare = TABLES[kind]
    rows = ", ".join(f"({number}, 0, 'row {number}')" for number in range(ROWS))
    database.execute(
        f"CREATE TABLE t ({definition}, v INT NOT NULL, kept VARCHAR(20))", f"INSERT INTO t (id, v, kept) VALUES {rows}"
    )
    beside = BesideStream(database, properties, chunk_size=8, lag_s=0.05)
    try:
        with hot_row(database, prepare) as load:
            beside.run(lambda: load.changes > 100)
            beside.execute(rf"{database.name}\.t", **{"surrogate-key": key})
            beside.run(lambda: not beside.snapshots.active)
        beside.run_to_end()
    finally:
        beside.close()
    records = [
        json.loads(value)
        for output in beside.outputs
        if isinstance(output, Batch) and output.topic.endswith(".t")
        for _key, value, _headers in output.messages
        if value is not None
    ]
    after = [(record["op"], record["after"]) for record in records]
    assert sorted(row["id"] for op, row in after if op == "r") == list(range(ROWS))
    newest = [row["v"] for _op, row in after if row["id"] == HOT]
    assert newest == sorted(newest), "no older state of the row comes after a newer one"
    assert newest[-1] == database.query(f"SELECT v FROM t WHERE id = {HOT}")[0][0]
