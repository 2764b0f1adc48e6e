"""The producer's settings, read from those with librdkafka's names. Pure.

A setting that affects records, and that only librdkafka supports, is an error.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rowtide.connector.kafka_producer.batches.builder import BatchLimits
from rowtide.connector.kafka_producer.batches.compression import Codec
from rowtide.connector.kafka_producer.batches.compression import codec as new_codec
from rowtide.connector.kafka_producer.batches.python_records import BATCH_OVERHEAD
from rowtide.connector.kafka_producer.machine import SenderSettings
from rowtide.connector.kafka_producer.machine.backoff import Backoff

RAW_LIMIT = 8 << 20
"""The most bytes of the records of a batch before compression.

``batch.size`` counts bytes after compression, as in Java's producer. Records that compress well would otherwise wait
for long, and take much memory. A smaller limit costs speed, because a partition has one batch in flight: with 2 MB,
records with schemas need three times as many requests.
"""
_LARGEST_RAW_LIMIT = (1 << 31) - 1 - BATCH_OVERHEAD
_SEVERAL_BATCHES = 32 << 20
"""The most bytes of several batches in a request. Brokers close the connection at one larger than
``socket.request.max.bytes``, which is 100 MiB by default.
"""
_SHORTEST_METADATA_AGE_MS = 1000
_DEFAULT_BATCH_SIZE = 512 << 10


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """The producer's settings.

    Attributes:
        limits: of batches.
        codec: makes the codec of batches.
        messages: the most unacknowledged messages (librdkafka's ``queue.buffering.max.messages``).
        memory: the most bytes of unacknowledged records (``buffer.memory``).
        linger_s: the time that an incomplete batch waits while messages are ready to be sent (``linger.ms``).
        request_timeout_ms: the time that a broker may wait for its replicas (``request.timeout.ms``).
        sender: of the state machine.
    """

    limits: BatchLimits
    codec: Callable[[], Codec]
    messages: float
    memory: int
    linger_s: float
    request_timeout_ms: int
    sender: SenderSettings


def producer_settings(settings: Mapping[str, object]) -> ProducerSettings:
    """Read the settings.

    Args:
        settings: with librdkafka's names, without synonyms; see ``producer_settings.idempotent_settings``.

    Raises:
        ValueError: ``compression.type`` names an unknown codec or level.
    """

    def number(name: str, default: int) -> int:
        return int(str(settings.get(name, default)))

    def limit(name: str, default: int, unlimited: int) -> float:
        found = number(name, default)
        return math.inf if found == unlimited else found

    largest = number("message.max.bytes", 1 << 20)
    level = number("compression.level", -1)
    compression = str(settings.get("compression.type", "none"))
    timeout_ms = number("message.timeout.ms", 0)
    refresh_ms = number("topic.metadata.refresh.interval.ms", 300_000)
    batch_size = number("batch.size", _DEFAULT_BATCH_SIZE)
    return ProducerSettings(
        limits=BatchLimits(batch_size, min(max(RAW_LIMIT, batch_size), _LARGEST_RAW_LIMIT), largest),
        codec=lambda: new_codec(compression, None if level < 0 else level),
        messages=limit("queue.buffering.max.messages", 100_000, unlimited=0),
        memory=number("queue.buffering.max.kbytes", 65536) * 1024,
        linger_s=float(str(settings.get("linger.ms", 50))) / 1000,
        request_timeout_ms=number("request.timeout.ms", 30_000),
        sender=SenderSettings(
            transactional_id=str(settings.get("transactional.id", "")),
            transaction_timeout_ms=number("transaction.timeout.ms", 60_000),
            request_bytes=min(largest, _SEVERAL_BATCHES),
            retry=Backoff(number("retry.backoff.ms", 100) / 1000, number("retry.backoff.max.ms", 1000) / 1000),
            reconnect=Backoff(
                number("reconnect.backoff.ms", 100) / 1000, number("reconnect.backoff.max.ms", 10_000) / 1000
            ),
            metadata_max_age_s=max(limit("metadata.max.age.ms", refresh_ms, unlimited=-1), _SHORTEST_METADATA_AGE_MS)
            / 1000,
            missing_topic_s=number("topic.metadata.propagation.max.ms", 30_000) / 1000,
            delivery_timeout_s=timeout_ms / 1000 or None,
        ),
    )
