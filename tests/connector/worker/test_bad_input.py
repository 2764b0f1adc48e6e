"""Errors say what to do, and no row is lost or wrong: configuration, privileges, history, damaged streams."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from rowtide.connector.check import CheckFailedError
from rowtide.connector.errors import ChecksumMismatch, HistoryMissing, PositionPurged, SnapshotError, UnknownTable
from rowtide.schema_history.errors import DamagedHistory
from tests.support.kafka.topic_tools import Topics
from tests.support.mysql.live_database import purge_binlogs
from tests.support.network.tcp_proxy import TcpProxy
from tests.support.processes.running_connector import connected, failure, run_until, running
from tests.support.processes.worker_process import SOON, Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = pytest.mark.servers

Configured = Callable[..., WorkerConfig]


def keys(topics: Topics, config: WorkerConfig, table: str) -> list[int]:
    return [json.loads(record.key or b"{}")["id"] for record in topics.read(config.topic(table))]


def insert(database: Database, first: int, last: int, table: str = "t") -> None:
    database.execute(*(f"INSERT INTO {table} VALUES ({key}, REPEAT('x', 100))" for key in range(first, last + 1)))


@pytest.fixture
def table(mysql_db: Database) -> str:
    """A table with three rows."""
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(100))")
    insert(mysql_db, 1, 3)
    return f"{mysql_db.name}.t"


def test_all_mistakes_of_a_configuration_are_reported_together(configured: Configured) -> None:
    config = configured(snapshot_mod="initial", table_include_list="a[", max_batch_size="many")
    with Worker(config) as worker:
        assert worker.wait() == 1
        log = worker.log
    assert "snapshot.mod" in log
    assert "snapshot.mode" in log, "the nearest name"
    assert "table.include.list" in log
    assert "max.batch.size" in log
    assert "Traceback" not in log


def test_a_missing_privilege(mysql_db: Database, configured: Configured) -> None:
    user = f"u_{mysql_db.name[-8:]}"
    mysql_db.execute(f"CREATE USER {user} IDENTIFIED BY 'pw'", f"GRANT SELECT ON *.* TO {user}")
    try:
        found = failure(configured(database_user=user, database_password="pw"))
    finally:
        mysql_db.execute(f"DROP USER {user}")
    assert isinstance(found, CheckFailedError)
    assert "REPLICATION SLAVE" in str(found)


def test_a_position_that_the_server_no_longer_has(kafka: Kafka, configured: Configured, topics: Topics) -> None:
    from rowtide_stack import MySQL

    with MySQL() as server, server.database() as database:
        database.execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(100))")
        insert(database, 1, 3)
        config = configured(database_port=str(server.port), database_include_list=database.name)
        run_until(config, topics, f"{database.name}.t", 3)
        offsets = topics.read(f"{config.name}-offsets")
        insert(database, 4, 6)
        purge_binlogs(server)
        found = failure(config)
        assert isinstance(found, PositionPurged)
        assert "no longer available on the server" in str(found)
        assert "snapshot.mode=when_needed" in str(found)
        assert keys(topics, config, f"{database.name}.t") == [1, 2, 3]
        assert topics.read(f"{config.name}-offsets") == offsets
        config.properties["snapshot.mode"] = "when_needed"
        run_until(config, topics, f"{database.name}.t", 9)
        assert keys(topics, config, f"{database.name}.t") == [1, 2, 3, 1, 2, 3, 4, 5, 6]


def test_a_history_that_is_missing_or_damaged(
    mysql_db: Database, table: str, configured: Configured, topics: Topics, kafka: Kafka
) -> None:
    config = configured()
    run_until(config, topics, table, 3)
    insert(mysql_db, 4, 4)
    history = config.properties["schema.history.internal.kafka.topic"]
    config.properties["schema.history.internal.kafka.topic"] = f"{history}-other"
    found = failure(config)
    assert isinstance(found, HistoryMissing)
    assert "snapshot.mode=recovery" in str(found)
    config.properties["schema.history.internal.kafka.topic"] = history
    end = len(topics.read(history))
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    producer.produce(history, b"no json")
    assert producer.flush(SOON) == 0
    found = failure(config)
    assert isinstance(found, DamagedHistory)
    assert f"topic '{history}' partition 0 offset {end}" in str(found)
    assert keys(topics, config, table) == [1, 2, 3], "nothing is guessed"


def test_a_table_that_cannot_be_read(table: str, configured: Configured, topics: Topics) -> None:
    """The snapshot fails, and its notifications report it."""
    config = configured(notification_enabled_channels="sink", snapshot_select_statement_overrides=table)
    config.properties[f"snapshot.select.statement.overrides.{table}"] = "SELECT nonsense"
    notes = config.properties["notification.sink.topic.name"] = f"{config.name}-notes"
    found = failure(config)
    assert isinstance(found, SnapshotError)
    assert f"table {table} cannot be read with 'SELECT nonsense'" in str(found)
    notifications = [json.loads(record.value or b"{}") for record in topics.read(notes)]
    assert [(one["type"], one["additional_data"].get("status")) for one in notifications] == [
        ("STARTED", None),
        ("IN_PROGRESS", None),
        ("TABLE_SCAN_COMPLETED", "SQL_EXCEPTION"),
        ("ABORTED", None),
    ]
    assert {one["aggregate_type"] for one in notifications} == {"Initial Snapshot"}


def test_rows_of_a_table_that_is_not_in_the_history(
    mysql_db: Database, table: str, configured: Configured, topics: Topics
) -> None:
    mysql_db.execute("CREATE TABLE b (id INT PRIMARY KEY, v VARCHAR(100))")
    config = configured(table_include_list=table)
    config.properties["schema.history.internal.store.only.captured.tables.ddl"] = "true"
    run_until(config, topics, table, 3)
    config.properties["table.include.list"] = f"{table},{mysql_db.name}.b"
    config.properties["rowtide.snapshot.new.tables"] = "none"
    insert(mysql_db, 4, 4)
    insert(mysql_db, 1, 1, "b")
    time.sleep(1.1)  # changed since the row, so that the server's structure of now is not taken for it
    mysql_db.execute("ALTER TABLE b ADD w INT", "ALTER TABLE b DROP w")
    insert(mysql_db, 5, 5)
    found = failure(config)
    assert isinstance(found, UnknownTable)
    assert f"{mysql_db.name}.b" in str(found)
    assert "snapshot.mode=recovery" in str(found)
    assert "(at binlog." in str(found)
    assert keys(topics, config, f"{mysql_db.name}.b") == []
    assert keys(topics, config, table) == [1, 2, 3, 4], "what was before is delivered, what follows waits"
    config.properties["snapshot.mode"] = "recovery"
    run_until(config, topics, table, 5)
    assert keys(topics, config, f"{mysql_db.name}.b") == [1]
    assert keys(topics, config, table) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("exactly_once", [True, False])
def test_a_stream_that_is_cut_or_damaged(
    mysql_db: Database, table: str, configured: Configured, topics: Topics, *, exactly_once: bool
) -> None:
    with TcpProxy(mysql_db.server.host, mysql_db.server.port) as proxy:
        config = configured(
            exactly_once=exactly_once, database_port=str(proxy.port), retriable_restart_connector_wait_ms="100"
        )
        config.properties["database.ssl.mode"] = "disabled"
        last = 3
        with running(config) as task:
            for cut in (5_000, 5_001, 7_345, 9_999, 12_500):
                eventually(lambda: connected(task), "streaming")
                proxy.cut_after, cuts = cut, proxy.cuts
                while proxy.cuts == cuts:
                    insert(mysql_db, last + 1, last + 20)
                    last += 20
            eventually(lambda: len(keys(topics, config, table)) >= last, "what was written while it was cut")
            assert keys(topics, config, table) == list(range(1, last + 1))
            proxy.flip_after = 0
            insert(mysql_db, last + 1, last + 1)
            assert task.wait(SOON)
        assert isinstance(task.failure, ChecksumMismatch), task.failure
        assert "(at binlog." in str(task.failure)
        assert keys(topics, config, table) == list(range(1, last + 1)), "the damaged row is not there"
        run_until(config, topics, table, last + 1)
        assert keys(topics, config, table) == list(range(1, last + 2)), "it comes when the server sends it whole"
