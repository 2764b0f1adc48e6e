"""Settings of the schema history topic and the offsets topic; ``admin`` applies them."""

from collections.abc import Mapping

from rowtide.topics.settings import BROKER_DEFAULT, TopicSettings

HISTORY_CONFIG: Mapping[str, str] = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
"""Settings that keep every record; Debezium's KafkaSchemaHistory creates its topic with them."""


def history_settings(replication_factor: int = BROKER_DEFAULT) -> TopicSettings:
    """A schema history topic: one partition, because the order of records matters, and no retention."""
    return TopicSettings(1, replication_factor, HISTORY_CONFIG)


def offsets_settings(partitions: int = 25, replication_factor: int = BROKER_DEFAULT) -> TopicSettings:
    """An offsets topic as Kafka Connect creates it; ``partitions`` is ``offset.storage.partitions``."""
    return TopicSettings(partitions, replication_factor, {"cleanup.policy": "compact"})


def wrong_history_config(config: Mapping[str, str]) -> dict[str, str]:
    """The settings of an existing history topic with which records can be lost, with their correct values."""
    return {name: correct for name, correct in HISTORY_CONFIG.items() if config.get(name, correct) != correct}
