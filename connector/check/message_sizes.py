"""Compares the sizes of messages that the producer, the topics and the brokers allow.

A message that is too large stops the connector, so the check names every limit that is lower than the producer's.
"""

from collections.abc import Iterator

from rowtide.connector.check.findings import Finding
from rowtide.connector.config import Configuration
from rowtide.connector.config.choices import LargeRecordsMode
from rowtide.connector.config.kafka.producer_settings import DEFAULTS
from rowtide.connector.errors import some_of
from rowtide.topics.admin.topic_admin import TopicAdmin

_MOST_TOPICS = 1000
"""More topics are not looked up: each has about thirty settings."""
_BUFFER = "producer.override.buffer.memory"
_LARGEST = "producer.override.max.request.size"


def size_findings(config: Configuration, topics: list[str], admin: TopicAdmin) -> Iterator[Finding]:
    """Yield the limits that are lower than the size of the messages that the producer may send.

    Args:
        config: the configuration.
        topics: the topics of the captured tables, which need not exist.
        admin: looks up the limits.

    Raises:
        TopicError: Kafka is not reachable.
    """
    largest = int(config.kafka.producer.get("message.max.bytes", DEFAULTS["message.max.bytes"]))
    buffer = config.kafka.producer.get("queue.buffering.max.kbytes")
    if buffer is not None and int(buffer) * 1024 < largest:
        message = f"is {int(buffer) * 1024} bytes, less than {_LARGEST}={largest}: a larger message stops the connector"
        yield Finding.warning(_BUFFER, message)
    broker = admin.broker_config()
    request = int(broker.get("socket.request.max.bytes", largest))
    if request < largest:
        yield Finding.warning(
            _LARGEST,
            f"is {largest}, but the brokers close a connection with a request of more than socket.request.max.bytes="
            f"{request}: a larger message is never delivered, and the connector waits. Lower the property, or raise "
            "the brokers' setting",
        )
    if config.delivery.large_records.mode is LargeRecordsMode.FAIL:  # the others look at the limits of topics
        yield from _topic_findings(config, topics[:_MOST_TOPICS], admin, broker.get("message.max.bytes"), largest)


def _topic_findings(
    config: Configuration, topics: list[str], admin: TopicAdmin, default: str | None, largest: int
) -> Iterator[Finding]:
    existing = admin.topic_config("max.message.bytes", topics)
    small: dict[int, list[str]] = {}
    for topic in topics:
        new = config.topics.creation.settings_for(topic).config.get("max.message.bytes", default)
        limit = existing.get(topic, new)
        if limit is not None and limit.isdecimal() and int(limit) < largest:  # Kafka refuses anything else
            small.setdefault(int(limit), []).append(topic)
    for lowest, names in sorted(small.items()):
        yield Finding.warning(
            "max.message.bytes",
            f"the topics {some_of(names)} accept at most {lowest} bytes, but the producer sends up to "
            f"{_LARGEST}={largest}: a larger message stops the connector. Raise max.message.bytes of the topics, or "
            f"lower {_LARGEST} and producer.override.batch.size to {lowest}",
        )
