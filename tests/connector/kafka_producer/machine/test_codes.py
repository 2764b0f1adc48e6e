"""Reactions to error codes, compared with Kafka 4.3.1's own client (``golden/errors.tsv``)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rowtide.connector.kafka_producer.machine.codes import (
    COORDINATION,
    METADATA,
    PRODUCE,
    Reaction,
)
from rowtide.connector.kafka_producer.wire.error_codes import ErrorCode
from tests.support.kafka.wire import KAFKA_ERRORS

RETRIED = (Reaction.RETRY, Reaction.REFRESH)
ALSO_RETRIED = {ErrorCode.OPERATION_NOT_ATTEMPTED}
"""Java's client retries it as well, beside the error of another partition (``TransactionManager``)."""
FAILS = {ErrorCode.CORRUPT_MESSAGE}
"""Java's client sends the batch again. What is damaged may be its bytes in memory, so the producer is replaced."""


@pytest.mark.parametrize("table", [COORDINATION, PRODUCE, METADATA], ids=["coordination", "produce", "metadata"])
def test_only_errors_that_pass_are_retried(table: Mapping[int, Reaction]) -> None:
    retried = {code for code, reaction in table.items() if reaction in RETRIED}
    assert {code for code in retried if not KAFKA_ERRORS[code].retriable} <= ALSO_RETRIED


def test_the_errors_of_a_partition_that_pass_are_all_retried() -> None:
    passing = {code for code in ErrorCode if KAFKA_ERRORS[code].retriable} - FAILS
    assert {code for code in passing if PRODUCE.get(code) not in RETRIED} == set()


def test_the_leader_is_looked_up_where_kafkas_client_does() -> None:
    network = ErrorCode.NETWORK_EXCEPTION  # the broker answers, so it still leads
    refreshed = {code for code, reaction in PRODUCE.items() if reaction is Reaction.REFRESH}
    assert {code for code in PRODUCE if KAFKA_ERRORS[code].metadata} - refreshed == {network}
