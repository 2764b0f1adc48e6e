"""The native producer's settings, from those with librdkafka's names."""

from __future__ import annotations

import math
from typing import Any

import pytest

from rowtide.connector.config.kafka.clients import ClientKind, translate
from rowtide.connector.config.kafka.producer_settings import idempotent_settings, transactional_settings
from rowtide.connector.kafka_producer.batches.builder import BatchLimits, RecordBatchBuilder
from rowtide.connector.kafka_producer.batches.compression import NONE, CompressionRatio
from rowtide.connector.kafka_producer.machine.backoff import Backoff
from rowtide.connector.kafka_producer.settings import RAW_LIMIT, ProducerSettings, producer_settings

SERVERS = {"bootstrap.servers": "k:9092"}


def of_java(**properties: Any) -> ProducerSettings:
    """Settings from names of Java's producer, with ``_`` instead of dots."""
    names = {name.replace("_", "."): str(value) for name, value in properties.items()}
    client, problems = translate(ClientKind.PRODUCER, "", names)
    assert problems == []
    return producer_settings(idempotent_settings(SERVERS | client))


def test_the_names_of_java() -> None:
    found = of_java(
        batch_size=1000,
        max_request_size=2_000_000,
        buffer_memory=50_000_000,
        linger_ms=7,
        request_timeout_ms=9000,
        retry_backoff_ms=20,
        retry_backoff_max_ms=400,
        reconnect_backoff_ms=30,
        reconnect_backoff_max_ms=600,
        metadata_max_age_ms=60_000,
        delivery_timeout_ms=120_000,
        compression_type="gzip",
    )
    assert found.limits == BatchLimits(1000, RAW_LIMIT, 2_000_000)
    assert (found.memory // 1024, found.linger_s, found.request_timeout_ms) == (48829, 0.007, 9000)
    assert found.codec().name == "gzip"
    sender = found.sender
    assert (sender.retry, sender.reconnect) == (Backoff(0.02, 0.4), Backoff(0.03, 0.6))
    assert (sender.metadata_max_age_s, sender.delivery_timeout_s) == (60, 120)
    assert (sender.request_bytes, sender.transactional_id) == (2_000_000, "")


def test_the_defaults() -> None:
    found = of_java()
    assert found.limits.max_request_size == found.sender.request_bytes == 1_048_576
    assert (found.messages, found.memory, found.linger_s) == (100_000, 64 << 20, 0.05)
    assert found.sender.delivery_timeout_s is None, "retried for ever"
    assert found.sender.metadata_max_age_s == 300
    assert found.codec().name == "none"


def test_the_memory_has_room_for_the_largest_message() -> None:
    found = of_java(max_request_size=200_000_000)
    assert found.memory >= 200_000_000


def test_transactions() -> None:
    sender = producer_settings(transactional_settings(SERVERS, "rowtide-shop-0", 5000)).sender
    assert (sender.transactional_id, sender.transaction_timeout_ms) == ("rowtide-shop-0", 65_000)
    assert sender.delivery_timeout_s is None, "transaction.timeout.ms ends it"


def test_a_batch_larger_than_the_usual_limit_before_compression() -> None:
    assert producer_settings({"batch.size": 8 << 20}).limits.raw_limit == 8 << 20


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"compression.type": "rar"}, "compression.type=rar"),
        ({"compression.type": "gzip", "compression.level": 12}, "=12"),
    ],
)
def test_codecs_that_do_not_exist(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        producer_settings(settings).codec()


def test_the_largest_batch_size_that_librdkafka_takes() -> None:
    limits = producer_settings({"batch.size": 2147483647, "message.max.bytes": 1_000_000_000}).limits
    assert RecordBatchBuilder(limits, NONE, CompressionRatio()).append([(None, b"", ())], 0, 1) == 1


@pytest.mark.parametrize(("given", "several"), [(1000, 1000), (1_000_000_000, 32 << 20)])
def test_a_request_of_several_batches_stays_below_what_brokers_take(given: int, several: int) -> None:
    settings = producer_settings({"message.max.bytes": given})
    assert (settings.limits.max_request_size, settings.sender.request_bytes) == (given, several)


def test_no_limit_of_messages() -> None:
    assert producer_settings({"queue.buffering.max.messages": 0}).messages == math.inf


@pytest.mark.parametrize(("given", "seconds"), [(-1, math.inf), (0, 1.0), (10, 1.0), (60_000, 60.0)])
def test_topics_are_not_looked_up_all_the_time(given: int, seconds: float) -> None:
    settings = producer_settings({"topic.metadata.refresh.interval.ms": given})
    assert settings.sender.metadata_max_age_s == seconds
