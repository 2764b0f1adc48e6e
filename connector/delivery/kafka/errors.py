"""Maps Kafka's error codes to the errors of delivery, with messages for operators.

librdkafka distinguishes fatal errors (the producer cannot be used any more), abortable ones (the transaction must be
aborted) and retriable ones. A delivery report has a code only; this module decides which codes are permanent.
"""

import json
from typing import Any

from confluent_kafka import KafkaError

from rowtide.connector.delivery.errors import (
    AccessDenied,
    BrokerUnavailable,
    DeliveryError,
    ProducerFailed,
    ProducerFenced,
    RecordRejected,
    TopicMissing,
    TopicReplaced,
    TransactionAborted,
)

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
_MAX_KEY_LENGTH = 200
_SHOW_KEYS = "errors.log.include.messages=true shows it"


def is_purged(error: KafkaError) -> bool:
    """Whether a message failed only because its transaction was aborted."""
    return error.code() in _PURGED


def partition_gone(error: KafkaError, topic: str) -> TopicReplaced | None:
    """The error if the client itself chose a partition that does not exist any more."""
    if error.code() != _K._UNKNOWN_PARTITION:  # noqa: SLF001 - librdkafka's code
        return None
    return TopicReplaced(topic, "was created again with fewer partitions")


def is_retriable(error: KafkaError) -> bool:
    """Whether calling the same function again may succeed."""
    return error.retriable() or error.code() in _TIMED_OUT


def rejected(
    error: KafkaError, topic: str, key: bytes | None, size: int, *, show_key: bool = False
) -> RecordRejected | None:
    """The error for a message that Kafka will never accept; ``None`` if a retry may succeed.

    Args:
        error: from the delivery report, or from the call.
        topic: the message's topic.
        key: the message's key.
        size: bytes of key and value.
        show_key: whether the error may show the key.
    """
    code = error.code()
    shown = f", key {shown_key(key)}" if show_key or key is None else f", with a key ({_SHOW_KEYS})"
    what = f"Kafka refuses a message for topic {topic!r}{shown}, {size} bytes: {error.str()}"
    if code in _TOO_LARGE:
        return RecordRejected(
            f"{what}. Allow larger messages with producer.override.max.request.size and on the topic with "
            "max.message.bytes (on the brokers message.max.bytes), or leave columns out with column.exclude.list. "
            "If messages are too large only together, set producer.override.batch.size below the topic's limit"
        )
    if code in _NO_TOPIC:
        return TopicMissing(
            f"{what}. The topic was deleted, or topic.creation.enable=false and nobody created it: create it", topic
        )
    if code in _DENIED:
        return RecordRejected(f"{what}. Grant the connector's Kafka user WRITE on the topic")
    if code in _INVALID:
        return RecordRejected(
            f"{what}. Brokers refuse messages whose time is too far from theirs (message.timestamp.after.max.ms and "
            "message.timestamp.before.max.ms): check the clock of this host. Topics with cleanup.policy=compact refuse "
            "messages without a key"
        )
    if code in _REJECTED:
        return RecordRejected(what)
    return None


def larger_than_queue(topic: str, size: int) -> RecordRejected:
    """The error for a message that does not fit into the producer's empty queue.

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
    """The error for a message that was not delivered.

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


def severity(error: DeliveryError) -> int:
    """The rank of an error: of several errors, the one with the highest rank is raised."""
    ranks = (ProducerFenced, AccessDenied, RecordRejected, TopicReplaced, ProducerFailed)
    return next((len(ranks) - at for at, kind in enumerate(ranks) if isinstance(error, kind)), 0)


def shown_key(key: bytes | None) -> str:
    """A key for an error message, without its schema and truncated."""
    if key is None:
        return "none"
    try:
        decoded = json.loads(key)
    except ValueError:
        text = repr(key)
    else:
        if isinstance(decoded, dict) and decoded.keys() == {"schema", "payload"}:
            decoded = decoded["payload"]
        text = json.dumps(decoded, ensure_ascii=False)
    return text if len(text) <= _MAX_KEY_LENGTH else text[:_MAX_KEY_LENGTH] + "…"


def call_failed(what: str, error: KafkaError, transactional_id: str = "") -> DeliveryError:
    """The error for a failed call of the producer.

    Args:
        what: the action, for the message, such as "commit the transaction".
        error: librdkafka's error.
        transactional_id: the producer's, if it has one.
    """
    text = f"cannot {what}: {error.str()}"
    if error.code() in _FENCED and (error.fatal() or not error.txn_requires_abort()):
        return ProducerFenced(
            f"{text}. Another instance of this connector has started with transactional.id {transactional_id!r}, so "
            "this one stops; its uncommitted records never become visible. If no other instance should run, look for a "
            "second process with the same configuration"
        )
    if error.code() in _DENIED:
        return AccessDenied(
            f"{text}. Check the credentials, and grant the connector's Kafka user WRITE on its topics"
            + (f" and DESCRIBE and WRITE on transactional id {transactional_id!r}" if transactional_id else "")
        )
    if error.fatal():
        return ProducerFailed(f"{text}. The producer cannot be used any more; a restart resumes from the stored offset")
    if error.txn_requires_abort():
        return TransactionAborted(text)
    if is_retriable(error):
        return BrokerUnavailable(f"{text}. Check that bootstrap.servers can be reached")
    return ProducerFailed(text)
