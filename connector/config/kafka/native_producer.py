"""The problems of settings that rowtide's own Kafka producer does not support. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from rowtide.connector.config.errors import Problem
from rowtide.connector.kafka_producer.librdkafka_settings import unsupported


def problems(settings: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield a problem for each setting of the producer that only librdkafka has.

    Args:
        settings: with librdkafka's names, without synonyms.
    """
    for name, what in unsupported(settings):
        yield Problem(name, f"{what}. Change or remove it, or set rowtide.producer=librdkafka")
