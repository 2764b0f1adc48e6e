"""What a run works with, by the configuration."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from rowtide.connector.config import Configuration, from_properties
from rowtide.connector.config.catalogue.history import MEMORY_HISTORY
from rowtide.connector.delivery.errors import DeliveryError
from rowtide.connector.engine.wiring import TopicAdmins, fitting_records, history_store, offset_store
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset
from rowtide.topics.errors import TopicError
from rowtide.topics.internal import history_settings
from rowtide.topics.settings import TopicSettings
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


class _Admin:
    """Looks up no limit, and notes the topics that it creates."""

    def __init__(self, policy: str = "delete") -> None:
        self.policy = policy
        self.created: dict[str, TopicSettings] = {}

    def topic_config(self, name: str, topics: Sequence[str]) -> dict[str, str]:
        return dict.fromkeys(topics, "1000" if name == "max.message.bytes" else self.policy)

    def ensure(self, topic: str, settings: TopicSettings) -> bool:
        self.created[topic] = settings
        return True


def test_records_that_are_too_large_are_replaced_as_configured(tmp_path: Path) -> None:
    folder = {"rowtide.large.records": "claim-check", "rowtide.large.records.claim.check.url": str(tmp_path)}
    letters = {
        "rowtide.large.records": "dead-letter",
        "errors.deadletterqueue.topic.name": "letters",
        "errors.deadletterqueue.topic.replication.factor": "1",
    }
    given = [Batch("shop.a", -1, [(b"k", bytes(1000), ())], SourceOffset("b.1", 4), 1001, 0)]
    for more, topic in (({}, "shop.a"), (folder, "shop.a"), (letters, "letters")):
        config, admin, ensured = from_properties({**PROPERTIES, **more}), _Admin(), list[str]()
        admins = cast("TopicAdmins", SimpleNamespace(records=admin))
        ensure, fitting = fitting_records(config, admins, ensured.extend)
        ensure(["shop.a"])
        made = fitting(given)
        assert (made == given) is (more == {})
        assert {one.topic for one in made} == {topic}
        assert ensured == ["shop.a"]
        assert admin.created == ({"letters": history_settings(1)} if more == letters else {})


def test_dead_letters_are_not_written_where_they_are_removed() -> None:
    given = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "letters"}
    admins = cast("TopicAdmins", SimpleNamespace(records=_Admin("compact,delete")))
    ensure, _ = fitting_records(from_properties({**PROPERTIES, **given}), admins, lambda _topics: None)
    with pytest.raises(TopicError, match=r"'letters' of dead letters has cleanup\.policy=compact,delete"):
        ensure(["shop.a"])


def test_a_missing_folder_of_claim_checks_ends_the_start(tmp_path: Path) -> None:
    missing = {"rowtide.large.records": "claim-check", "rowtide.large.records.claim.check.url": str(tmp_path / "x")}
    config = from_properties({**PROPERTIES, **missing})
    with pytest.raises(DeliveryError, match="does not exist: create it, or mount it"):
        fitting_records(config, TopicAdmins(config), lambda _topics: None)
