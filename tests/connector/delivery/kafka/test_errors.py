"""The errors that Kafka's errors are mapped to, and their messages."""

import pytest
from confluent_kafka import KafkaError

from rowtide.connector.delivery.errors import (
    AccessDenied,
    BrokerUnavailable,
    DeliveryError,
    ProducerFailed,
    ProducerFenced,
    RecordRejected,
    TransactionAborted,
)
from rowtide.connector.delivery.kafka.errors import (
    call_failed,
    is_purged,
    message_failed,
    rejected,
)
from rowtide.connector.delivery.kafka.refusals import severity, shown_key

K = KafkaError


def error(code: int, *, fatal: bool = False, retriable: bool = False, abort: bool = False) -> KafkaError:
    return KafkaError(code, "broker says so", fatal, retriable, abort)


def test_a_message_that_is_too_large_is_named_with_the_remedy() -> None:
    key = b'{"schema":{"type":"struct"},"payload":{"id":17}}'
    failure = rejected(error(K.MSG_SIZE_TOO_LARGE), "shop.shop.orders", key, 2_000_000, show_key=True)
    assert failure is not None
    for part in ("'shop.shop.orders'", '{"id": 17}', "2000000 bytes", "producer.override.max.request.size"):
        assert part in str(failure)
    assert "struct" not in str(failure)


def test_a_key_is_hidden_unless_it_is_requested() -> None:
    key = b'{"id":4711}'
    assert "4711" not in str(message_failed(error(K.INVALID_RECORD), "shop.t", key, 10))
    assert "4711" in str(message_failed(error(K.INVALID_RECORD), "shop.t", key, 10, show_key=True))


@pytest.mark.parametrize(
    ("code", "way_out"),
    [
        (K.UNKNOWN_TOPIC_OR_PART, "create it"),
        (K._UNKNOWN_TOPIC, "topic.creation.enable"),
        (K.TOPIC_AUTHORIZATION_FAILED, "WRITE"),
        (K.POLICY_VIOLATION, "shop.t"),
        (K.INVALID_RECORD, "shop.t"),
        (K.INVALID_TIMESTAMP, "check the clock"),
    ],
)
def test_permanent_rejections_state_the_reason(code: int, way_out: str) -> None:
    failure = rejected(error(code), "shop.t", None, 10)
    assert isinstance(failure, RecordRejected)
    assert way_out in str(failure)


@pytest.mark.parametrize("code", [K._MSG_TIMED_OUT, K.NOT_ENOUGH_REPLICAS, K._TRANSPORT])
def test_temporary_failures_are_not_rejections(code: int) -> None:
    assert rejected(error(code), "t", None, 1) is None


@pytest.mark.parametrize(
    ("kafka_error", "kind"),
    [
        (error(K._FENCED, fatal=True), ProducerFenced),
        (error(K.INVALID_PRODUCER_EPOCH, fatal=True), ProducerFenced),
        (error(K.INVALID_PRODUCER_EPOCH, abort=True), TransactionAborted),
        (error(K.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, fatal=True), AccessDenied),
        (error(K._FATAL, fatal=True), ProducerFailed),
        (error(K._STATE, abort=True), TransactionAborted),
        (error(K._TIMED_OUT), BrokerUnavailable),
        (error(K._TRANSPORT, retriable=True), BrokerUnavailable),
        (error(K._STATE), ProducerFailed),
    ],
)
def test_failed_calls_are_classified(kafka_error: KafkaError, kind: type[DeliveryError]) -> None:
    assert type(call_failed("commit the transaction", kafka_error, "rowtide-shop-0")) is kind


def test_the_error_of_a_fenced_instance_names_the_transactional_id() -> None:
    text = str(call_failed("commit the transaction", error(K._FENCED, fatal=True), "rowtide-shop-0"))
    assert "rowtide-shop-0" in text
    assert "second process" in text


def test_in_a_transaction_an_expired_message_ends_only_the_transaction() -> None:
    late = error(K._MSG_TIMED_OUT)
    assert type(message_failed(late, "t", None, 1, "id")) is TransactionAborted
    assert type(message_failed(late, "t", None, 1)) is ProducerFailed
    assert type(message_failed(error(K.MSG_SIZE_TOO_LARGE), "t", None, 1, "id")) is RecordRejected
    assert type(message_failed(error(K._FENCED, fatal=True), "t", None, 1, "id")) is ProducerFenced


def test_the_most_severe_error_is_raised() -> None:
    errors = [TransactionAborted(""), ProducerFailed(""), RecordRejected(""), AccessDenied(""), ProducerFenced("")]
    assert sorted(errors, key=severity) == errors


def test_messages_of_an_aborted_transaction_are_not_failures() -> None:
    assert is_purged(error(K._PURGE_QUEUE))
    assert is_purged(error(K._PURGE_INFLIGHT))
    assert not is_purged(error(K._MSG_TIMED_OUT))


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        (None, "none"),
        (b"\xff\x00", r"b'\xff\x00'"),
        (b'{"id":1}', '{"id": 1}'),
        ('{"name":"日本"}'.encode(), '{"name": "日本"}'),
        (b'{"schema":{},"payload":{"id":1}}', '{"id": 1}'),
        (b'"' + b"x" * 500 + b'"', '"' + "x" * 199 + "…"),
    ],
)
def test_shown_keys_have_no_schema_and_are_truncated(key: bytes | None, shown: str) -> None:
    assert shown_key(key) == shown
