"""Canal's Kafka mode with real servers: every change, in order within its partition, over kills and errors."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rowtide.canal.configuration.load import read_folder
from rowtide.canal.instance.kafka import KafkaInstance
from rowtide.canal.instance.storage import META, FolderStorage
from tests.support.canal.kafka_mode import ROWS, CanalProcess, assert_every_value_in_order, configured, rows, writing
from tests.support.kafka.topic_tools import Topics
from tests.support.network.tcp_proxy import TcpProxy

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

TRANSACTIONS = 200


def until(reached: Callable[[], bool], seconds: float = 180) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.5)


@pytest.mark.parametrize(
    ("flavor", "exactly_once", "producer"),
    [("mysql", True, "librdkafka"), ("mariadb", False, "librdkafka"), ("mysql", True, "native")],
    ids=["exactly-once", "at-least-once", "exactly-once, native"],
)
def test_every_change_arrives_in_order_over_kills(
    request: pytest.FixtureRequest, topics: Topics, tmp_path: Path, flavor: str, producer: str, *, exactly_once: bool
) -> None:
    database: Database = request.getfixturevalue(f"{flavor}_db")
    topic = Topics.name()
    own = {"canal.mq.exactlyOnce": str(exactly_once).lower(), "canal.mq.producer": producer}
    folder = configured(tmp_path, database, topics, topic, **own)
    database.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    database.execute(f"INSERT INTO t VALUES {', '.join(f'({key}, 0)' for key in range(ROWS))}")
    process = CanalProcess()
    process.start(folder)
    until(lambda: "reading the binlog" in process.output())
    with writing(database, TRANSACTIONS):
        for begun in (2, 3):
            time.sleep(1)
            process.kill()
            process.start(folder)
            until(lambda begun=begun: process.output().count("reading the binlog") == begun)  # type: ignore[misc]
    wanted = {(key, value) for key in range(ROWS) for value in range(1, TRANSACTIONS + 1)}
    until(lambda: {row for part in rows(topics, topic).values() for row in part} >= wanted)
    process.stop()
    assert "stopped" in process.output().rpartition("reading the binlog")[2]
    assert_every_value_in_order(rows(topics, topic), TRANSACTIONS, exactly_once=exactly_once)
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
    until(lambda: sum(map(len, rows(topics, larger).values())) == 2)
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
        until(lambda: topics.partitions(topic) is not None)
        until(lambda: sum(map(len, rows(topics, topic).values())) == 2)
        assert instance.stop()
