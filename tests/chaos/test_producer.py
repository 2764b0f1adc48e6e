"""The Kafka producer with three brokers that fail at random.

``ROWTIDE_CAMPAIGN`` is the number of rounds, and ``KAFKA_JARS`` a folder with the jars of another version of Kafka.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.kafka_cluster import KafkaCluster
from tests.chaos.producer_round import ProducerRound

pytestmark = pytest.mark.servers

ROUNDS = int(os.environ.get("ROWTIDE_CAMPAIGN", "1"))
JARS = os.environ.get("KAFKA_JARS")
FAULTS = 2 if ROUNDS == 1 else 10
FIRST = 128
"""The seed of a short round: the coordinator of transactions is killed, and answers are lost."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster(jars=Path(JARS) if JARS else None) as brokers:
        yield brokers


@pytest.mark.parametrize("seed", range(FIRST, FIRST + ROUNDS))
def test_nothing_is_lost_repeated_or_out_of_order_when_brokers_and_connections_fail(
    cluster: KafkaCluster, seed: int
) -> None:
    outcome = ProducerRound(cluster, seed, FAULTS).run()
    assert outcome.problems == []
    assert outcome.messages > 0
