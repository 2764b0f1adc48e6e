"""Incremental snapshots on real servers that are stopped, paused, requested twice and interrupted at any time."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from rowtide.connector.records.batch import Batch
from tests.support.incremental_stream import BesideStream

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

ROWS = 60


def fill(database: Database, *tables: str) -> None:
    rows = ", ".join(f"({number}, 0)" for number in range(ROWS))
    for table in tables:
        database.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)", f"INSERT INTO {table} VALUES {rows}")


def read(beside: BesideStream) -> Counter[str]:
    """How many rows of each table were read."""
    found: Counter[str] = Counter()
    for output in beside.outputs:
        if isinstance(output, Batch) and output.topic not in ("", "notices"):
            ops = [json.loads(value)["op"] for _key, value, _headers in output.messages if value]
            found[output.topic.rpartition(".")[2]] += ops.count("r")
    return found


def completed(beside: BesideStream) -> list[tuple[str, str]]:
    """The signals and tables whose end was reported, in order."""
    return [
        (one["id"], one["additional_data"]["scanned_collection"].rpartition(".")[2])
        for one in beside.notifications()
        if one["type"] == "TABLE_SCAN_COMPLETED"
    ]


def test_requests_that_overlap_are_carried_out_one_after_the_other(database: Database) -> None:
    fill(database, "a", "b")
    beside = BesideStream(database, chunk_size=7, threads=2, notification_topic="notices")
    try:
        beside.execute(rf"{database.name}\.[ab]", rf"{database.name}\..*", signal_id="s1")
        beside.execute(rf"{database.name}\.b", rf"{database.name}\.nosuch", signal_id="s2")
        beside.run(lambda: not beside.snapshots.active)
    finally:
        beside.close()
    assert read(beside) == {"a": ROWS, "b": 2 * ROWS}
    assert completed(beside) == [("s1", "a"), ("s1", "b"), ("s2", "b"), ("s2", "nosuch")]


def test_a_crash_between_the_request_and_the_first_chunk(database: Database) -> None:
    fill(database, "a")
    beside = BesideStream(database, chunk_size=7, notification_topic="notices")
    try:
        beside.execute(rf"{database.name}\.a")
        beside.crash(len(beside.outputs))
        assert beside.snapshots.active
        beside.run(lambda: not beside.snapshots.active)
    finally:
        beside.close()
    assert read(beside) == {"a": ROWS}


def test_a_table_that_is_truncated_while_it_is_read(database: Database) -> None:
    """No row that was read before comes after the statement."""
    fill(database, "a")
    beside = BesideStream(database, chunk_size=5, lag_s=0.1)
    try:
        beside.execute(rf"{database.name}\.a")
        beside.run(lambda: read(beside)["a"] > 0)
        database.execute("TRUNCATE TABLE a", "INSERT INTO a VALUES (1000, 1)")
        beside.run_to_end()
    finally:
        beside.close()
    ops = [
        (json.loads(value)["op"], json.loads(value)["after"]["id"])
        for output in beside.outputs
        if isinstance(output, Batch) and output.topic.endswith(".a")
        for _key, value, _headers in output.messages
        if value
    ]
    assert ops.count(("c", 1000)) == 1
    assert {number for op, number in ops[ops.index(("c", 1000)) :] if op == "r"} <= {1000}
    assert len(ops) < ROWS


def test_stops_and_pauses_in_every_state(database: Database) -> None:
    fill(database, "a", "b")
    beside = BesideStream(database, chunk_size=3, notification_topic="notices")
    try:
        for act in (beside.pause, beside.resume, beside.stop):
            act()  # there is nothing to pause, to resume or to stop
        beside.execute(rf"{database.name}\.[ab]")
        beside.pause()  # before the first chunk
        beside.pause()
        assert not beside.snapshots.active
        beside.resume()
        beside.resume()
        beside.run(lambda: read(beside)["a"] > 3)
        beside.pause()
        beside.stop(rf"{database.name}\.a")  # while it is paused
        assert not beside.snapshots.active
        beside.crash(len(beside.outputs))
        assert not beside.snapshots.active, "a pause outlives a crash"
        beside.resume()
        beside.run(lambda: not beside.snapshots.active)
        beside.execute(rf"{database.name}\.a")
        beside.pause()
        beside.stop()
        beside.execute(rf"{database.name}\.a")
        beside.run(lambda: not beside.snapshots.active)  # a stop ends the pause, too
    finally:
        beside.close()
    found = read(beside)
    assert found["b"] == ROWS
    assert ROWS < found["a"] < 2 * ROWS
