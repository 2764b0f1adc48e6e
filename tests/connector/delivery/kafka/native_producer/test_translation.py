"""The requests and answers of the state machine, in Kafka's protocol."""

from __future__ import annotations

import pytest

from rowtide.connector.delivery.kafka.native_producer.machine.messages import EndTxn, Produce, Producer, SentBatch
from rowtide.connector.delivery.kafka.native_producer.translation import request
from rowtide.connector.delivery.kafka.native_producer.wire.schema import NEVER

PRODUCER = Producer(7, 3)
BATCH = SentBatch("orders", bytes(range(16)), 0, b"")


@pytest.mark.parametrize(("implicit", "at_most"), [(False, 11), (True, NEVER)])
def test_without_transactions_of_version_2_brokers_add_no_partitions_themselves(implicit: bool, at_most: int) -> None:
    assert request(Produce("shop", implicit, (BATCH,)), 1000)[1] == at_most


@pytest.mark.parametrize(("implicit", "at_most"), [(False, 4), (True, NEVER)])
def test_without_transactions_of_version_2_the_end_raises_no_epoch(implicit: bool, at_most: int) -> None:
    """A broker of Kafka 4 raises it for version 5 in every cluster, and the next transaction would be fenced."""
    assert request(EndTxn("shop", PRODUCER, commit=True, implicit=implicit), 1000)[1] == at_most
