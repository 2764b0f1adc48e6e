"""A worker is stopped while a query of a snapshot does not answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.support.kafka.topic_tools import Topics
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

Configured = Callable[..., WorkerConfig]

SILENT = "SLEEP(600) = 0"


def running(database: Database, text: str) -> bool:
    """Whether a session of the server runs a statement with this text."""
    return any(text in str(row[7]) for row in database.server.query("SHOW FULL PROCESSLIST") if row[4] == "Query")


def stopped(worker: Worker, database: Database, text: str) -> str:
    """Stop a worker whose connection runs a statement, which must end on the server, too; returns the log."""
    eventually(lambda: running(database, text), f"{text} runs")
    log = worker.stop()
    eventually(lambda: not running(database, text), f"{text} has ended")
    assert "stopped in" in log
    assert " ERROR " not in log
    return log


@pytest.mark.parametrize("threads", ["1", pytest.param("2", marks=pytest.mark.nightly)])
def test_the_rows_of_a_snapshot(mysql_db: Database, topics: Topics, configured: Configured, threads: str) -> None:
    table = f"{mysql_db.name}.t"
    config = configured(notification_enabled_channels="sink", snapshot_max_threads=threads)
    notes = config.properties["notification.sink.topic.name"] = f"{config.name}-notes"
    overrides = "snapshot.select.statement.overrides"
    config.properties |= {overrides: table, f"{overrides}.{table}": f"SELECT * FROM {table} WHERE {SILENT}"}
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with Worker(config) as worker:
        log = stopped(worker, mysql_db, SILENT)
    assert "the snapshot was interrupted; the next start takes it again from the beginning" in log
    told = [json.loads(record.value or b"{}")["type"] for record in topics.read(notes)]
    assert told[0] == "STARTED"
    assert told[-1] == "ABORTED"


def test_the_lock_of_a_snapshot(mysql_db: Database, configured: Configured) -> None:
    """While it waits, no other session can write. So it must not wait on when the worker is gone."""
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    with mysql_db.connect() as locking, locking.cursor() as cursor:
        cursor.execute("LOCK TABLES t WRITE")
        with Worker(configured()) as worker:
            log = stopped(worker, mysql_db, "FLUSH TABLES WITH READ LOCK")
    assert "the snapshot was interrupted" in log


@pytest.mark.parametrize("kind", ["incremental", "blocking"])
def test_a_snapshot_of_a_signal(mysql_db: Database, configured: Configured, kind: str) -> None:
    table = f"{mysql_db.name}.t"
    condition = SILENT if kind == "incremental" else f"SELECT * FROM {table} WHERE {SILENT}"
    data = {
        "type": kind,
        "data-collections": [table],
        "additional-conditions": [{"data-collection": table, "filter": condition}],
    }
    config = configured(snapshot_mode="no_data")
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with Worker(config).streaming() as worker:
        body = json.dumps({"id": "s", "type": "execute-snapshot", "data": data})
        assert worker.send("POST", f"/connectors/{config.name}/signals", body)[0] < 300
        log = stopped(worker, mysql_db, SILENT)
    assert " WARN" not in log
    assert ("the blocking snapshot was interrupted" in log) == (kind == "blocking")
