"""The schema history of a connector: rebuilt in its topic, left by another connector, and compacted."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from rowtide.schema_history.compaction.history_reader import NotInHistory
from rowtide.schema_history.errors import DamagedHistory
from tests.support.kafka.topic_tools import Topics
from tests.support.processes.running_connector import failure, run_until, running
from tests.support.processes.worker_process import SOON, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = pytest.mark.servers

Configured = Callable[..., WorkerConfig]


def rows(topics: Topics, config: WorkerConfig, table: str) -> list[dict[str, object]]:
    return [json.loads(record.value or b"{}")["after"] for record in topics.read(config.topic(table))]


def test_a_history_is_rebuilt_in_its_own_topic_and_compacted(
    mysql_db: Database, configured: Configured, topics: Topics, kafka: Kafka, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    table = f"{mysql_db.name}.t"
    config = configured(table_include_list=table)
    config.properties["schema.history.internal.store.only.captured.tables.ddl"] = "true"
    config.properties["schema.history.internal.compact.interval"] = "2"
    run_until(config, topics, table, 1)
    history = config.properties["schema.history.internal.kafka.topic"]
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    producer.produce(history, b"{", partition=0)
    assert producer.flush(SOON) == 0
    assert isinstance(failure(config), DamagedHistory)
    with running(_with(config, snapshot_mode="recovery")) as task:
        eventually(lambda: task.failure or task.current.state == "RUNNING", "the structures are written anew")
    mysql_db.execute("INSERT INTO t VALUES (2)", "ALTER TABLE t ADD a INT", "INSERT INTO t VALUES (3, 3)")
    run_until(config, topics, table, 3)
    mysql_db.execute("ALTER TABLE t ADD b INT", "ALTER TABLE t DROP a", "INSERT INTO t VALUES (4, 4)")
    run_until(config, topics, table, 4)
    caplog.clear()
    mysql_db.execute("INSERT INTO t VALUES (5, 5)")
    run_until(config, topics, table, 5)
    assert rows(topics, config, table) == [
        {"id": 1},
        {"id": 2},
        {"id": 3, "a": 3},
        {"id": 4, "b": 4},
        {"id": 5, "b": 5},
    ]
    (recovered,) = [record.getMessage() for record in caplog.records if "recovered" in record.getMessage()]
    assert "records, 0 of them in a summary" not in recovered
    config.properties["topic.prefix"] = "renamed"
    config.properties["offset.storage.topic"] += "-renamed"
    config.properties["snapshot.mode"] = "no_data"
    config.properties["schema.history.internal.compact.interval"] = "0"
    with running(config) as task:
        eventually(lambda: task.failure or task.current.state == "RUNNING", "a first start beside another history")
    assert task.failure is None


def _with(config: WorkerConfig, **more: str) -> WorkerConfig:
    """The same connector with other properties."""
    other = object.__new__(WorkerConfig)
    other.__dict__.update(config.__dict__)
    other.properties = {**config.properties, **{name.replace("_", "."): value for name, value in more.items()}}
    return other


def test_a_history_of_another_connector_is_reported(
    mysql_db: Database, configured: Configured, topics: Topics, kafka: Kafka
) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    table = f"{mysql_db.name}.t"
    one, other = (configured(table_include_list=table) for _ in range(2))
    run_until(one, topics, table, 1)
    run_until(other, topics, table, 1)
    name = "schema.history.internal.kafka.topic"
    found = failure(_with(one, **{name.replace(".", "_"): other.properties[name]}))
    assert isinstance(found, NotInHistory)
    assert f"topic.prefix={one.name}, only of {other.name!r}" in str(found)
