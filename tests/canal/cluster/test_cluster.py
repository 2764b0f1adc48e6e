"""Servers of a cluster take over from each other, and no change is lost or out of order."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kazoo.client import KazooClient

from rowtide.canal.cluster.nodes import Paths
from rowtide.canal.service import CanalService
from rowtide.cluster import candidate, session
from rowtide.tcp_server import Address
from tests.support.canal.client import changes, connected
from tests.support.canal.server import configured, running, until
from tests.support.network.tcp_proxy import TcpProxy

if TYPE_CHECKING:
    from rowtide_stack import Database, ZooKeeper

pytestmark = pytest.mark.servers


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidate, "WAIT_S", 1.0)


@pytest.fixture
def expire_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """End sessions after a short time without an answer, in tests that wait for it."""
    monkeypatch.setattr(session, "SESSION_S", 3.0)


def member(folder: Path, database: Database, destination: str, zookeeper: str) -> Path:
    """The folder of a server of the cluster."""
    return configured(folder, database, destination, f"canal.zkServers={zookeeper}")


def read(address: Address, name: str, wanted: int) -> list[str | None]:
    """The ids of rows, read and acknowledged until so many have come."""
    found: list[str | None] = []
    deadline = time.monotonic() + 180
    with connected(address, name) as client:
        while len(found) < wanted:
            assert time.monotonic() < deadline
            number, entries = client.get()
            found += [change.after["id"] for change in changes(entries) if not change.sql]
            if number != -1:
                client.ack(number)
        client.get(timeout_ms=-1)  # the server has handled the acknowledgement
    return found


def insert(database: Database, *ids: int) -> None:
    database.execute(*[f"INSERT INTO t (id) VALUES ({number})" for number in ids])


def stored(service: CanalService, name: str) -> bool:
    """Whether what the client has acknowledged is in ZooKeeper."""
    assert service._cluster is not None
    found = service._cluster._session.get(Paths(name).positions)
    return found is not None and b'"1001"' in found.content


def runs(service: CanalService, name: str) -> bool:
    instance = service.instances.get(name)
    return instance is not None and bool(instance.reading)


def test_another_server_takes_over_with_positions_and_schema_history(
    mariadb_db: Database, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    name, servers = mariadb_db.name, f"{zookeeper.host}:{zookeeper.port}"
    mariadb_db.execute("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(5) DEFAULT 'x')")
    second = member(tmp_path / "2", mariadb_db, name, servers)
    with running(member(tmp_path / "1", mariadb_db, name, servers)) as (first_address, first):
        until(lambda: runs(first, name))
        with connected(first_address, name):
            pass
        insert(mariadb_db, 1, 2)
        assert read(first_address, name, 2) == ["1", "2"]
        insert(mariadb_db, 3)
        mariadb_db.execute("ALTER TABLE t ADD COLUMN b INT FIRST")  # row 3 has the earlier structure
        with running(second) as (address, standby):
            insert(mariadb_db, 4)
            with pytest.raises(AssertionError), connected(address, name):
                pass  # "should start first"
            assert not standby.instances
            (tmp_path / "1" / name / "instance.properties").unlink()  # which ends it here
            until(lambda: runs(standby, name))
            assert read(address, name, 2) == ["3", "4"]
            assert not first.instances
    assert not list(tmp_path.glob(f"*/{name}/meta.dat"))


@pytest.mark.usefixtures("expire_soon")
def test_without_zookeeper_a_server_gives_way_before_another_one_takes_over(
    mariadb_db: Database, zookeeper: ZooKeeper, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name, servers = mariadb_db.name, f"{zookeeper.host}:{zookeeper.port}"
    mariadb_db.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    with TcpProxy(zookeeper.host, zookeeper.port) as proxy:
        folder = member(tmp_path / "1", mariadb_db, name, f"127.0.0.1:{proxy.port}")
        with running(folder) as (first_address, first):
            until(lambda: runs(first, name))
            with connected(first_address, name):
                pass
            with running(member(tmp_path / "2", mariadb_db, name, servers)) as (address, standby):
                insert(mariadb_db, 1)
                assert read(first_address, name, 1) == ["1"]
                until(lambda: stored(first, name))
                proxy.frozen.set()
                insert(mariadb_db, 2)
                until(lambda: runs(standby, name))
                assert not runs(first, name)
                with pytest.raises(AssertionError), connected(first_address, name):
                    pass
                insert(mariadb_db, 3)
                assert read(address, name, 2) == ["2", "3"]
                proxy.frozen.clear()
                until(lambda: f"destination {name}: another server runs it" in caplog.text)
                assert not first.instances


def test_a_session_that_expires_costs_no_change(mariadb_db: Database, zookeeper: ZooKeeper, tmp_path: Path) -> None:
    name, servers = mariadb_db.name, f"{zookeeper.host}:{zookeeper.port}"
    mariadb_db.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    with running(member(tmp_path / "1", mariadb_db, name, servers)) as (address, service):
        until(lambda: runs(service, name))
        before = service.instances[name]
        with connected(address, name):
            pass
        insert(mariadb_db, 1)
        assert read(address, name, 1) == ["1"]
        until(lambda: stored(service, name))
        assert service._cluster is not None
        client = service._cluster._session._client
        other = KazooClient(servers, client_id=client.client_id)
        other.start(30)
        other.stop()  # ends the session of both
        other.close()
        until(lambda: service.instances.get(name) not in (None, before) and runs(service, name))
        insert(mariadb_db, 2)
        assert read(address, name, 1) == ["2"]


@pytest.mark.usefixtures("expire_soon")
def test_a_server_that_starts_without_zookeeper_waits_for_it(
    mariadb_db: Database, zookeeper: ZooKeeper, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    name = mariadb_db.name
    with TcpProxy(zookeeper.host, zookeeper.port) as proxy:
        proxy.frozen.set()
        folder = member(tmp_path, mariadb_db, name, f"127.0.0.1:{proxy.port}")
        with running(folder) as (_, service):
            until(lambda: "no connection to ZooKeeper" in caplog.text)
            assert not service.instances
            proxy.frozen.clear()
            until(lambda: runs(service, name))
