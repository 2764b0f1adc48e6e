"""Servers in ZooKeeper: one of them runs, and clients find it and its dump."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kazoo.client import KazooClient

from rowtide.cluster import candidate
from rowtide.cluster import session as session_module
from rowtide.cluster.session import ZooKeeperError, ZooKeeperSession
from rowtide.connector.errors import SnapshotError
from rowtide.connector.records.offset import SourceOffset
from rowtide.databus.client import ClientSettings
from rowtide.databus.client.start import DumpStart, _dump
from rowtide.databus.discovery import ROOT, DumpDescriptor, KeepAlive
from rowtide.databus.errors import DumpDiscarded
from rowtide.databus.events import Position, RowsEvent
from rowtide.databus.server.dumps import dumping as dumping_module
from rowtide.databus.server.dumps.dumping import Dumping
from rowtide.databus.server.dumps.folder import DumpFolder
from rowtide.databus.server.dumps.publication import PublishedPosition
from rowtide.databus.server.dumps.source import Dump, DumpPart
from rowtide.databus.server.registration import ServerNodes, ServerRegistration
from tests.support.canal.server import until
from tests.support.databus.messages import ITEMS, item
from tests.support.network.tcp_proxy import TcpProxy

if TYPE_CHECKING:
    from rowtide_stack import ZooKeeper

pytestmark = pytest.mark.servers

AT = Position("binlog.000003", 154)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "SESSION_S", 3.0)


@pytest.fixture
def nodes() -> ServerNodes:
    return ServerNodes(ROOT, "DumpMeta", "KeepAliveNode", f"t{uuid.uuid4().hex[:8]}")


@dataclass
class Servers:
    """Makes registrations with a clock of their own."""

    servers: str
    nodes: ServerNodes
    now: float = 1000.0

    def __post_init__(self) -> None:
        self.clock: Callable[[], float] = lambda: self.now

    @contextmanager
    def server(self, port: int, servers: str = "", host: str = "10.0.0.1") -> Iterator[ServerRegistration]:
        session = ZooKeeperSession(servers or self.servers, "zkpath")
        session._client.start(30)
        try:
            yield ServerRegistration(session, self.nodes, host, port, 60.0, self.clock, lambda: self.now)
        finally:
            session.close()

    def original(self, client: KazooClient, ip: str) -> None:
        """Write the keep-alive node as an original server does."""
        text = KeepAlive(ip, 888, self.nodes.topic, 1).encoded()
        client.ensure_path(self.nodes.keep_alive)
        client.set(self.nodes.keep_alive, f"{text}{self.now:.0f}".encode())

    def found(self) -> DumpStart:
        """Where a client would begin."""
        settings = ClientSettings(
            ("b:1",),
            self.nodes.topic,
            first_load=True,
            zookeeper=(self.servers,),
            node_name=self.nodes.node_name,
            keep_alive_path=self.nodes.keep_alive_path,
            discover_server=True,
        )
        return _dump(settings)


@pytest.fixture
def cluster(zookeeper: ZooKeeper, nodes: ServerNodes) -> Servers:
    return Servers(f"{zookeeper.host}:{zookeeper.port}", nodes)


@pytest.fixture
def client(cluster: Servers) -> Iterator[KazooClient]:
    """Another program at the same nodes."""
    client = KazooClient(cluster.servers)
    client.start(30)
    yield client
    client.stop()
    client.close()


def term(server: ServerRegistration) -> int:
    found = server.term
    assert found is not None
    return found


@pytest.mark.parametrize(("host", "shown"), [("10.0.0.1", "10.0.0.1"), ("::1", "[::1]")])
def test_clients_find_the_server_and_its_dump(cluster: Servers, client: KazooClient, host: str, shown: str) -> None:
    topic = cluster.nodes.topic
    with cluster.server(888, host=host) as server:
        server.poll()
        assert client.get(f"/Databus/KeepAliveNode/{topic}")[0] == f"{shown}:888:{topic}:1000".encode()
        assert server.dump() is None
        server.announce(DumpDescriptor("f", AT, 7), term(server))
        assert client.get(f"/Databus/DumpMeta/{topic}")[0] == b"f:binlog.000003:154:7"
        assert cluster.found() == DumpStart(DumpDescriptor("f", AT, 7), host, 888)
        cluster.now += 19  # within the session's time-out, had it been polled
        server.poll()
        server.poll()
        assert client.get(f"/Databus/KeepAliveNode/{topic}")[0].endswith(b":1000")
        cluster.now += 1
        server.poll()
        assert client.get(f"/Databus/KeepAliveNode/{topic}")[0].endswith(b":1020")


def test_another_server_takes_over_and_the_first_announces_nothing_more(cluster: Servers) -> None:
    with cluster.server(1) as first, cluster.server(2) as second:
        first.poll()
        second.poll()
        assert (first.term is None, second.term) == (False, None)
        before = term(first)
        first.release()
        assert first.term is None
        second.poll()
        assert second.term is None  # the first one may come back
        cluster.now += 6
        second.poll()
        first.poll()
        assert (first.term, second.term is None) == (None, False)
        second.announce(DumpDescriptor("of-second", AT, 7), term(second))
        with pytest.raises(ZooKeeperError, match="this server no longer runs it"):
            first.announce(DumpDescriptor("of-first", AT, 3), before)
        found = cluster.found()
        assert (found.dump.file, found.port) == ("of-second", 2)


def test_never_two_run_while_zookeeper_is_lost(
    cluster: Servers, zookeeper: ZooKeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidate, "WAIT_S", 1.0)
    cluster.clock = time.monotonic
    with (
        TcpProxy(zookeeper.host, zookeeper.port) as proxy,
        cluster.server(2) as second,
        cluster.server(1, f"127.0.0.1:{proxy.port}") as first,
    ):
        first.poll()
        second.poll()
        before = term(first)
        proxy.frozen.set()

        def taken_over() -> bool:
            second.poll()
            assert first.term is None or second.term is None
            return second.term is not None

        until(taken_over)
        assert first.term is None
        proxy.frozen.clear()
        until(lambda: first._session._client.connected)
        first.poll()
        assert first.term is None
        with pytest.raises(ZooKeeperError):
            first.announce(DumpDescriptor("f", AT, 1), before)
        assert second.dump() is None


def test_a_lost_session_begins_another_term(cluster: Servers, client: KazooClient) -> None:
    with cluster.server(1) as server:
        server.poll()
        before = term(server)
        other = KazooClient(cluster.servers, client_id=server._session._client.client_id)
        other.start(30)
        other.stop()  # ends the session of both
        other.close()

        def again() -> bool:
            cluster.now += 1
            server.poll()
            return server.term not in (None, before)

        until(again)
        assert client.get(cluster.nodes.keep_alive)[0].endswith(f":{cluster.now:.0f}".encode())
        with pytest.raises(ZooKeeperError):
            server.announce(DumpDescriptor("f", AT, 1), before)


def test_a_server_of_the_original_is_waited_for(cluster: Servers, client: KazooClient) -> None:
    cluster.original(client, "10.0.0.9")
    with cluster.server(1) as server:
        for _ in range(3):
            server.poll()
            assert server.term is None
            cluster.now += 50
            cluster.original(client, "10.0.0.9")
        server.poll()
        cluster.now += 59
        server.poll()
        assert server.term is None
        cluster.now += 1
        server.poll()
        assert server.term is not None
        assert b"10.0.0.1:1:" in client.get(cluster.nodes.keep_alive)[0]
        with cluster.server(2) as second:
            server.release()
            second.poll()  # the keep-alive is that of rowtide: there is nothing to wait for
            assert second.term is not None


def test_a_server_gives_way_to_one_of_the_original(cluster: Servers, client: KazooClient) -> None:
    with cluster.server(1) as server:
        server.poll()
        cluster.original(client, "10.0.0.9")
        before = client.get(cluster.nodes.keep_alive)[0]
        server.poll()
        assert server.term is None
        cluster.now += 30
        server.poll()
        assert server.term is None
        assert client.get(cluster.nodes.keep_alive)[0] == before


# --- dumps ---------------------------------------------------------------------------------------------------------


PLACE = SourceOffset("binlog.000003", 500, server="1")
READING = PublishedPosition("a stream", PLACE, 3, 3)


class _Source:
    """Counts the dumps that are taken."""

    taken = 0
    connector = "mysql"

    @contextmanager
    def dump(self) -> Iterator[Dump]:
        self.taken += 1
        yield Dump(Position("binlog.000003", 100 * self.taken), self.taken, self._parts(), PLACE, lambda: 17)

    def _parts(self) -> Iterator[DumpPart]:
        self.during()
        yield DumpPart(RowsEvent(ITEMS, "insert", (item(1),)).encoded(), 1)

    def during(self) -> None:
        """What happens while a dump is made."""


def test_a_dump_is_made_when_it_is_missing_or_due(cluster: Servers, tmp_path: Path) -> None:
    source, folder, streams = _Source(), DumpFolder(tmp_path / "1"), False
    with cluster.server(1) as server:
        dumping = Dumping(source, folder, server, 100.0, lambda: READING if streams else None, lambda: cluster.now)

        def taken() -> int:
            server.poll()
            dumping.poll()
            return source.taken

        dumping.poll()
        assert source.taken == 0  # another server may run
        assert taken() == 0
        streams = True
        assert (taken(), taken()) == (1, 1)
        first = cluster.found().dump
        assert (first.position, first.offset) == (Position("binlog.000003", 100), 1)
        cluster.now += 100
        server.poll()
        assert taken() == 2
        assert cluster.found().dump.offset == 2
        assert (folder.path / first.file).exists()  # for clients that have read the first name
        again = Dumping(source, folder, server, None, lambda: READING, lambda: cluster.now)
        again.poll()
        assert source.taken == 2  # the announced one is still here
        elsewhere = Dumping(source, DumpFolder(tmp_path / "2"), server, None, lambda: READING, lambda: cluster.now)
        elsewhere.poll()
        assert source.taken == 3
        server.announce(replace(first, offset=3), term(server))
        server._session._client.set(cluster.nodes.dump, b"damaged")
        Dumping(source, folder, server, None, lambda: READING, lambda: cluster.now).poll()
        assert source.taken == 4
        assert cluster.found().dump.offset == 4


def test_a_dump_of_a_term_that_ends_is_not_announced(cluster: Servers, tmp_path: Path) -> None:
    source, folder = _Source(), DumpFolder(tmp_path)
    with cluster.server(1) as server:
        source.during = server.release  # type: ignore[method-assign]
        server.poll()
        with pytest.raises(ZooKeeperError):
            Dumping(source, folder, server, None, lambda: READING, lambda: cluster.now).poll()
        assert server.dump() is None


def test_a_dump_is_made_again_if_the_connector_reads_from_another_server(cluster: Servers, tmp_path: Path) -> None:
    source, readings = _Source(), [READING]

    def fail_over() -> None:
        if source.taken == 1:
            readings.append(replace(READING, stream="another stream"))

    source.during = fail_over  # type: ignore[method-assign]
    with cluster.server(1) as server:
        server.poll()
        dumping = Dumping(source, DumpFolder(tmp_path), server, None, lambda: readings[-1], lambda: cluster.now)
        with pytest.raises(DumpDiscarded):
            dumping.poll()
        assert server.dump() is None
        assert list(tmp_path.iterdir()) == []
        dumping.poll()
        assert cluster.found().dump.offset == 2
        assert b'"Rows":1,"Offset":17}' in (tmp_path / cluster.found().dump.file).read_bytes()


@pytest.mark.parametrize("ends", ["stop", "term"])
def test_a_dump_whose_events_are_not_published_is_given_up_at_the_end(
    cluster: Servers, tmp_path: Path, ends: str
) -> None:
    source, readings, waits = _Source(), [READING], threading.Event()

    def lags() -> None:
        readings[0] = replace(READING, sequence=4, position=replace(PLACE, pos=499))
        waits.set()

    source.during = lags  # type: ignore[method-assign]
    with cluster.server(1) as server:
        server.poll()
        dumping = Dumping(source, DumpFolder(tmp_path), server, None, lambda: readings[0], lambda: cluster.now)
        dumping.start()
        assert waits.wait(30)
        assert server.dump() is None
        if ends == "term":
            server.release()
            until(lambda: list(tmp_path.iterdir()) == [])
        dumping.stop()
        assert not dumping._thread.is_alive()
        assert server.dump() is None
    assert list(tmp_path.iterdir()) == []


def test_a_dump_that_fails_is_repeated(
    cluster: Servers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(dumping_module, "_FIRST_WAIT_S", 0.1)
    source, folder = _Source(), DumpFolder(tmp_path)

    def fails_once() -> None:
        if source.taken == 1:
            raise SnapshotError("table shop.items is gone")

    source.during = fails_once  # type: ignore[method-assign]
    with cluster.server(1) as server:
        server.poll()
        dumping = Dumping(source, folder, server, None, lambda: READING, lambda: cluster.now)
        dumping.start()
        until(lambda: server.dump() is not None)
        dumping.stop()
        assert cluster.found().dump.offset == 2
    assert "no dump is made: table shop.items is gone; retrying in" in caplog.text
    assert len(list(tmp_path.iterdir())) == 1
