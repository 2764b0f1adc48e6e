"""Maps librdkafka's errors to the errors of delivery.

librdkafka distinguishes fatal errors (the producer can no longer be used), abortable ones (the transaction must be
aborted) and retriable ones. A delivery report has a code only; this module decides which codes are permanent.
"""

from typing import Any

from confluent_kafka import KafkaError

from rowtide.connector.delivery.errors import (
    BrokerUnavailable,
    DeliveryError,
    ProducerFailed,
    RecordRejected,
    TopicReplaced,
    TransactionAborted,
)
from rowtide.connector.delivery.kafka.refusals import Refusal, access_denied, fenced, producer_failed, refused

_K: Any = KafkaError
_TOO_LARGE = {_K.MSG_SIZE_TOO_LARGE, _K.RECORD_LIST_TOO_LARGE, _K.INVALID_MSG_SIZE}
_NO_TOPIC = {_K.UNKNOWN_TOPIC_OR_PART, _K._UNKNOWN_TOPIC}  # noqa: SLF001 - librdkafka's codes
_DENIED = {
    _K.TOPIC_AUTHORIZATION_FAILED,
    _K.CLUSTER_AUTHORIZATION_FAILED,
    _K.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    _K.SASL_AUTHENTICATION_FAILED,
    _K._AUTHENTICATION,  # noqa: SLF001
}
_INVALID = {_K.INVALID_RECORD, _K.INVALID_TIMESTAMP}
_REJECTED = {
    _K.TOPIC_EXCEPTION,
    _K.POLICY_VIOLATION,
    _K.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    _K.UNSUPPORTED_COMPRESSION_TYPE,
    _K._INVALID_ARG,  # noqa: SLF001
    _K._UNKNOWN_PARTITION,  # noqa: SLF001
}
_FENCED = {_K._FENCED, _K.PRODUCER_FENCED, _K.INVALID_PRODUCER_EPOCH, _K.TRANSACTION_COORDINATOR_FENCED}  # noqa: SLF001
_PURGED = {_K._PURGE_QUEUE, _K._PURGE_INFLIGHT}  # noqa: SLF001
_TIMED_OUT = {_K._TIMED_OUT, _K.REQUEST_TIMED_OUT, _K._TRANSPORT, _K._ALL_BROKERS_DOWN}  # noqa: SLF001
_REFUSALS = {
    **dict.fromkeys(_TOO_LARGE, Refusal.TOO_LARGE),
    **dict.fromkeys(_NO_TOPIC, Refusal.NO_TOPIC),
    **dict.fromkeys(_DENIED, Refusal.DENIED),
    **dict.fromkeys(_INVALID, Refusal.INVALID),
    **dict.fromkeys(_REJECTED, Refusal.OTHER),
}


def is_purged(error: KafkaError) -> bool:
    """Return whether a message failed only because its transaction was aborted."""
    return error.code() in _PURGED


def partition_gone(error: KafkaError, topic: str) -> TopicReplaced | None:
    """Return the error if the client itself chose a partition that no longer exists."""
    if error.code() != _K._UNKNOWN_PARTITION:  # noqa: SLF001 - librdkafka's code
        return None
    return TopicReplaced(topic, "was re-created with fewer partitions")


def is_retriable(error: KafkaError) -> bool:
    """Return whether calling the same function again may succeed."""
    return error.retriable() or error.code() in _TIMED_OUT


def rejected(
    error: KafkaError, topic: str, key: bytes | None, size: int, *, show_key: bool = False
) -> RecordRejected | None:
    """Return the error for a message that Kafka will never accept; ``None`` if a retry may succeed.

    Args:
        error: from the delivery report, or from the call.
        topic: the message's topic.
        key: the message's key.
        size: bytes of key and value.
        show_key: whether the error may show the key.
    """
    refusal = _REFUSALS.get(error.code())
    return None if refusal is None else refused(refusal, error.str(), topic, key, size, show_key=show_key)


def larger_than_queue(topic: str, size: int) -> RecordRejected:
    """Return the error for a message that does not fit into the producer's empty queue.

    Args:
        topic: the message's topic.
        size: bytes of key and value.
    """
    return RecordRejected(
        f"a message for topic {topic!r} has {size} bytes, more than the producer's buffer. Remove "
        "producer.override.buffer.memory, or set it to at least producer.override.max.request.size"
    )


def message_failed(
    error: KafkaError, topic: str, key: bytes | None, size: int, transactional_id: str = "", *, show_key: bool = False
) -> DeliveryError:
    """Return the error for a message that was not delivered.

    Args:
        error: from the delivery report, or from the call.
        topic: the message's topic.
        key: the message's key.
        size: bytes of key and value.
        transactional_id: the producer's, if it has one: its other failures end the transaction only.
        show_key: whether the error may show the key.
    """
    never = None if error.fatal() else rejected(error, topic, key, size, show_key=show_key)
    if never is not None:
        return never
    failed = call_failed(f"send a message to topic {topic!r}", error, transactional_id)
    if transactional_id and isinstance(failed, ProducerFailed | BrokerUnavailable) and not error.fatal():
        return TransactionAborted(str(failed))
    return failed


def call_failed(what: str, error: KafkaError, transactional_id: str = "") -> DeliveryError:
    """Return the error for a failed call of the producer.

    Args:
        what: the action, for the message, such as "commit the transaction".
        error: librdkafka's error.
        transactional_id: the producer's, if it has one.
    """
    text = f"cannot {what}: {error.str()}"
    if error.code() in _FENCED and (error.fatal() or not error.txn_requires_abort()):
        return fenced(text, transactional_id)
    if error.code() in _DENIED:
        return access_denied(text, transactional_id)
    if error.fatal():
        return producer_failed(text)
    if error.txn_requires_abort():
        return TransactionAborted(text)
    if is_retriable(error):
        return BrokerUnavailable(f"{text}. Check that bootstrap.servers can be reached")
    return ProducerFailed(text)
