"""Creating, describing and repairing topics on a real broker."""

from __future__ import annotations

import pytest

from rowtide.topics.admin.topic_admin import MissingTopics, TopicAdmin
from rowtide.topics.errors import KafkaUnreachable, TopicError
from rowtide.topics.internal import history_settings, offsets_settings
from rowtide.topics.settings import TopicCreation, TopicSettings
from tests.support.kafka.topic_tools import Topics

pytestmark = pytest.mark.servers


def test_a_topic_is_created_once_with_its_settings(topics: Topics) -> None:
    name = topics.name()
    assert topics.admin.describe(name) is None
    assert topics.partitions(name) is None
    settings = TopicSettings(3, 1, {"cleanup.policy": "compact", "max.message.bytes": "2000000"})
    assert topics.admin.ensure(name, settings) is True
    assert topics.admin.ensure(name, settings) is False
    found = topics.admin.describe(name)
    assert found is not None
    assert (found.name, found.partitions, found.replication_factor) == (name, 3, 1)
    assert found.config["cleanup.policy"] == "compact"
    assert found.config["max.message.bytes"] == "2000000"


def test_looking_up_a_topic_does_not_create_it() -> None:
    """Also where the broker creates topics by itself."""
    from rowtide_stack import Kafka

    with Kafka({"auto.create.topics.enable": "true"}) as broker:
        topics = Topics(broker.bootstrap)
        name = topics.name()
        for _ in range(3):
            assert topics.admin.identify([name]) == {}
            assert topics.admin.describe(name) is None


def test_the_brokers_defaults_are_left_to_the_broker(topics: Topics) -> None:
    name = topics.name()
    topics.admin.ensure(name, TopicSettings())
    found = topics.admin.describe(name)
    assert found is not None
    assert (found.partitions, found.replication_factor) == (1, 1)


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        (None, TopicSettings(1, 3), "topic.creation.default.replication.factor"),
        (None, TopicSettings(1, 1, {"cleanup.policy": "burn"}), "cleanup.policy"),
        (None, TopicSettings(1, 1, {"no.such.setting": "1"}), "no.such.setting"),
        ("not a name", TopicSettings(1, 1), "'not a name'"),
    ],
)
def test_a_topic_that_cannot_be_created(topics: Topics, name: str | None, settings: TopicSettings, said: str) -> None:
    with pytest.raises(TopicError) as caught:
        topics.admin.ensure(name or topics.name(), settings)
    assert said in str(caught.value)


def test_an_unreachable_broker_is_an_error_with_its_address() -> None:
    with pytest.raises(KafkaUnreachable, match=r"127\.0\.0\.1:1"):
        TopicAdmin({"bootstrap.servers": "127.0.0.1:1"}, timeout=1).identify(["x"])


def test_a_correct_history_topic_is_not_changed(topics: Topics) -> None:
    name = topics.name()
    topics.admin.ensure(name, history_settings())
    assert topics.admin.verify_history(name) == {}


def test_a_history_topic_with_retention_is_repaired(topics: Topics) -> None:
    name = topics.new(1, {"retention.ms": "1000000", "cleanup.policy": "compact", "max.message.bytes": "3000000"})
    assert topics.admin.verify_history(name) == {"cleanup.policy": "delete", "retention.ms": "-1"}
    assert topics.admin.verify_history(name) == {}
    found = topics.admin.describe(name)
    assert found is not None
    assert found.config["max.message.bytes"] == "3000000"


def test_a_history_topic_with_several_partitions_is_an_error(topics: Topics) -> None:
    with pytest.raises(TopicError, match="has 2 partitions and must have exactly 1"):
        topics.admin.verify_history(topics.new(2))
    with pytest.raises(TopicError, match="does not exist"):
        topics.admin.verify_history(topics.name())


def test_an_offsets_topic_must_be_compacted(topics: Topics) -> None:
    name = topics.name()
    topics.admin.ensure(name, offsets_settings(2))
    topics.admin.verify_offsets(name)
    for policy in ("delete", "compact,delete"):
        with pytest.raises(TopicError, match=f"cleanup.policy={policy}"):
            topics.admin.verify_offsets(topics.new(1, {"cleanup.policy": policy}))
    with pytest.raises(TopicError, match="does not exist"):
        topics.admin.verify_offsets(topics.name())


def test_missing_topics_follow_the_rules(topics: Topics) -> None:
    name, other = topics.name(), topics.name()
    rules = TopicCreation(default=TopicSettings(2, 1))
    MissingTopics(topics.admin, rules)([name])
    assert topics.partitions(name) == 2
    MissingTopics(topics.admin, TopicCreation(enabled=False))([other])
    assert topics.partitions(other) is None
