"""Chunks that are read under difficulties: without the signal table, and with too many rows of the same key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rowtide.connector.config.choices import Watermarking
from rowtide.connector.records.batch import Batch
from rowtide.connector.snapshot.incremental.reading import chunk_worker
from rowtide.connector.snapshot.incremental.reading.watermarks import SignalRows
from rowtide.schema_history.model import TableId
from tests.support.incremental_stream import BesideStream

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers


def read(beside: BesideStream, table: str) -> list[bytes | None]:
    """The keys of the records of a table."""
    return [
        key
        for output in beside.outputs
        if isinstance(output, Batch) and output.topic.endswith(f".{table}")
        for key, _value, _headers in output.messages
    ]


@pytest.mark.parametrize(
    "change",
    ["DROP TABLE sig", "ALTER TABLE sig CHANGE id number VARCHAR(64)", "ALTER TABLE sig ADD COLUMN more INT"],
)
def test_a_signal_table_that_is_altered_or_dropped_is_done_without(
    database: Database, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    rows = ", ".join(f"({number})" for number in range(30))
    database.execute(
        "CREATE TABLE t (id INT PRIMARY KEY)", f"INSERT INTO t VALUES {rows}",
        "CREATE TABLE sig (id VARCHAR(64) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))",
    )  # fmt: skip
    signal_rows = SignalRows(TableId(database.name, "sig"), "id", Watermarking.INSERT_DELETE)
    beside = BesideStream(database, chunk_size=4, signal_rows=signal_rows)
    try:
        beside.execute(rf"{database.name}\.t")
        beside.run(lambda: len(read(beside, "t")) > 4)
        database.execute(change)
        beside.run(lambda: not beside.snapshots.active)
    finally:
        beside.close()
    assert sorted(read(beside, "t")) == sorted(b'{"id":%d}' % number for number in range(30))
    assert "chunks are read without rows in the signal table" in caplog.text


def test_rows_of_the_same_key_that_do_not_fit_into_memory_are_refused(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_worker, "_MAX_BYTES", 10_000)
    monkeypatch.setattr(chunk_worker, "_MAX_BYTES_OF_KEY", 200_000)
    rows = ", ".join(f"({number // 3}, REPEAT('x', 1000))" for number in range(300))
    database.execute("CREATE TABLE a (s INT, v TEXT)", f"INSERT INTO a VALUES {rows}", "CREATE TABLE b LIKE a",
                     "INSERT INTO b SELECT 1, v FROM a")  # fmt: skip
    beside = BesideStream(database, chunk_size=1000, notification_topic="notices")
    try:
        beside.execute(rf"{database.name}\.[ab]", **{"surrogate-key": "s"})
        beside.run(lambda: not beside.snapshots.active)
    finally:
        beside.close()
    assert len(read(beside, "a")) == 300
    assert read(beside, "b") == []
    found = {
        one["additional_data"]["scanned_collection"]: one["additional_data"]["status"]
        for one in beside.notifications()
        if one["type"] == "TABLE_SCAN_COMPLETED"
    }
    assert found == {f"{database.name}.a": "SUCCEEDED", f"{database.name}.b": "SQL_EXCEPTION"}
