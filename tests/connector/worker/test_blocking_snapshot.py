"""Blocking snapshots by a worker, under load: killed in the middle, paused and stopped."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.mysql.refilled_table import ROWS, Refilled
from tests.support.processes.worker_process import Worker, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = pytest.mark.servers

CAMPAIGN = "ROWTIDE_CAMPAIGN" in os.environ
KILLS = 4 if CAMPAIGN else 1
THREADS = {"mysql": 1, "mariadb": 2}
READING_S = 4.0
"""How long a snapshot reads at least, if it is not interrupted."""


@pytest.fixture
def table(request: pytest.FixtureRequest, flavor: str, kafka: Kafka, tmp_path: Path) -> Refilled:
    """A table on a server."""
    database: Database = request.getfixturevalue(f"{flavor}_db")
    return Refilled(database, kafka, tmp_path, {"snapshot.max.threads": str(THREADS[flavor])})


def execute(table: Refilled, worker: Worker, signal_id: str) -> None:
    """Have the table read again, slowly."""
    of_a_row = READING_S / ROWS * THREADS[table.database.server.name]
    query = f"SELECT id, ver FROM {table.database.name}.t WHERE SLEEP({of_a_row}) = 0"
    condition = {"data-collection": f"{table.database.name}.t", "filter": query}
    table.signal(worker, "execute-snapshot", signal_id, type="blocking", **{"additional-conditions": [condition]})


def add(table: Refilled, key: int) -> None:
    """Insert a row, and wait for its record."""
    table.database.execute(f"INSERT INTO t VALUES ({key}, 0)")
    eventually(lambda: any(found == key for found, _ in table.records()), "the stream goes on")


@pytest.mark.parametrize("flavor", ["mysql", pytest.param("mariadb", marks=pytest.mark.nightly)])
def test_a_killed_worker_begins_again(table: Refilled) -> None:
    """All changes arrive, and no record has an older state of a row than a record before it."""
    with table.load():
        with Worker(table.config).streaming() as worker:
            execute(table, worker, "s")
            table.chunk_read(worker)
            read = worker.health()["position"]["read"]["pos"]
            eventually(lambda: worker.health()["position"]["stored"]["pos"] >= read, "the signal is stored")
            worker.kill()
        for _ in range(KILLS - 1):
            with Worker(table.config).wait_for_log("starts over") as worker:
                table.chunk_read(worker)
                worker.kill()
        with Worker(table.config).wait_for_log("starts over") as worker:
            worker.wait_for_log("is complete; the stream continues")
            worker.stop()
    with Worker(table.config).streaming() as worker:
        add(table, ROWS)
        log = worker.stop()
    table.check_rows()
    assert table.reads() >= ROWS // 2, "rows that the load has deleted are missing"
    assert "starts over" not in log, "the signal is done once"


@pytest.mark.parametrize("flavor", [pytest.param("mysql", marks=pytest.mark.nightly), "mariadb"])
def test_a_snapshot_is_paused_and_stopped(table: Refilled) -> None:
    """A pause lets the stream go on and outlives a restart; then the snapshot begins again, until it is stopped."""
    with Worker(table.config).streaming() as worker:
        execute(table, worker, "s")
        table.chunk_read(worker)
        table.signal(worker, "pause-snapshot", "pause", type="blocking")
        add(table, ROWS)
        worker.stop()
    read = table.reads()
    assert read < ROWS
    with Worker(table.config).streaming() as worker:
        add(table, ROWS + 1)
        assert table.reads() == read
        table.signal(worker, "resume-snapshot", "resume", type="blocking")
        table.chunk_read(worker)
        table.signal(worker, "stop-snapshot", "stop", type="blocking")
        add(table, ROWS + 2)
        worker.stop()
    read = table.reads()
    with Worker(table.config).streaming() as worker:
        add(table, ROWS + 3)
        worker.stop()
    assert table.reads() == read
