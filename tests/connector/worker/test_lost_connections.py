"""Connections to the database that are cut or freeze, and servers that are away at the start."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rowtide_stack.ports import free_port

from tests.support.kafka.topic_tools import Topics
from tests.support.network.tcp_proxy import TcpProxy
from tests.support.processes.running_connector import connected, running
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka, MySQL

pytestmark = pytest.mark.servers

Configured = Callable[..., WorkerConfig]

STATEMENTS = [
    "VERSION()",
    "SHOW GLOBAL VARIABLES",
    "SHOW GRANTS",
    "SHOW REPLICAS",
    "information_schema.COLUMNS",
    "SET SESSION time_zone",
    "SET SESSION max_execution_time",
    "show_gipk_in_create_table",
    "information_schema.SCHEMATA",
    "SHOW FULL TABLES",
    "lock_wait_timeout",
    "FLUSH TABLES",
    "START TRANSACTION",
    "LOG STATUS",
    "@@GLOBAL.gtid_mode",
    "server_uuid",
    "XA RECOVER",
    "@@lower_case_table_names",
    "SHOW CREATE TABLE",
    "character_set_server",
    "UNLOCK TABLES",
    "SELECT TABLE_NAME, TABLE_ROWS",
    "UNIX_TIMESTAMP()",
    "`id`",
    "@@GLOBAL.gtid_purged",
    "master_binlog_checksum",
    "replica_uuid",
]
"""A part of each statement of a check, a snapshot, a recovery and a stream."""
OFTEN = {"VERSION()", "SHOW GRANTS", "FLUSH TABLES", "LOG STATUS", "XA RECOVER", "SHOW CREATE TABLE", "`id`"}
AT_A_RESTART = {"SET SESSION time_zone", "@@GLOBAL.gtid_purged", "@@lower_case_table_names", "master_binlog_checksum"}


def keys(topics: Topics, config: WorkerConfig, database: Database) -> list[int]:
    return [json.loads(record.key or b"{}")["id"] for record in topics.read(config.topic(f"{database.name}.t"))]


@pytest.fixture
def table(mysql_db: Database) -> Database:
    """A database with a table of three rows."""
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2), (3)")
    return mysql_db


@pytest.fixture
def proxied(table: Database, configured: Configured) -> Callable[..., WorkerConfig]:
    """A configuration that connects through a proxy, with short time limits."""

    def make(proxy: TcpProxy, **more: str) -> WorkerConfig:
        times = {"retriable_restart_connector_wait_ms": "100", "connect_timeout_ms": "1000"}
        config = configured(**{"database_port": str(proxy.port), **times, **more})
        config.properties["database.ssl.mode"] = "disabled"
        return config

    return make


@pytest.mark.parametrize(
    "statement",
    [pytest.param(one, marks=() if one in OFTEN | AT_A_RESTART else pytest.mark.nightly) for one in STATEMENTS],
)
def test_a_connection_that_is_cut_at_any_statement(
    table: Database, proxied: Callable[..., WorkerConfig], topics: Topics, statement: str
) -> None:
    with TcpProxy(table.server.host, table.server.port) as proxy:
        config = proxied(proxy)
        proxy.cut_at = statement.encode()
        with running(config) as task:
            eventually(lambda: connected(task) and len(keys(topics, config, table)) >= 3, "the snapshot")
            assert proxy.cuts == 1, "no such statement"
        if statement not in AT_A_RESTART:
            return
        table.execute("INSERT INTO t VALUES (4)")
        proxy.cut_at = statement.encode()
        with running(config) as task:
            eventually(lambda: connected(task) and len(keys(topics, config, table)) >= 4, "the stream")
            assert proxy.cuts == 2, "no such statement"


@pytest.mark.parametrize(
    "statement", ["max_statement_time", "gtid_binlog_pos", "BINLOG_GTID_POS", "slave_capability", "slave_connect_state"]
)
def test_a_connection_to_mariadb_that_is_cut_at_a_statement_of_its_own(
    mariadb_db: Database, kafka: Kafka, tmp_path: Path, statement: str
) -> None:
    mariadb_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    server = mariadb_db.server
    with TcpProxy(server.host, server.port) as proxy:
        more = {"database.include.list": mariadb_db.name, "database.port": str(proxy.port)}
        config = WorkerConfig(tmp_path, server, kafka.bootstrap, more)
        proxy.cut_at = statement.encode()
        with running(config) as task:
            eventually(lambda: connected(task) and keys(Topics(kafka.bootstrap), config, mariadb_db) == [1], "the row")
            assert proxy.cuts == 1, "no such statement"


def test_a_start_against_a_silent_database(
    table: Database, proxied: Callable[..., WorkerConfig], topics: Topics
) -> None:
    with TcpProxy(table.server.host, table.server.port) as proxy:
        proxy.frozen.set()
        config = proxied(proxy)
        with Worker(config) as worker:
            worker.wait_for_log("cannot be reached", 2)
            assert f"127.0.0.1:{proxy.port}" in worker.log
            health = worker.health()
            assert health["status"] == "DOWN"
            assert f"127.0.0.1:{proxy.port} cannot be reached" in health["error"]
            worker.signal()
            worker.wait()
            assert "Traceback" not in worker.log
        with Worker(config) as worker:
            worker.wait_for_log("cannot be reached")
            proxy.frozen.clear()
            worker.streaming().stop()
        assert keys(topics, config, table) == [1, 2, 3]


@pytest.mark.parametrize("said", ["checking the database", "reading the binlog from"])
def test_sigterm_ends_the_process_while_the_database_is_silent(
    table: Database, proxied: Callable[..., WorkerConfig], said: str
) -> None:
    """Any thread may wait for the server, such as the one that looks up the lag; queries have long time limits."""
    with TcpProxy(table.server.host, table.server.port) as proxy:
        config = proxied(proxy, task_shutdown_graceful_timeout_ms="3000", connect_timeout_ms="600000")
        if said == "checking the database":
            proxy.frozen.set()
        with Worker(config).wait_for_log(said) as worker:
            proxy.frozen.set()
            worker.get("/health")
            worker.signal()
            worker.wait()
            assert "Traceback" not in worker.log


def test_a_snapshot_from_a_server_that_freezes(
    mysql_db: Database, proxied: Callable[..., WorkerConfig], topics: Topics
) -> None:
    mysql_db.execute(
        f"INSERT INTO t VALUES {','.join(f'({key})' for key in range(4, 200_000))}",
        "ALTER TABLE t ADD COLUMN padding CHAR(250) NOT NULL DEFAULT 'x'",
        "UPDATE t SET padding = REPEAT('x', 250)",  # more than is on the way when the server freezes
    )
    with TcpProxy(mysql_db.server.host, mysql_db.server.port) as proxy:
        config = proxied(proxy)
        with Worker(config).wait_for_log("reading table") as worker:
            proxy.frozen.set()
            worker.wait_for_log("no answer for")
            eventually(lambda: worker.health()["status"] == "DOWN", "the health")
            proxy.frozen.clear()
            worker.streaming().stop()
        assert set(keys(topics, config, mysql_db)) == set(range(1, 200_000))


def test_a_database_that_is_away_at_the_start(own_mysql: MySQL, kafka: Kafka, tmp_path: Path) -> None:
    with own_mysql.database() as database:
        database.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
        more = {"database.include.list": database.name}
        config = WorkerConfig(tmp_path, own_mysql, kafka.bootstrap, more)
        own_mysql.stop()
        with Worker(config) as worker:
            worker.wait_for_log("cannot be reached", 2)
            assert worker.running
            own_mysql.start()
            worker.streaming().stop()
        assert keys(Topics(kafka.bootstrap), config, database) == [1]


def test_retries_at_the_start_are_limited(table: Database, configured: Configured) -> None:
    config = configured(database_port=str(free_port()), errors_max_retries="2")
    with Worker(config) as worker:
        assert worker.wait() == 1
        assert worker.log.count("starts again") == 2
        assert f"connector {config.name} has failed: database.hostname" in worker.log
        assert "Traceback" not in worker.log


def test_wrong_credentials_end_a_start_at_once(table: Database, configured: Configured) -> None:
    config = configured(database_password="not-this-one")
    with Worker(config) as worker:
        assert worker.wait() == 1
        assert "starts again" not in worker.log
        assert "database.password" in worker.log
        assert "not-this-one" not in worker.log


def test_kafka_that_is_away_at_the_start(table: Database, own_kafka: Kafka, tmp_path: Path) -> None:
    more = {"database.include.list": table.name, "retriable.restart.connector.wait.ms": "100"}
    config = WorkerConfig(tmp_path, table.server, own_kafka.bootstrap, more)
    own_kafka.stop()
    try:
        with Worker(config) as worker:
            worker.wait_for_log("no Kafka broker answers", 2)
            own_kafka.start()
            worker.streaming().stop()
    finally:
        own_kafka.start()
    assert keys(Topics(own_kafka.bootstrap), config, table) == [1, 2, 3]
