"""Two servers: clients find the dump of the one that runs, also after a take-over."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from kazoo.client import KazooClient

from rowtide.cluster import candidate, session
from rowtide.connector.records.offset import SourceOffset
from rowtide.databus.client.dump import DumpReader
from rowtide.databus.discovery import ROOT, DumpDescriptor, KeepAlive
from rowtide.databus.errors import DumpError
from rowtide.databus.events import Position, RowsEvent
from rowtide.databus.server.dumps.publication import PublishedPosition
from rowtide.databus.server.dumps.source import Dump, DumpPart
from rowtide.databus.server.registration import ServerNodes
from rowtide.databus.server.service import DumpService, DumpSettings
from tests.support.canal.server import until
from tests.support.databus.messages import ITEMS, item
from tests.support.network.tcp_proxy import TcpProxy
from tests.support.processes.worker_process import SOON

if TYPE_CHECKING:
    from rowtide_stack import ZooKeeper

pytestmark = pytest.mark.servers


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "SESSION_S", 3.0)
    monkeypatch.setattr(candidate, "WAIT_S", 1.0)


PLACE = SourceOffset("binlog.000001", 4, server="1")
READING = PublishedPosition("a stream", PLACE, 0, 0)


class _Source:
    """Makes dumps of one row, the server's number."""

    connector = "mysql"

    def __init__(self, number: int) -> None:
        self._number = number

    @contextmanager
    def dump(self) -> Iterator[Dump]:
        event = RowsEvent(ITEMS, "insert", (item(self._number),))
        yield Dump(Position("binlog.000001", 4), 0, iter([DumpPart(event.encoded(), 1)]), PLACE, lambda: 0)


class _Servers:
    """Servers of one topic, and what their clients find.

    Args:
        folder: has their folders.
        zookeeper: where clients find it.
    """

    def __init__(self, folder: Path, zookeeper: str) -> None:
        self._folder = folder
        self.zookeeper = zookeeper
        self._nodes = ServerNodes(ROOT, "DumpMeta", "KeepAliveNode", f"t{uuid.uuid4().hex[:8]}")

    @contextmanager
    def server(
        self, number: int, ended: threading.Event, zookeeper: str = "", host: str = "::1"
    ) -> Iterator[DumpService]:
        folder = self._folder / str(number)
        settings = DumpSettings(zookeeper or self.zookeeper, self._nodes, folder, host, 0, host, None, 60.0)
        service = DumpService(settings, _Source(number), "zkpath")
        service.start(lambda: READING, ended.set)
        try:
            yield service
        finally:
            service.stop()

    def begin(self, client: KazooClient) -> int | None:
        """The row that a client which begins now gets; ``None`` if it cannot begin yet."""
        try:
            dump = DumpDescriptor.decode(client.get(self._nodes.dump)[0].decode(), "dump")
            server = KeepAlive.decode(client.get(self._nodes.keep_alive)[0].decode(), "server")
            reader = DumpReader(server.ip, server.port, dump.file, end_marker=True)
        except DumpError:  # the dump of the server before
            return None
        try:
            event = reader.poll(30.0)
            assert event is not None
            return int(event.rows[0][0] or b"")
        finally:
            reader.close()


def test_another_server_takes_over_with_a_dump_of_its_own(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    servers = _Servers(tmp_path, f"{zookeeper.host}:{zookeeper.port}")
    ended, never = threading.Event(), threading.Event()
    client = KazooClient(servers.zookeeper)
    client.start(30)
    try:
        with (
            TcpProxy(zookeeper.host, zookeeper.port) as proxy,
            servers.server(1, ended, f"127.0.0.1:{proxy.port}") as first,
        ):
            assert first.wait(SOON)
            until(lambda: client.exists(servers._nodes.dump) is not None)
            assert servers.begin(client) == 1
            with servers.server(2, never, host="127.0.0.1") as second:
                assert not second.wait(2)
                proxy.frozen.set()
                assert second.wait(SOON)
                assert ended.wait(SOON)
                assert not first.wait(0)
                until(lambda: servers.begin(client) == 2)
                proxy.frozen.clear()
                assert not never.is_set()
                assert servers.begin(client) == 2
    finally:
        client.stop()
        client.close()


def test_an_address_that_is_in_use_is_an_error(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    nodes = ServerNodes(ROOT, "DumpMeta", "KeepAliveNode", "t")
    settings = DumpSettings(
        f"{zookeeper.host}:{zookeeper.port}", nodes, tmp_path, "127.0.0.1", zookeeper.port, "127.0.0.1", None, 60.0
    )
    service = DumpService(settings, _Source(1), "zkpath")
    with pytest.raises(OSError, match="in use"):
        service.start(lambda: READING, lambda: None)
    service.stop()
