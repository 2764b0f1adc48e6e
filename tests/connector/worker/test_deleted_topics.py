"""Topics that are deleted, created again or changed while a connector runs: it recovers, or it stops."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from rowtide.connector.delivery.errors import TopicMissing
from rowtide.connector.engine import reader, topic_guard
from rowtide.connector.engine.task import ConnectorTask
from rowtide.connector.engine.wiring import offset_store
from rowtide.connector.errors import HistoryMissing
from rowtide.schema_history.store.history_store import UnusableHistory
from rowtide.topics.internal import HISTORY_CONFIG
from rowtide.topics.settings import TopicSettings
from tests.support.kafka.topic_tools import Topics
from tests.support.processes.running_connector import connected, failure, running
from tests.support.processes.worker_process import SOON, WorkerConfig, eventually
from tests.support.recordings.live_snapshot import binlog_end

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = pytest.mark.servers

Configured = Callable[..., WorkerConfig]
BOTH = pytest.mark.parametrize("exactly_once", [False, True], ids=["at least once", "exactly once"])
OFFSETS = "offset.storage.topic"
HISTORY = "schema.history.internal.kafka.topic"


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at the topics often, and store the position after a commit soon."""
    monkeypatch.setattr(topic_guard, "_EVERY_S", 0.5)
    monkeypatch.setattr(reader, "_IDLE_OFFSET_S", 0.5)


@pytest.fixture(scope="module")
def creating() -> Iterator[Kafka]:
    """A broker that creates topics by itself."""
    from rowtide_stack import Kafka

    with Kafka({"auto.create.topics.enable": "true"}) as server:
        yield server


def delete(topics: Topics, *names: str) -> None:
    admin = AdminClient(topics.client)
    for future in admin.delete_topics(list(names)).values():
        future.result(30)
    eventually(lambda: all(topics.partitions(name) is None for name in names), "the topics are gone")


def rows(topics: Topics, topic: str) -> list[int]:
    """The ids in a topic; none if it does not exist."""
    if topics.partitions(topic) is None:
        return []
    return [json.loads(record.key or b"{}")["id"] for record in topics.read(topic)]


def insert(database: Database, *ids: int) -> None:
    database.execute(*(f"INSERT INTO t VALUES ({number})" for number in ids))


def arrived(task: ConnectorTask, topics: Topics, topic: str, *ids: int) -> None:
    eventually(lambda: task.failure or set(ids) <= set(rows(topics, topic)), f"{ids} in the topic")
    assert task.failure is None


def stored(task: ConnectorTask) -> None:
    """Wait until the position after everything that was read is stored."""
    eventually(lambda: task.current.last_stored is not None and not held(task), "the position is stored")


def at_the_end(task: ConnectorTask, database: Database) -> bool:
    """Whether the stored position is the end of the binlog."""
    found = offset_store(task.config).load()
    return found is not None and (found.file, found.pos) == binlog_end(database.server)


def watched(task: ConnectorTask, *topics: str) -> None:
    """Wait until the connector has looked at topics, which it later compares with what they are now."""
    guard = task.current.guards.topics
    assert guard is not None
    eventually(lambda: set(topics) <= guard._topics._seen.keys(), "a look at the topics")


def held(task: ConnectorTask) -> int:
    components = task.current.components
    return 1 if components is None else components.store.use().held_events


def prepared(database: Database, configured: Configured, **more: Any) -> tuple[WorkerConfig, str]:
    database.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    # A run that ends waits so long for records of topics that are gone.
    config = configured(offset_flush_interval_ms="300", task_shutdown_graceful_timeout_ms="5000", **more)
    return config, config.topic(f"{database.name}.t")


@pytest.mark.parametrize(
    ("created_by", "exactly_once"),
    [
        ("the connector", False),
        ("the broker", True),
        pytest.param("the connector", True, marks=pytest.mark.nightly),
        pytest.param("the broker", False, marks=pytest.mark.nightly),
    ],
)
def test_data_topics_are_created_again_and_nothing_after_is_missing(
    mysql_db: Database,
    configured: Configured,
    kafka: Kafka,
    creating: Kafka,
    caplog: pytest.LogCaptureFixture,
    exactly_once: bool,
    created_by: str,
) -> None:
    """The topic of transaction metadata is one of them."""
    config, topic = prepared(mysql_db, configured, exactly_once=exactly_once, provide_transaction_metadata="true")
    broker = creating if created_by == "the broker" else kafka
    config.properties["bootstrap.servers"] = broker.bootstrap
    if created_by == "the broker":
        config.properties = {
            name: value for name, value in config.properties.items() if not name.startswith("topic.creation.")
        } | {"topic.creation.enable": "false"}
    else:
        config.properties["topic.creation.default.cleanup.policy"] = "compact"
    topics = Topics(broker.bootstrap)
    with running(config) as task:
        eventually(lambda: connected(task), "streaming")
        insert(mysql_db, 2)
        arrived(task, topics, topic, 1, 2)
        stored(task)
        watched(task, topic, config.topic("transaction"))
        delete(topics, topic, config.topic("transaction"))
        insert(mysql_db, 3, 4)
        arrived(task, topics, topic, 3, 4)
        eventually(lambda: task.restarts and connected(task), "a new run")
        insert(mysql_db, 5)
        arrived(task, topics, topic, 5)
        eventually(lambda: topics.partitions(config.topic("transaction")), "transaction metadata")
    assert task.failure is None
    assert "was deleted" in caplog.text
    assert "its earlier records are lost; the connector starts again from its stored position" in caplog.text
    if created_by == "the connector":
        found = topics.admin.describe(topic)
        assert found is not None
        assert found.config["cleanup.policy"] == "compact"


def test_a_topic_that_nobody_creates_again_ends_the_connector(mysql_db: Database, configured: Configured) -> None:
    config, topic = prepared(mysql_db, configured, include_schema_changes="false")
    config.properties["producer.override.topic.metadata.propagation.max.ms"] = "1000"
    config.properties = {
        name: value for name, value in config.properties.items() if not name.startswith("topic.creation.")
    } | {"topic.creation.enable": "false"}
    topics = Topics(config.properties["bootstrap.servers"])
    topics.admin.ensure(topic, TopicSettings(1, 1))
    with running(config) as task:
        eventually(lambda: connected(task), "streaming")
        arrived(task, topics, topic, 1)
        delete(topics, topic)
        insert(mysql_db, 2)
        assert task.wait(SOON)
    assert isinstance(task.failure, TopicMissing)
    assert repr(topic) in str(task.failure)
    topics.admin.ensure(topic, TopicSettings(1, 1))
    with running(config) as task:
        arrived(task, topics, topic, 2)


@BOTH
@pytest.mark.parametrize("again", [False, True], ids=["deleted", "created again"])
def test_the_position_is_stored_again_while_the_connector_is_idle(
    mysql_db: Database, configured: Configured, topics: Topics, exactly_once: bool, again: bool
) -> None:
    """Without a position, a start with no_data would skip what was changed in the meantime."""
    config, topic = prepared(mysql_db, configured, exactly_once=exactly_once, snapshot_mode="no_data")
    offsets = config.properties[OFFSETS]
    with running(config) as task:
        eventually(lambda: connected(task), "streaming")
        insert(mysql_db, 2)
        arrived(task, topics, topic, 2)
        eventually(lambda: at_the_end(task, mysql_db), "the position behind the commit is stored")
        before = offset_store(task.config).load()
        delete(topics, offsets)
        if again:
            topics.admin.ensure(offsets, TopicSettings(1, 1, {"cleanup.policy": "compact"}))
        eventually(lambda: task.restarts and connected(task), "a new run")
        assert offset_store(task.config).load() == before is not None
        found = topics.admin.describe(offsets)
        assert found is not None
        assert found.config["cleanup.policy"] == "compact"
    assert task.failure is None
    insert(mysql_db, 3)
    with running(config) as task:
        arrived(task, topics, topic, 2, 3)


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "created again"])
def test_a_connector_whose_history_is_deleted_ends_and_can_be_recovered(
    mysql_db: Database, configured: Configured, topics: Topics, again: bool
) -> None:
    config, topic = prepared(mysql_db, configured)
    history = config.properties[HISTORY]
    with running(config) as task:
        eventually(lambda: connected(task), "streaming")
        insert(mysql_db, 2)
        arrived(task, topics, topic, 1, 2)
        stored(task)
        delete(topics, history)
        if again:
            topics.admin.ensure(history, TopicSettings(1, 1, HISTORY_CONFIG))
        assert task.wait(SOON), "the connector still runs"
    assert isinstance(task.failure, UnusableHistory)
    assert repr(history) in str(task.failure)
    assert "snapshot.mode=recovery" in str(task.failure)
    insert(mysql_db, 3)
    assert isinstance(failure(config), HistoryMissing)
    config.properties["snapshot.mode"] = "recovery"
    with running(config) as task:
        arrived(task, topics, topic, 3)


def test_no_statement_is_written_to_a_history_that_was_created_again(
    mysql_db: Database, configured: Configured, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would look like a complete history at the next start."""
    monkeypatch.setattr(topic_guard, "_EVERY_S", 3600.0)
    config, topic = prepared(mysql_db, configured)
    history = config.properties[HISTORY]
    with running(config) as task:
        eventually(lambda: connected(task), "streaming")
        arrived(task, topics, topic, 1)
        delete(topics, history)
        topics.admin.ensure(history, TopicSettings(1, 1, HISTORY_CONFIG))
        mysql_db.execute("CREATE TABLE u (id INT PRIMARY KEY)")
        assert task.wait(SOON), "the connector still runs"
    assert isinstance(task.failure, UnusableHistory)
    assert topics.read(history) == []


@BOTH
def test_more_and_fewer_partitions(
    mysql_db: Database,
    configured: Configured,
    topics: Topics,
    caplog: pytest.LogCaptureFixture,
    exactly_once: bool,
) -> None:
    config, topic = prepared(mysql_db, configured, exactly_once=exactly_once)
    config.properties["topic.creation.default.partitions"] = "2"
    with running(config) as task:
        eventually(lambda: connected(task), "streaming")
        insert(mysql_db, *range(2, 10))
        arrived(task, topics, topic, *range(1, 10))
        watched(task, topic)
        admin = AdminClient(topics.client)
        admin.create_partitions([NewPartitions(topic, 4)])[topic].result(30)
        eventually(lambda: "now has 4 partitions instead of 2" in caplog.text, "a warning")
        insert(mysql_db, *range(10, 20))
        arrived(task, topics, topic, *range(1, 20))
        assert task.restarts == 0
        stored(task)
        delete(topics, topic)
        topics.admin.ensure(topic, TopicSettings(1, 1))
        insert(mysql_db, *range(20, 40))
        eventually(lambda: task.restarts and connected(task), "a new run")
        arrived(task, topics, topic, *range(20, 40))
        assert topics.partitions(topic) == 1
    assert task.failure is None
