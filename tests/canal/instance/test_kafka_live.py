"""Canal's Kafka mode with real servers: every change, in order within its partition, over kills and errors."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from child_process import ChildProcess
from tcp_proxy import TcpProxy
from topic_tools import Seen, Topics

from rowtide.canal.configuration.load import read_folder
from rowtide.canal.instance.kafka import KafkaInstance
from rowtide.canal.instance.storage import META, FolderStorage

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

TRANSACTIONS, ROWS = 200, 5


class CanalProcess(ChildProcess):
    """A process of ``rowtide canal``."""

    def start(self, folder: Path) -> None:
        self._run([sys.executable, "-m", "rowtide", "canal", str(folder)], folder / "rowtide.log")


def configured(folder: Path, database: Database, topics: Topics, topic: str, **more: str) -> Path:
    server = database.server
    (folder / "example").mkdir(exist_ok=True)
    of_server = {
        "canal.serverMode": "kafka",
        "canal.auto.scan": "false",
        "kafka.bootstrap.servers": topics.client["bootstrap.servers"],
        "kafka.retries": "0",
        "canal.mq.offsetsTopic": f"{topic}-offsets",
    }
    of_instance = {
        "canal.instance.master.address": f"{server.host}:{server.port}",
        "canal.instance.dbUsername": server.user,
        "canal.instance.dbPassword": server.password,
        "canal.instance.filter.regex": rf"{database.name}\\.t",
        "canal.mq.topic": topic,
        "canal.mq.partitionsNum": "3",
        "canal.mq.partitionHash": r".*\\..*:id",
    }
    for path, properties in (
        ("canal.properties", of_server | more),
        ("example/instance.properties", of_instance),
    ):
        (folder / path).write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return folder


def until(reached: Callable[[], bool], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.5)


def rows(records: list[Seen]) -> dict[int, list[tuple[int, int]]]:
    """The id and the value of all rows, by partition."""
    found: dict[int, list[tuple[int, int]]] = {0: [], 1: [], 2: []}
    for record in records:
        message = json.loads(record.value or b"")
        if not message["isDdl"]:
            found[record.partition] += [(int(row["id"]), int(row["v"])) for row in message["data"] or ()]
    return found


@pytest.mark.parametrize(
    ("flavor", "exactly_once"), [("mysql", True), ("mariadb", False)], ids=["exactly-once", "at-least-once"]
)
def test_every_change_arrives_in_order_over_kills(
    request: pytest.FixtureRequest, topics: Topics, tmp_path: Path, flavor: str, *, exactly_once: bool
) -> None:
    database: Database = request.getfixturevalue(f"{flavor}_db")
    topic = Topics.name()
    folder = configured(tmp_path, database, topics, topic, **{"canal.mq.exactlyOnce": str(exactly_once).lower()})
    database.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    database.execute("INSERT INTO t VALUES (0, 0), (1, 0), (2, 0), (3, 0), (4, 0)")

    def write() -> None:
        with database.server.connect(database.name) as connection, connection.cursor() as cursor:
            for value in range(1, TRANSACTIONS + 1):
                cursor.execute(f"UPDATE t SET v = {value}")
                connection.commit()
                time.sleep(0.02)

    process, writing = CanalProcess(), threading.Thread(target=write)
    for kills in range(3):
        process.start(folder)
        until(lambda begun=kills + 1: process.output().count("reading the binlog") == begun)  # type: ignore[misc]
        if not kills:
            writing.start()
        if kills < 2:
            time.sleep(1)
            os.kill(process.pid, signal.SIGKILL)
            process.stop()
    writing.join()

    def found() -> dict[int, list[tuple[int, int]]]:
        return rows(topics.read(topic))

    wanted = {(key, value) for key in range(ROWS) for value in range(1, TRANSACTIONS + 1)}
    until(lambda: {row for part in found().values() for row in part} >= wanted)
    process.stop()
    assert "stopped" in process.output().splitlines()[-1]
    for part in found().values():
        for key in {key for key, _ in part}:
            values = [value for one, value in part if one == key]
            newest = 0
            for value in values:  # a value may come again, but none may be left out
                assert value <= newest + 1
                newest = max(newest, value)
            assert newest == TRANSACTIONS
            if exactly_once:
                assert values == list(range(1, TRANSACTIONS + 1))
    assert '"clientId":1001' in (folder / "example" / META).read_text()


def test_a_message_that_is_too_large_stops_its_instance_until_it_is_allowed(
    mysql_db: Database, topics: Topics, tmp_path: Path
) -> None:
    topic = topics.new(3, {"max.message.bytes": "2000"})
    folder = configured(tmp_path, mysql_db, topics, topic)
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT, big TEXT)")
    settings = read_folder(folder, {}).instances["example"]
    assert settings.kafka is not None

    def started() -> KafkaInstance:
        assert settings.kafka is not None
        instance = KafkaInstance(settings, settings.kafka, FolderStorage(folder / "example", "example"), 0.1)
        instance.start()
        return instance

    instance = started()
    until(lambda: instance.reading)
    mysql_db.execute("INSERT INTO t VALUES (1, 1, REPEAT('x', 5000))", "INSERT INTO t VALUES (1001, 2, 'y')")
    until(lambda: instance.error is not None)
    assert "kafka.max.request.size" in (instance.error or "")
    assert instance.stop()
    larger = Topics.name()
    settings = read_folder(configured(folder, mysql_db, topics, larger), {}).instances["example"]
    instance = started()
    until(lambda: sum(map(len, rows(topics.read(larger)).values())) == 2)
    assert instance.stop()


def test_a_broker_that_is_away_is_waited_for(mysql_db: Database, topics: Topics, tmp_path: Path) -> None:
    topic = Topics.name()
    host, _, port = topics.client["bootstrap.servers"].rpartition(":")
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    with TcpProxy(host, int(port)) as proxy:
        proxy.frozen.set()
        servers = {"kafka.bootstrap.servers": f"127.0.0.1:{proxy.port}"}
        folder = configured(tmp_path, mysql_db, topics, topic, **servers)
        settings = read_folder(folder, {}).instances["example"]
        assert settings.kafka is not None
        instance = KafkaInstance(settings, settings.kafka, FolderStorage(folder / "example", "example"), 0.1)
        instance.start()
        until(lambda: instance.reading)
        mysql_db.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
        time.sleep(1)
        assert instance.reading
        proxy.frozen.clear()
        until(lambda: topics.admin.partitions(topic) is not None)
        until(lambda: sum(map(len, rows(topics.read(topic)).values())) == 2)
        assert instance.stop()
