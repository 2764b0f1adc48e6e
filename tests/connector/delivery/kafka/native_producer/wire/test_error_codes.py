"""Error codes: names and remedies as in Kafka 4.3.1's own client (``golden/errors.tsv``)."""

from __future__ import annotations

import pytest
from kafka_wire import GOLDEN

from rowtide.connector.delivery.kafka.native_producer.wire import error_codes
from rowtide.connector.delivery.kafka.native_producer.wire.error_codes import ErrorCode, Remedy, error_of

KNOWN = [value for value in vars(error_codes).values() if isinstance(value, ErrorCode)]
KAFKA = {
    int(code): (name, more)
    for code, name, *more in (line.split("\t") for line in (GOLDEN / "errors.tsv").read_text().splitlines())
}


@pytest.mark.parametrize("error", KNOWN, ids=lambda error: error.name)
def test_names_and_remedies_are_those_of_kafka(error: ErrorCode) -> None:
    name, (retriable, metadata, refresh) = KAFKA[error.code]
    assert error.name == name
    remedies = {
        ("", "", ""): Remedy.NONE,
        ("retriable", "", ""): Remedy.RETRY,
        ("retriable", "", "refresh"): Remedy.COORDINATOR,
        ("retriable", "metadata", "refresh"): Remedy.METADATA,
    }
    assert error.remedy is remedies[retriable, metadata, refresh]
    assert error.retriable is bool(retriable)
    assert error_of(error.code) is error


def test_names_are_those_of_the_module() -> None:
    assert all(vars(error_codes)[error.name] is error for error in KNOWN)


def test_a_code_that_is_not_known() -> None:
    error = error_of(12345)
    assert str(error) == "UNEXPECTED (12345): a code that no producer should get"
    assert not error.retriable


def test_the_text_of_an_error() -> None:
    text = "NOT_LEADER_OR_FOLLOWER (6): the broker does not lead the partition any more"
    assert str(error_codes.NOT_LEADER_OR_FOLLOWER) == text
