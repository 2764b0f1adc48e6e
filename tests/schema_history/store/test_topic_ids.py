"""Whether the topic of a schema history is still the same, by the id that Kafka gave it."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

import pytest
from confluent_kafka import TopicCollection, Uuid

from rowtide.schema_history.store.history_store import UnusableHistory
from rowtide.schema_history.store.kafka import KafkaSchemaHistory
from rowtide.schema_history.store.topic_reader import Extent, TopicReader
from rowtide.schema_history.store.topic_writer import TopicWriter


class Broker:
    """An admin client of a broker whose topics have one id."""

    topic_id = Uuid(0, 0)

    def describe_topics(self, asked: TopicCollection, **_more: Any) -> dict[str, Future[Any]]:
        future: Future[Any] = Future()
        future.set_result(SimpleNamespace(topic_id=self.topic_id))
        return {"h": future}


class Client:
    """A client of that broker: an admin client, or a producer that acknowledges everything."""

    def __init__(self, broker: Broker) -> None:
        self.describe_topics = broker.describe_topics

    def produce(self, *_record: object) -> None:
        """Send a record."""

    def flush(self, _timeout: float) -> int:
        """Wait for the acknowledgements."""
        return 0


def test_a_topic_that_gets_an_id_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers before Kafka 2.8 answer without an id; existing topics get one during the upgrade."""
    broker, sent = Broker(), []
    monkeypatch.setattr("rowtide.schema_history.store.topic_reader.admin_client", lambda _settings: broker)
    monkeypatch.setattr(TopicWriter, "send", lambda _self, _topic, value, **_more: sent.append(value))
    store = KafkaSchemaHistory("h", {}, {}, {}, timeout=1.0)
    for topic_id in (Uuid(0, 0), Uuid(1, 1), Uuid(0, 0), Uuid(1, 1)):
        broker.topic_id = topic_id
        store.append("{}")
    broker.topic_id = Uuid(2, 2)
    with pytest.raises(UnusableHistory, match="deleted and created again"):
        store.append("{}")
    assert len(sent) == 4


def test_no_client_stays_behind_a_block_of_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each client has three or four threads, and statements are rare."""
    broker, clients, made = Broker(), WeakSet[Client](), []

    def client(_settings: object) -> Client:
        found = Client(broker)
        clients.add(found)
        made.append(type(found))
        return found

    monkeypatch.setattr("rowtide.schema_history.store.topic_reader.admin_client", client)
    monkeypatch.setattr("rowtide.schema_history.store.topic_writer.Producer", client)
    store = KafkaSchemaHistory("h", {}, {}, {}, timeout=1.0)
    with store.buffered():
        store.append("{}")
        store.append("{}")
        assert len(clients) == 2
    assert not clients
    store.append("{}")
    store.append("{}")
    assert len(clients) == 2, "those of single statements stay"
    store.close()
    assert not clients
    assert len(made) == 4


def test_the_lookup_of_a_history_leaves_no_client(monkeypatch: pytest.MonkeyPatch) -> None:
    broker, clients = Broker(), WeakSet[Client]()

    def client(_settings: object) -> Client:
        found = Client(broker)
        clients.add(found)
        return found

    monkeypatch.setattr("rowtide.schema_history.store.topic_reader.admin_client", client)
    monkeypatch.setattr(TopicReader, "extents", lambda _self, _topic: {0: Extent(0, 1)})
    store = KafkaSchemaHistory("h", {}, {}, {}, timeout=1.0)
    assert store.exists()
    assert not clients
    broker.topic_id = Uuid(1, 1)
    assert store.exists()
    broker.topic_id = Uuid(2, 2)
    with pytest.raises(UnusableHistory, match="deleted and created again"):
        store.exists()
