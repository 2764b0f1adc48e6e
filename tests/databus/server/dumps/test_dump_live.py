"""Dumps of real servers: a client that begins with one gets each row once, with the texts of the stream."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from running_connector import connected
from topic_tools import Topics
from worker_process import SOON, WorkerConfig, eventually

from rowtide.connector.config import from_properties
from rowtide.connector.engine.task import ConnectorTask
from rowtide.databus.client import Client, ClientSettings
from rowtide.databus.discovery import ROOT
from rowtide.databus.events import DUMP, Event, RowsEvent
from rowtide.databus.server.dumps.snapshot import SnapshotSource
from rowtide.databus.server.record_form import DatabusForm
from rowtide.databus.server.registration import ServerNodes
from rowtide.databus.server.service import DumpService, DumpSettings
from rowtide.databus.tables import Cell

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka, ZooKeeper

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

COLUMNS = """
    id BIGINT UNSIGNED PRIMARY KEY, ti TINYINT UNSIGNED, si SMALLINT, mi MEDIUMINT ZEROFILL, b1 BOOL, d DECIMAL(20,5),
    f FLOAT, db DOUBLE, c CHAR(5), v VARCHAR(30) CHARACTER SET latin1, t TEXT, bi BINARY(6), vb VARBINARY(6), bl BLOB,
    e ENUM('x','y,z','é'), s SET('a','b','c'), bt BIT(12), da DATE, dt DATETIME(3), ts TIMESTAMP(6) NULL, tm TIME(2),
    y YEAR, j JSON, g POINT, hidden INT GENERATED ALWAYS AS (si + 1) VIRTUAL
"""
NAMES = "id, ti, si, mi, b1, d, f, db, c, v, t, bi, vb, bl, e, s, bt, da, dt, ts, tm, y, j, g"
ROWS = r"""
    (18446744073709551615, 200, -3, 7, TRUE, -123456789012.89010, 1.1, 0.1, 'ab ', 'café', '日本', 'a\0b', 'a\0',
    X'00FF80', 'y,z', 'a,c', b'101000000001', '2024-02-29', '2024-02-29 12:34:56.789', '2024-02-29 12:34:56.123456',
    '-12:00:01.5', 1999, '{"k": [1, null, "x\\u00e9", 1.50, true]}', POINT(1, -2)),
    (1, 0, 32767, NULL, FALSE, 0, NULL, -1e100, '', '', '', '', '', '', 'x', '', 0, '0001-01-01', NULL, NULL,
    '00:00:00', 0, NULL, NULL)
"""


@pytest.fixture(params=["mysql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(f"{request.param}_db")
    return found


class _Server:
    """A databus server in the process of the test."""

    def __init__(self, folder: Path, database: Database, kafka: Kafka, zookeeper: ZooKeeper) -> None:
        more = {"database.include.list": database.name, "snapshot.mode": "no_data"}
        properties = WorkerConfig(folder, database.server, kafka.bootstrap, more).properties
        self.config = from_properties(properties)
        self.topic = f"t{uuid.uuid4().hex[:8]}"
        self.zookeeper = f"{zookeeper.host}:{zookeeper.port}"
        nodes = ServerNodes(ROOT, "DumpMeta", "KeepAliveNode", self.topic)
        settings = DumpSettings(self.zookeeper, nodes, folder / "dumps", "127.0.0.1", 0, "127.0.0.1", None, 60.0)
        self._dumps = False
        self.service = DumpService(settings, SnapshotSource(self.config, self.topic), "zkpath")
        self.client = ClientSettings(
            (kafka.bootstrap,),
            self.topic,
            folder / "Repl.info",
            first_load=True,
            zookeeper=(self.zookeeper,),
            node_name="DumpMeta",
            keep_alive_path="KeepAliveNode",
            discover_server=True,
        )

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """Publish, but make no dump."""
        task = ConnectorTask(self.config, form=DatabusForm(self.topic))
        self.service.start(lambda: self._dumps and connected(task), lambda: None)
        try:
            assert self.service.wait(SOON)
            task.start()
            try:
                eventually(lambda: connected(task), "streaming")
                yield
            finally:
                task.stop(SOON)
        finally:
            self.service.stop()

    def dumped(self) -> None:
        """Make a dump."""
        self._dumps = True
        eventually(lambda: list((self.client.offset_file.parent / "dumps").glob("*.Json")), "a dump")

    @contextmanager
    def running(self) -> Iterator[None]:
        """Publish, and make a dump."""
        with self.streaming():
            self.dumped()
            yield


def read(client: Client, rows: int) -> list[Event]:
    """The events to so many rows."""
    found: list[Event] = []
    deadline = time.monotonic() + SOON
    while sum(len(event.event.rows) for event in found if isinstance(event.event, RowsEvent)) < rows:
        found.append(client.get_event(max(deadline - time.monotonic(), 0.1)))
        client.ack(found[-1])
    return found


def cells(events: list[Event], table: str) -> list[tuple[Cell, ...]]:
    """The rows of a table."""
    return sorted(
        row
        for event in events
        if isinstance(event.event, RowsEvent) and event.event.table.name == table
        for row in event.event.rows
    )


def test_rows_have_the_texts_of_the_stream_which_goes_on_behind(
    database: Database, kafka: Kafka, topics: Topics, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    database.execute(
        f"CREATE TABLE t ({COLUMNS})",
        f"INSERT INTO t ({NAMES}) VALUES {ROWS}",
        "CREATE TABLE nothing (id INT)",
        "CREATE TABLE u LIKE t",
    )
    server = _Server(tmp_path, database, kafka, zookeeper)
    with server.running():
        database.execute(f"INSERT INTO u ({NAMES}) SELECT {NAMES} FROM t")
        eventually(lambda: len(topics.read(server.topic)) > 0, "the stream")
        with Client(server.client) as client:
            found = read(client, 4)
    dumped = [event for event in found if event.offset is None]
    assert {event.header.action for event in dumped} == {DUMP}
    assert len(cells(dumped, "t")) == 2
    assert cells(dumped, "t") == cells(found, "u")
    structures = {event.event.table.name: event.event.table for event in found}
    assert structures["t"].columns == structures["u"].columns


def test_each_row_that_is_written_meanwhile_comes_once(
    database: Database, kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    database.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    server = _Server(tmp_path, database, kafka, zookeeper)
    stop = threading.Event()
    written = 0

    def write() -> None:
        nonlocal written
        with database.server.connect(database.name) as connection, connection.cursor() as cursor:
            while not stop.is_set():
                cursor.execute(f"INSERT INTO t VALUES ({written})")
                connection.commit()
                written += 1

    writing = threading.Thread(target=write)
    writing.start()
    try:
        with server.running():
            behind = written
            eventually(lambda: written > behind + 50, "rows behind the dump")
            stop.set()
            writing.join()
            with Client(server.client) as client:
                found = read(client, written)
                with pytest.raises(TimeoutError):
                    client.get_event(1.0)
    finally:
        stop.set()
        writing.join()
    assert sorted(int(row[0] or b"") for row in cells(found, "t")) == list(range(written))
    assert {event.offset is None for event in found} == {True, False}


def test_rows_of_an_xa_transaction_that_is_prepared_come_behind_the_dump(
    database: Database, kafka: Kafka, topics: Topics, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    database.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    server = _Server(tmp_path, database, kafka, zookeeper)
    xid = f"'{server.topic}'"
    with server.streaming():
        database.execute(f"XA START {xid}", "INSERT INTO t VALUES (2)", f"XA END {xid}", f"XA PREPARE {xid}")
        try:
            server.dumped()
        finally:
            database.execute(f"XA COMMIT {xid}")
        with Client(server.client) as client:
            found = read(client, 2)
    assert [(event.offset is None, *cells([event], "t")) for event in found] == [(True, (b"1",)), (False, (b"2",))]
