"""The producer's settings: values with a meaning of their own, and extreme ones."""

from __future__ import annotations

import math

import pytest

from rowtide.connector.delivery.kafka.native_producer.batches.builder import RecordBatchBuilder
from rowtide.connector.delivery.kafka.native_producer.batches.compression import NONE
from rowtide.connector.delivery.kafka.native_producer.batches.compression_ratio import CompressionRatio
from rowtide.connector.delivery.kafka.native_producer.settings import producer_settings


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
