"""What a run works with, by the configuration."""

from __future__ import annotations

import uuid

from rowtide.connector.config import Configuration, from_properties
from rowtide.connector.config.catalogue.history import MEMORY_HISTORY
from rowtide.connector.engine.wiring import TopicAdmins, history_store, offset_store
from rowtide.connector.records.offset import SourceOffset
from tests.support.configurations import PROPERTIES

IN_MEMORY = {
    "schema.history.internal": MEMORY_HISTORY,
    "offset.storage": "org.apache.kafka.connect.storage.MemoryOffsetBackingStore",
    "rowtide.sink": "stdout",
}


def named(name: str) -> Configuration:
    return from_properties({**PROPERTIES, **IN_MEMORY, "name": name})


def test_what_is_in_memory_outlives_a_run() -> None:
    """A run that starts again, and a connector that is resumed, need the position and the history of the run before."""
    name = uuid.uuid4().hex
    config = named(name)
    history = history_store(config)
    history.append("{}")
    history.close()
    offset_store(config).save(SourceOffset("b.1", 4))
    for found, there in ((named(name), True), (named(f"{name}-other"), False)):
        assert history_store(found).exists() is there
        assert (offset_store(found).load() is not None) is there


def test_topics_of_the_same_kafka_have_one_admin() -> None:
    admins = TopicAdmins(from_properties(PROPERTIES))
    assert admins.history is admins.records
    assert admins.records.limited(1.0)._admin is admins.records._admin


def test_a_schema_history_in_another_kafka_has_an_admin_of_its_own() -> None:
    other = {"schema.history.internal.kafka.bootstrap.servers": "127.0.0.1:9093"}
    admins = TopicAdmins(from_properties({**PROPERTIES, **other}))
    assert admins.history is not admins.records
    assert admins.history is admins.history
