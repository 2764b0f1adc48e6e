"""A worker is stopped while a Kafka accepts connections and answers nothing."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.kafka.proxied_broker import ProxiedKafka, proxied_kafka
from tests.support.kafka.topic_tools import Topics
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

LIMIT = "600000"
"""The time limit of a stop, which outlasts the patience of a test: a stop that needs it fails."""
LEFT = "without waiting for a server that does not answer; everything that was read is delivered"


@pytest.fixture(scope="module")
def silent() -> Iterator[ProxiedKafka]:
    """A broker whose proxied address a test may make silent."""
    with proxied_kafka() as made:
        yield made


@pytest.fixture
def config(mysql_db: Database, silent: ProxiedKafka, tmp_path: Path) -> Iterator[WorkerConfig]:
    """A connector with a table of one row and its schema history in the Kafka that can be silent."""
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    more = {
        "database.include.list": mysql_db.name,
        "schema.history.internal.kafka.bootstrap.servers": silent.bootstrap,
        "task.shutdown.graceful.timeout.ms": LIMIT,
    }
    yield WorkerConfig(tmp_path, mysql_db.server, silent.kafka.bootstrap, more)
    silent.proxy.frozen.clear()


def keys(silent: ProxiedKafka, config: WorkerConfig, database: Database) -> list[int]:
    topic = config.topic(f"{database.name}.t")
    return [json.loads(record.key or b"{}")["id"] for record in Topics(silent.kafka.bootstrap).read(topic)]


def run_once(silent: ProxiedKafka, config: WorkerConfig) -> None:
    """Run a worker until it streams, with a Kafka that answers."""
    silent.proxy.frozen.clear()
    with Worker(config).streaming() as worker:
        worker.stop()


def test_while_it_is_checked(config: WorkerConfig, silent: ProxiedKafka) -> None:
    silent.proxy.frozen.set()
    with Worker(config).wait_for_log("checking the database") as worker:
        assert LEFT in worker.stop()


@pytest.mark.parametrize("start", ["first", "second"])
def test_while_the_schema_history_is_looked_up(
    mysql_db: Database, config: WorkerConfig, silent: ProxiedKafka, start: str
) -> None:
    if start == "second":
        run_once(silent, config)
        mysql_db.execute("INSERT INTO t VALUES (2)")
    silent.proxy.freeze_at = config.properties["schema.history.internal.kafka.topic"].encode()
    with Worker(config) as worker:
        eventually(silent.proxy.frozen.is_set, "the topic is looked up")
        assert LEFT in worker.stop()
    run_once(silent, config)
    assert keys(silent, config, mysql_db) == ([1] if start == "first" else [1, 2])


def test_while_a_snapshot_writes_the_schema_history(
    mysql_db: Database, config: WorkerConfig, silent: ProxiedKafka
) -> None:
    silent.proxy.freeze_at = b"CREATE TABLE"
    config.properties["schema.history.internal.producer.compression.type"] = "none"
    with Worker(config) as worker:
        eventually(silent.proxy.frozen.is_set, "a structure is written")
        assert LEFT in worker.stop()
    run_once(silent, config)
    assert keys(silent, config, mysql_db) == [1]


def test_while_a_schema_change_is_written(mysql_db: Database, config: WorkerConfig, silent: ProxiedKafka) -> None:
    """What was read before the schema change is delivered, and its position is stored."""
    config.properties["schema.history.internal.producer.compression.type"] = "none"
    with Worker(config).streaming() as worker:
        mysql_db.execute("INSERT INTO t VALUES (2)")
        eventually(lambda: keys(silent, config, mysql_db) == [1, 2], "what comes before the schema change")
        silent.proxy.freeze_at = b"ALTER TABLE"
        mysql_db.execute("ALTER TABLE t ADD w INT", "INSERT INTO t VALUES (3, 3)")
        eventually(silent.proxy.frozen.is_set, "the schema change is written")
        assert LEFT in worker.stop()
    silent.proxy.frozen.clear()
    with Worker(config).streaming() as worker:
        eventually(lambda: len(keys(silent, config, mysql_db)) >= 3, "what follows the schema change")
        worker.stop()
    assert keys(silent, config, mysql_db) == [1, 2, 3], "nothing is read again"


def test_a_second_signal_ends_it_at_once(mysql_db: Database, silent: ProxiedKafka, config: WorkerConfig) -> None:
    config.properties["bootstrap.servers"] = silent.bootstrap
    with Worker(config).streaming() as worker:
        silent.proxy.frozen.set()
        mysql_db.execute("INSERT INTO t VALUES (2)")
        eventually(lambda: worker.health()["queue"]["records_in_flight"], "the change is read")
        worker.signal()
        worker.wait_for_log("SIGTERM: delivering what was read, then stopping")
        assert worker.running
        worker.signal(signal.SIGINT)
        assert worker.wait() == 1
        assert "SIGINT again: stopping immediately" in worker.log
        assert "Traceback" not in worker.log
    silent.proxy.frozen.clear()
    with Worker(config).streaming() as worker:
        eventually(lambda: len(keys(silent, config, mysql_db)) >= 2, "the change is read again")
        worker.stop()


def test_while_the_start_is_tried_again(config: WorkerConfig, silent: ProxiedKafka) -> None:
    silent.proxy.frozen.set()
    config.properties["retriable.restart.connector.wait.ms"] = LIMIT
    with Worker(config).wait_for_log("the connector starts again") as worker:
        assert "everything that was read is delivered" in worker.stop()
