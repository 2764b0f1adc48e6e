"""Servers that go away while a worker streams exactly once: it waits, resumes, and loses nothing.

The same at least once: ``test_legacy_promises``.
"""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.kafka.topic_tools import Topics
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually
from tests.support.recordings.live_snapshot import binlog_end

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka, MySQL

pytestmark = pytest.mark.servers


def prepared(database: Database, folder: Path, bootstrap: str) -> WorkerConfig:
    database.execute("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(100))")
    return WorkerConfig(
        folder,
        database.server,
        bootstrap,
        {
            "database.include.list": database.name,
            "exactly.once.source.support": "enabled",
            "exactly.once.support": "required",
            "offset.flush.interval.ms": "500",
            "retriable.restart.connector.wait.ms": "1000",
        },
    )


def insert(database: Database, count: int) -> None:
    with database.connect() as connection, connection.cursor() as cursor:
        for _ in range(count):
            cursor.execute("INSERT INTO t (v) VALUES (REPEAT('x', 50))")
            connection.commit()


def keys(topics: Topics, config: WorkerConfig, database: Database) -> list[int]:
    return [json.loads(record.key or b"{}")["id"] for record in topics.read(config.topic(f"{database.name}.t"))]


def test_a_database_that_restarts(own_mysql: MySQL, kafka: Kafka, tmp_path: Path) -> None:
    topics = Topics(kafka.bootstrap)
    with own_mysql.database() as database:
        config = prepared(database, tmp_path, kafka.bootstrap)
        with Worker(config).streaming() as worker:
            insert(database, 300)
            own_mysql.stop()
            eventually(lambda: worker.health()["state"] == "RECONNECTING", "the loss is noticed")
            health = worker.health()
            assert (health["status"], worker.get("/health")[0]) == ("DOWN", 503)
            assert f"{own_mysql.host}:{own_mysql.port}" in health["error"]
            assert worker.get("/health/live")[0] == 200, "an outage of the database is not a reason to kill the worker"
            assert worker.get("/health/ready")[0] == 503
            own_mysql.start()
            insert(database, 300)
            worker.wait_for_log("reading the binlog from", 2)
            own_mysql.kill()
            own_mysql.start()
            insert(database, 300)
            eventually(lambda: len(keys(topics, config, database)) >= 900, "all rows")
            eventually(lambda: worker.health()["state"] == "RUNNING", "all is well again")
            assert worker.health()["error"] is None
            worker.stop()
        assert keys(topics, config, database) == list(range(1, 901))


@pytest.mark.parametrize("end", [pytest.param("stop", marks=pytest.mark.nightly), "kill"])
def test_a_broker_that_restarts(mysql_db: Database, own_kafka: Kafka, tmp_path: Path, end: str) -> None:
    topics = Topics(own_kafka.bootstrap)
    config = prepared(mysql_db, tmp_path, own_kafka.bootstrap)
    with Worker(config).streaming() as worker:
        insert(mysql_db, 300)
        own_kafka.stop() if end == "stop" else own_kafka.kill()
        insert(mysql_db, 300)
        time.sleep(2)
        own_kafka.start()
        insert(mysql_db, 300)
        eventually(lambda: len(keys(topics, config, mysql_db)) >= 900, f"all rows; {worker.log}")
        worker.stop()
    assert keys(topics, config, mysql_db) == list(range(1, 901))


def test_stopping_while_kafka_is_away(mysql_db: Database, own_kafka: Kafka, tmp_path: Path) -> None:
    topics = Topics(own_kafka.bootstrap)
    config = prepared(mysql_db, tmp_path, own_kafka.bootstrap)
    config.properties["task.shutdown.graceful.timeout.ms"] = "3000"
    with Worker(config).streaming() as worker:
        insert(mysql_db, 10)
        eventually(lambda: len(keys(topics, config, mysql_db)) == 10, "the first rows")
        own_kafka.stop()
        insert(mysql_db, 10)
        end = binlog_end(mysql_db.server)
        eventually(lambda: tuple(map(worker.health()["position"]["read"].get, ("file", "pos"))) == end, "they are read")
        worker.signal()
        assert worker.wait() == 1
        assert "Traceback" not in worker.log
        assert f"connector {config.name} has failed: " in worker.log
    own_kafka.start()
    with Worker(config).streaming() as worker:
        eventually(lambda: len(keys(topics, config, mysql_db)) >= 20, "the others")
        worker.stop()
    assert keys(topics, config, mysql_db) == list(range(1, 21))


def test_stopping_while_a_schema_change_waits_for_kafka(mysql_db: Database, own_kafka: Kafka, tmp_path: Path) -> None:
    """The history record is written before the rows after it, and Kafka does not answer for a long time."""
    config = prepared(mysql_db, tmp_path, own_kafka.bootstrap)
    config.properties["task.shutdown.graceful.timeout.ms"] = "3000"
    config.properties["schema.history.internal.kafka.recovery.attempts"] = "10000"  # its writer waits as long
    with Worker(config).streaming() as worker:
        own_kafka.pause()
        try:
            mysql_db.execute("ALTER TABLE t ADD w INT")
            time.sleep(2)
            worker.signal()
            assert worker.wait() == 1
        finally:
            own_kafka.resume()
        assert f"connector {config.name} has failed: " in worker.log
        assert "Traceback" not in worker.log


def test_a_second_worker_takes_over(mysql_db: Database, kafka: Kafka, tmp_path: Path) -> None:
    """Two workers with one configuration: the older one is fenced, and none of its later messages is committed."""
    topics = Topics(kafka.bootstrap)
    config = prepared(mysql_db, tmp_path, kafka.bootstrap)
    with Worker(config).streaming() as first:
        insert(mysql_db, 100)
        eventually(lambda: len(keys(topics, config, mysql_db)) == 100, "the first rows")
        config.properties["database.server.id"] = "6999"  # or the server throws the first one out
        with Worker(config).streaming() as second:
            insert(mysql_db, 200)
            assert first.wait() == 1, first.log
            assert "Another instance of this connector has started with transactional.id" in first.log
            assert "Traceback" not in first.log
            eventually(lambda: len(keys(topics, config, mysql_db)) >= 300, "all rows")
            second.stop()
    assert keys(topics, config, mysql_db) == list(range(1, 301))


def test_a_process_that_sleeps_longer_than_a_transaction_may_last(
    mysql_db: Database, kafka: Kafka, tmp_path: Path
) -> None:
    """Kafka aborts the transaction and fences the producer; the connector restarts by itself."""
    topics = Topics(kafka.bootstrap)
    config = prepared(mysql_db, tmp_path, kafka.bootstrap)
    config.properties |= {
        "transaction.boundary": "interval",
        "transaction.boundary.interval.ms": "2000",
        "producer.override.transaction.timeout.ms": "3000",
    }
    topic = config.topic(f"{mysql_db.name}.t")
    with Worker(config).streaming() as worker:

        def in_transaction() -> bool:
            insert(mysql_db, 10)
            worker.signal(signal.SIGSTOP)
            if topics.has_open_transaction(topic):
                return True
            worker.signal(signal.SIGCONT)
            return False

        eventually(in_transaction, "a transaction")
        eventually(
            lambda: not topics.has_open_transaction(topic), "Kafka aborts it, for which it looks every ten seconds"
        )
        worker.signal(signal.SIGCONT)
        insert(mysql_db, 100)
        ((rows,),) = mysql_db.query("SELECT COUNT(*) FROM t")
        eventually(lambda: len(keys(topics, config, mysql_db)) >= rows, "all rows")
        worker.stop()
        assert "was open for longer than transaction.timeout.ms=3000" in worker.log
    assert keys(topics, config, mysql_db) == list(range(1, rows + 1))
