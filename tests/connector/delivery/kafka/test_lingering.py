"""When incomplete batches are sent, and the settings for librdkafka."""

from typing import Any

import pytest
from confluent_kafka import Producer

from rowtide.connector.config.kafka.producer_settings import idempotent_settings, transactional_settings
from rowtide.connector.delivery.kafka.lingering import Lingering

SERVERS = {"bootstrap.servers": "127.0.0.1:1"}


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_batches_wait_for_linger_ms_and_shorter_if_nothing_else_is_ready() -> None:
    clock = Clock()
    lingering = Lingering({"linger.ms": "50"}, clock)
    assert not lingering.is_over(idle=True)
    clock.now += 0.02
    assert lingering.is_over(idle=True)
    assert not lingering.is_over(idle=False)
    clock.now += 0.04
    assert lingering.is_over(idle=False)
    lingering.restart()
    lingering.end()
    assert lingering.is_over(idle=False)


def test_a_shorter_linger_ms_counts_for_both() -> None:
    clock = Clock()
    lingering = Lingering({"queue.buffering.max.ms": "5"}, clock)
    clock.now += 0.006
    assert lingering.is_over(idle=True)
    assert lingering.is_over(idle=False)


@pytest.mark.parametrize(
    ("given", "linger", "sticky"),
    [
        ({}, 10_000, 100),
        ({"linger.ms": "0.5"}, 10_000, 1),
        ({"linger.ms": "20000"}, 20_000, 40_000),
        ({"queue.buffering.max.ms": 5, "sticky.partitioning.linger.ms": 7}, 10_000, 7),
        ({"message.timeout.ms": 0}, 10_000, 100),
        ({"delivery.timeout.ms": "5000"}, 2_500, 100),
        ({"transactional.id": "x", "transaction.timeout.ms": 1000}, 500, 100),
    ],
)
def test_librdkafka_waits_longer_except_for_the_partition_of_records_without_keys(
    given: dict[str, Any], linger: int, sticky: int
) -> None:
    found = Lingering(given, Clock()).client_settings
    assert (found["linger.ms"], found["sticky.partitioning.linger.ms"]) == (linger, sticky)
    assert "queue.buffering.max.ms" not in found
    Producer({**SERVERS, **found})


@pytest.mark.parametrize("user", [{}, {"linger.ms": "5"}, {"delivery.timeout.ms": "30000"}])
def test_librdkafka_accepts_the_settings_of_both_modes(user: dict[str, str]) -> None:
    for settings in (idempotent_settings({**SERVERS, **user}), transactional_settings({**SERVERS, **user}, "x")):
        Producer(Lingering(settings, Clock()).client_settings)
