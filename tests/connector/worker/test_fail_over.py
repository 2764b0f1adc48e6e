"""A reconnect that reaches another server: the stream resumes only if that server has all changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from rowtide.connector.errors import PositionPurged
from tests.support.kafka.topic_tools import Topics
from tests.support.mysql.live_database import purge_binlogs
from tests.support.network.tcp_proxy import TcpProxy
from tests.support.processes.running_connector import connected, running
from tests.support.processes.worker_process import SOON, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import SqlServer

pytestmark = pytest.mark.servers

Configured = Callable[..., WorkerConfig]
Servers = tuple["SqlServer", "SqlServer"]


@pytest.fixture(params=["mysql", "mariadb", "mysql without GTIDs"])
def servers(request: pytest.FixtureRequest) -> Iterator[Servers]:
    """Two independent servers with the same table, and binlog files of the same names."""
    from rowtide_stack import MariaDB, MySQL

    kind = MariaDB if request.param == "mariadb" else MySQL
    without = {"gtid_mode": None, "enforce_gtid_consistency": None}
    options = without if request.param.endswith("GTIDs") else {}
    with kind({**options, "server_id": 11}) as one, kind({**options, "server_id": 12}) as other:
        for server in (one, other):
            server.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1)")
        yield one, other


def through(proxy: TcpProxy, server: SqlServer, configured: Configured) -> WorkerConfig:
    config = configured(
        database_hostname="127.0.0.1",
        database_port=str(proxy.port),
        database_flavor=server.name,
        database_include_list="d",
        retriable_restart_connector_wait_ms="100",
    )
    config.properties |= {"database.user": server.user, "database.password": server.password}
    config.properties["database.ssl.mode"] = "disabled" if server.name == "mysql" else "disable"
    return config


def keys(topics: Topics, config: WorkerConfig) -> list[int]:
    return [json.loads(record.key or b"{}")["id"] for record in topics.read(config.topic("d.t"))]


def test_another_server_is_refused(servers: Servers, configured: Configured, topics: Topics) -> None:
    one, other = servers
    other.execute(*(f"INSERT INTO d.t VALUES ({key})" for key in range(100, 120)))  # its file reaches the position
    with TcpProxy(one.host, one.port) as proxy:
        config = through(proxy, one, configured)
        with running(config) as task:
            one.execute("INSERT INTO d.t VALUES (2)", "INSERT INTO d.t VALUES (3)")
            eventually(lambda: connected(task) and keys(topics, config) == [1, 2, 3], "the rows")
            proxy.redirect(other.host, other.port)
            assert task.wait(SOON)
        assert isinstance(task.failure, PositionPurged), task.failure
        reasons = ("this is another server", "and this is server", "is not in the master's binlog")  # MariaDB's own
        assert any(reason in str(task.failure) for reason in reasons), task.failure
        assert "snapshot.mode=when_needed" in str(task.failure)
        with running(config) as task:
            assert task.wait(SOON), "nor is it accepted at the next start"
        assert isinstance(task.failure, PositionPurged), task.failure
        assert keys(topics, config) == [1, 2, 3]
        proxy.redirect(one.host, one.port)
        one.execute("INSERT INTO d.t VALUES (4)")
        with running(config) as task:
            eventually(lambda: connected(task) and keys(topics, config) == [1, 2, 3, 4], "the old server again")


def test_a_server_that_has_purged_unread_changes_is_refused(
    servers: Servers, configured: Configured, topics: Topics
) -> None:
    one, _ = servers
    with TcpProxy(one.host, one.port) as proxy:
        config = through(proxy, one, configured)
        with running(config) as task:
            eventually(lambda: connected(task) and keys(topics, config) == [1], "the row")
            proxy.frozen.set()
            proxy.redirect(one.host, one.port)
            one.execute("INSERT INTO d.t VALUES (2)")
            purge_binlogs(one)
            proxy.frozen.clear()
            assert task.wait(SOON)
        assert isinstance(task.failure, PositionPurged), task.failure
        assert "purged" in str(task.failure)
        assert keys(topics, config) == [1]
