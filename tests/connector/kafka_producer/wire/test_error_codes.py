"""Error codes: names as in Kafka 4.3.1's own client (``golden/errors.tsv``)."""

from __future__ import annotations

import pytest

from rowtide.connector.kafka_producer.wire.error_codes import ErrorCode, code_text
from tests.support.kafka.wire import KAFKA_ERRORS


@pytest.mark.parametrize("error", ErrorCode, ids=lambda error: error.name)
def test_names_are_those_of_kafka(error: ErrorCode) -> None:
    assert error.name == KAFKA_ERRORS[error].name


def test_a_code_that_is_not_known() -> None:
    assert code_text(12345) == "error code 12345, which no producer should get"


def test_the_text_of_an_error() -> None:
    text = "NOT_LEADER_OR_FOLLOWER (6): the broker no longer leads the partition"
    assert code_text(ErrorCode.NOT_LEADER_OR_FOLLOWER) == text
