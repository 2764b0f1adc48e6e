"""Settings of the topics that hold no rows: the schema history and the source offsets. Pure; ``admin`` applies them."""

from collections.abc import Mapping

from rowtide.topics.settings import BROKER_DEFAULT, TopicSettings

HISTORY_CONFIG: Mapping[str, str] = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
"""What keeps a schema history whole: nothing is ever deleted. Debezium's KafkaSchemaHistory creates its topic so."""


def history_settings(replication_factor: int = BROKER_DEFAULT) -> TopicSettings:
    """A schema history topic: one partition, for its order is its meaning, and no retention."""
    return TopicSettings(1, replication_factor, HISTORY_CONFIG)


def offsets_settings(partitions: int = 25, replication_factor: int = BROKER_DEFAULT) -> TopicSettings:
    """Kafka Connect's offsets topic, with its number of partitions (``offset.storage.partitions``)."""
    return TopicSettings(partitions, replication_factor, {"cleanup.policy": "compact"})


def wrong_history_config(config: Mapping[str, str]) -> dict[str, str]:
    """Which settings of an existing history topic may lose records, with the values that they should have."""
    return {name: wanted for name, wanted in HISTORY_CONFIG.items() if config.get(name, wanted) != wanted}
