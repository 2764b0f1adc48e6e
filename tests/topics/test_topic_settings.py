"""The settings of new topics."""

from rowtide.topics.settings import TopicCreation, TopicGroup, TopicSettings, topic_patterns


def test_the_first_group_with_the_topic_applies() -> None:
    compact = TopicSettings(3, 2, {"cleanup.policy": "compact"})
    wide = TopicSettings(12, 3)
    creation = TopicCreation(
        default=TopicSettings(1, 1),
        groups=(
            TopicGroup("compact", topic_patterns("p\\.shop\\..*"), topic_patterns("p\\.shop\\.log"), compact),
            TopicGroup("wide", topic_patterns("p\\.x, p\\.shop\\.log"), (), wide),
        ),
    )
    assert creation.settings_for("p.shop.orders") is compact
    assert creation.settings_for("p.shop.log") is wide
    assert creation.settings_for("p.SHOP.orders") == TopicSettings(1, 1)
    assert creation.settings_for("p.shop.orders2") is compact


def test_without_groups_the_broker_defaults_apply() -> None:
    assert TopicCreation().settings_for("any") == TopicSettings(-1, -1, {})
