"""Whether the topic of a schema history is still the same, by the id that Kafka gave it."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import TopicCollection, Uuid

from rowtide.schema_history.store.history_store import UnusableHistory
from rowtide.schema_history.store.kafka import KafkaSchemaHistory
from rowtide.schema_history.store.topic_writer import TopicWriter


class Broker:
    """An admin client of a broker whose topics have one id."""

    topic_id = Uuid(0, 0)

    def describe_topics(self, asked: TopicCollection, **_more: Any) -> dict[str, Future[Any]]:
        future: Future[Any] = Future()
        future.set_result(SimpleNamespace(topic_id=self.topic_id))
        return {"h": future}


def test_a_topic_that_gets_an_id_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers before Kafka 2.8 answer without an id; existing topics get one during the upgrade."""
    broker, sent = Broker(), []
    monkeypatch.setattr("rowtide.schema_history.store.topic_reader.AdminClient", lambda _settings: broker)
    monkeypatch.setattr(TopicWriter, "send", lambda _self, _topic, value, **_more: sent.append(value))
    store = KafkaSchemaHistory("h", {}, {}, {}, timeout=1.0)
    for topic_id in (Uuid(0, 0), Uuid(1, 1), Uuid(0, 0), Uuid(1, 1)):
        broker.topic_id = topic_id
        store.append("{}")
    broker.topic_id = Uuid(2, 2)
    with pytest.raises(UnusableHistory, match="deleted and created again"):
        store.append("{}")
    assert len(sent) == 4
