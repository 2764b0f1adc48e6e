"""The topics of many tables: few requests create them."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from rowtide.connector.delivery.errors import DeliveryError
from rowtide.topics.admin import topic_admin
from tests.support.kafka.topic_tools import Topics
from tests.support.processes.running_connector import connected, failure, running
from tests.support.processes.worker_process import SOON, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

TABLES = 40
Configured = Callable[..., WorkerConfig]


class Requests:
    """What the admin clients of topics send.

    Attributes:
        created: the topics of each request to create topics of records.
        begin: set when topics of records may be looked up.
        refused: a topic that is created with invalid settings.
    """

    def __init__(self, records: str) -> None:
        self.created: list[list[str]] = []
        self.begin = threading.Event()
        self.refused = ""
        self._records = records

    def client(self) -> type[AdminClient]:
        """A client that reports its requests here."""
        requests = self

        class Client(AdminClient):
            def create_topics(self, new: list[Any], *args: Any, **more: Any) -> Any:
                requests.creates([topic.topic for topic in new])
                given = [requests.changed(topic) for topic in new]
                return super().create_topics(given, *args, **more)

            def describe_topics(self, topics: Any, *args: Any, **more: Any) -> Any:
                requests.looks(topics.topic_names)
                return super().describe_topics(topics, *args, **more)

        return Client

    def creates(self, topics: list[str]) -> None:
        """Called with the topics of a request to create some."""
        if any(self._records in topic for topic in topics):
            self.created.append(topics)

    def changed(self, topic: Any) -> Any:
        """The topic to create instead of another one."""
        return topic if topic.topic != self.refused else NewTopic(topic.topic, 1, 1, config={"cleanup.policy": "burn"})

    def looks(self, topics: list[str]) -> None:
        """Called with the topics of a request for topics."""
        if any(self._records in topic for topic in topics):
            assert self.begin.wait(SOON)


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch, mysql_db: Database) -> Requests:
    found = Requests(f".{mysql_db.name}.")
    monkeypatch.setattr(topic_admin, "admin_client", found.client())
    return found


def fill(database: Database) -> None:
    """Tables with a row in each, and an empty one."""
    database.execute("CREATE TABLE no_rows (id INT PRIMARY KEY)")
    for number in range(TABLES):
        database.execute(f"CREATE TABLE t{number} (id INT PRIMARY KEY)", f"INSERT INTO t{number} VALUES ({number})")


@pytest.mark.parametrize("exactly_once", [False, True], ids=["at least once", "exactly once"])
def test_the_topics_of_a_snapshot_are_created_by_few_requests(
    mysql_db: Database, configured: Configured, requests: Requests, exactly_once: bool
) -> None:
    """The first look waits until all rows are read; what follows does not depend on the number of tables."""
    fill(mysql_db)
    config = configured(exactly_once=exactly_once, include_schema_changes="false")
    names = [config.topic(f"{mysql_db.name}.t{number}") for number in range(TABLES)]
    with running(config) as task:
        eventually(lambda: connected(task), "the end of the snapshot")
        requests.begin.set()
    assert task.failure is None
    assert len(requests.created) <= 2
    assert sorted(name for names in requests.created for name in names) == sorted(names), "none for the empty table"
    topics = Topics(config.properties["bootstrap.servers"])
    for number in range(0, TABLES, 13):
        assert [json.loads(record.key or b"{}")["id"] for record in topics.read(names[number])] == [number]


def test_the_topic_whose_creation_is_refused_is_named(
    mysql_db: Database, configured: Configured, requests: Requests
) -> None:
    fill(mysql_db)
    requests.begin.set()
    config = configured()
    refused = requests.refused = config.topic(f"{mysql_db.name}.t7")
    found = failure(config)
    assert isinstance(found, DeliveryError)
    assert f"cannot create topic {refused!r}" in str(found)
    assert "cleanup.policy" in str(found)
    assert Topics(config.properties["bootstrap.servers"]).admin.identify([refused]) == {}
