"""Dumps of real servers: a client that begins with one gets each row once, with the texts of the stream."""

from __future__ import annotations

import itertools
import os
import random
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from rowtide.connector.config import from_properties
from rowtide.connector.engine.task import ConnectorTask
from rowtide.databus.client import Client, ClientSettings
from rowtide.databus.discovery import ROOT
from rowtide.databus.events import DUMP, Event, RowsEvent
from rowtide.databus.server.dumps.publication import PublishedPosition, reading_of
from rowtide.databus.server.dumps.snapshot import SnapshotSource
from rowtide.databus.server.record_form import DatabusForm
from rowtide.databus.server.registration import ServerNodes
from rowtide.databus.server.service import DumpService, DumpSettings
from rowtide.databus.tables import Cell
from rowtide.databus.zookeeper import DatabusNodes
from tests.support.databus.messages import message
from tests.support.kafka.topic_tools import Topics
from tests.support.mysql.background_writer import BackgroundWriter
from tests.support.processes.running_connector import connected
from tests.support.processes.worker_process import SOON, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka, ZooKeeper

pytestmark = pytest.mark.servers

DUMPS = int(os.environ.get("ROWTIDE_CAMPAIGN", "3"))

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300 + 30 * DUMPS)]

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

    def __init__(
        self, folder: Path, database: Database, kafka: Kafka, zookeeper: ZooKeeper, interval_s: float | None = None
    ) -> None:
        more = {"database.include.list": database.name, "snapshot.mode": "no_data"}
        properties = WorkerConfig(folder, database.server, kafka.bootstrap, more).properties
        self.config = from_properties(properties)
        self.topic = f"t{uuid.uuid4().hex[:8]}"
        self.zookeeper = f"{zookeeper.host}:{zookeeper.port}"
        nodes = ServerNodes(ROOT, "DumpMeta", "KeepAliveNode", self.topic)
        settings = DumpSettings(self.zookeeper, nodes, folder / "dumps", "127.0.0.1", 0, "127.0.0.1", interval_s, 60.0)
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
        self.service.start(self._reading, lambda: None)
        try:
            assert self.service.wait(SOON)
            self._begin()
            try:
                yield
            finally:
                self._task.stop(SOON)
        finally:
            self.service.stop()

    def _reading(self) -> PublishedPosition | None:
        return reading_of(self._task) if self._dumps else None

    def _begin(self) -> None:
        self._task = ConnectorTask(self.config, form=DatabusForm(self.topic))
        self._task.start()
        eventually(lambda: connected(self._task), "streaming")

    def restart(self) -> None:
        """Publish from the stored position on."""
        self._task.stop(SOON)
        self._begin()

    def dumped(self) -> str:
        """Make a dump; returns the name of the last one."""
        self._dumps = True
        eventually(self.newest, "a dump")
        return self.newest()

    def dumped_again(self, name: str) -> None:
        """Wait for another dump."""
        eventually(lambda: self.newest() != name, "another dump")

    def newest(self) -> str:
        """The name of the announced dump; empty if there is none."""
        with DatabusNodes((self.zookeeper,), ROOT) as nodes:
            return (nodes.get(f"DumpMeta/{self.topic}") or "").partition(":")[0]

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


def test_rows_have_the_texts_of_the_stream_which_continues_after_them(
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


class _Copy:
    """The table as a client has it, by its key. Each event must fit: none is missing, and none comes twice.

    Args:
        client: has begun with a dump.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.rows: dict[Cell, tuple[Cell, ...]] = {}
        self.of_topic = 0

    def read(self, timeout: float) -> bool:
        """Apply the next event, if there is one in time."""
        try:
            event = self.client.get_event(timeout)
        except TimeoutError:
            return False
        self.of_topic += event.offset is not None
        assert isinstance(event.event, RowsEvent)
        for before, after in event.event.changes():
            if before is not None:
                assert self.rows.pop(before[0]) == before, event.header
            if after is not None:
                assert after[0] not in self.rows, event.header
                self.rows[after[0]] = after
        return True


class _Writer(BackgroundWriter):
    """Changes the table in random transactions."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._picks, self._new = random.Random(13), itertools.count(1)

    def _write(self, connection: Any, cursor: Any) -> None:
        picks = self._picks
        cursor.execute("BEGIN")
        for _ in range(picks.randint(1, 4)):
            some = f"id % 7 = {picks.randrange(7)} ORDER BY id LIMIT {picks.randint(1, 20)}"
            match picks.randrange(5):
                case 0:
                    cursor.execute(f"DELETE FROM t WHERE {some}")
                case 1:
                    cursor.execute(f"UPDATE t SET v = v + 1 WHERE {some}")
                case 2:
                    cursor.execute(f"UPDATE t SET id = id + 1000000 WHERE id < 1000000 AND {some}")
                case _:
                    rows = ",".join(f"({next(self._new)}, 0)" for _ in range(picks.randint(1, 20)))
                    cursor.execute(f"INSERT INTO t VALUES {rows}")
        if picks.random() < 0.1:
            connection.rollback()
        else:
            connection.commit()


def test_clients_that_begin_with_any_dump_have_each_change_once(
    database: Database, kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    database.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (0, 0)")
    server = _Server(tmp_path, database, kafka, zookeeper, interval_s=0.1)
    copies: list[_Copy] = []
    with ExitStack() as clients, server.streaming():
        with _Writer(database) as writer:
            for number in range(DUMPS):
                name = server.dumped()
                copies.append(_Copy(clients.enter_context(Client(server.client))))
                writer.wait_for(20)
                if number % 3 == 1:
                    server.restart()
                server.dumped_again(name)
        expected = {
            str(id_).encode(): (str(id_).encode(), str(v).encode()) for id_, v in database.query("SELECT id, v FROM t")
        }
        for copy in copies:
            deadline = time.monotonic() + SOON
            while copy.rows != expected and time.monotonic() < deadline:
                copy.read(1.0)
            assert copy.rows == expected
            assert not copy.read(1.0)
            assert copy.of_topic > 0


def test_events_of_another_server_after_a_dump_are_not_dropped(
    mysql_db: Database, kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    """A fail-over after the dump, with no captured change in between: the other server's positions are before it."""
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    server = _Server(tmp_path, mysql_db, kafka, zookeeper)
    with server.streaming():
        mysql_db.execute("INSERT INTO t VALUES (2)", "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
        file = mysql_db.query("SHOW BINARY LOGS")[-2][0]  # after the last change, and before the dump
        server.dumped()
        producer = Producer({"bootstrap.servers": kafka.bootstrap})
        for pos in (100, 200):
            key, value = message(file, pos, pos)
            producer.produce(server.topic, value, key, partition=0)
        assert producer.flush(SOON) == 0
        with Client(server.client) as client:
            found = read(client, 4)
    assert cells([event for event in found if event.offset is None], "t") == [(b"1",), (b"2",)]
    assert [event.header.position.pos for event in found if event.offset is not None] == [100, 200]


def test_a_client_begins_before_the_first_event(
    mysql_db: Database, kafka: Kafka, topics: Topics, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    """The dump creates its topic, and no other one."""
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    server = _Server(tmp_path, mysql_db, kafka, zookeeper)
    before = topics.admin.overview().topics.keys()
    with server.running():
        added = topics.admin.overview().topics.keys() - before
        assert added >= {server.topic}
        assert not added & set(server.topic)
        with Client(server.client) as client:
            found = read(client, 1)
            mysql_db.execute("INSERT INTO t VALUES (2)")
            found += read(client, 1)
    assert [(event.offset is None, *cells([event], "t")) for event in found] == [(True, (b"1",)), (False, (b"2",))]


def test_rows_of_an_xa_transaction_that_is_prepared_come_behind_the_dump(
    database: Database, kafka: Kafka, zookeeper: ZooKeeper, tmp_path: Path
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
