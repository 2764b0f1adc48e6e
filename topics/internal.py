"""Settings of the schema history topic and the offsets topic; ``admin`` applies them."""

from collections.abc import Mapping

from rowtide.topics.settings import BROKER_DEFAULT, TopicSettings

HISTORY_CONFIG: Mapping[str, str] = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
"""Settings that keep every record; Debezium's KafkaSchemaHistory creates its topic with them."""


def history_settings(replication_factor: int = BROKER_DEFAULT) -> TopicSettings:
    """Return the settings of a schema history topic: one partition, for the order of records, and no retention."""
    return TopicSettings(1, replication_factor, HISTORY_CONFIG)


def offsets_settings(partitions: int = 25, replication_factor: int = BROKER_DEFAULT) -> TopicSettings:
    """Return the settings of an offsets topic as Kafka Connect creates it.

    ``partitions`` is ``offset.storage.partitions``.
    """
    return TopicSettings(partitions, replication_factor, {"cleanup.policy": "compact"})


_AS_GOOD_AS_UNLIMITED = {"retention.ms": 100 * 366 * 86_400_000, "retention.bytes": 1 << 60}
"""Older versions of Debezium set ``retention.ms`` to Java's greatest number, 292 million years, instead of -1."""


def wrong_history_config(config: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of an existing history topic with which records can be lost, with their correct values."""
    return {name: correct for name, correct in HISTORY_CONFIG.items() if not _keeps(name, config.get(name, correct))}


def _keeps(name: str, value: str) -> bool:
    """Return whether no record is lost with this value of a setting."""
    if value == HISTORY_CONFIG[name]:
        return True
    limit = _AS_GOOD_AS_UNLIMITED.get(name)
    return limit is not None and value.isdecimal() and int(value) >= limit
