"""The errors that end delivery to Kafka, with the solution for operators. Pure: without a Kafka client's codes."""

import enum
import json

from rowtide.connector.delivery.errors import (
    AccessDenied,
    DeliveryError,
    ProducerFailed,
    ProducerFenced,
    RecordRejected,
    TopicMissing,
    TopicReplaced,
)

_MAX_KEY_LENGTH = 200
_SHOW_KEYS = "errors.log.include.messages=true shows it"


class Refusal(enum.Enum):
    """The reason why Kafka will never accept a message; the value is the solution, in a sentence."""

    TOO_LARGE = (
        "Allow larger messages with producer.override.max.request.size and on the topic with max.message.bytes (on the "
        "brokers message.max.bytes), exclude columns with column.exclude.list, or set rowtide.large.records. If "
        "messages are too large only together, set producer.override.batch.size below the topic's limit"
    )
    NO_TOPIC = "The topic was deleted, or it does not exist and topic.creation.enable=false: create it"
    DENIED = "Grant the connector's Kafka user WRITE on the topic"
    INVALID = (
        "Brokers refuse messages whose time is too far from theirs (message.timestamp.after.max.ms and "
        "message.timestamp.before.max.ms): check the clock of this host. Topics with cleanup.policy=compact refuse "
        "messages without a key"
    )
    OTHER = ""


def refused(
    refusal: Refusal, reason: str, topic: str, key: bytes | None, size: int, *, show_key: bool = False
) -> RecordRejected:
    """Return the error for a message that Kafka will never accept.

    Args:
        refusal: the kind of the reason.
        reason: Kafka's message.
        topic: the message's topic.
        key: the message's key.
        size: bytes of key and value.
        show_key: whether the error may show the key.
    """
    shown = f", key {shown_key(key)}" if show_key or key is None else f", with a key ({_SHOW_KEYS})"
    remedy = f". {refusal.value}" if refusal.value else ""
    text = f"Kafka refuses a message for topic {topic!r}{shown}, {size} bytes: {reason}{remedy}"
    return TopicMissing(text, topic) if refusal is Refusal.NO_TOPIC else RecordRejected(text)


def fenced(text: str, transactional_id: str) -> ProducerFenced:
    """Return the error for a producer whose transactional id another instance has taken."""
    return ProducerFenced(
        f"{text}. Another instance of this connector has started with transactional.id {transactional_id!r}, so "
        "this one stops; its uncommitted records never become visible. If no other instance should run, look for a "
        "second process with the same configuration"
    )


def access_denied(text: str, transactional_id: str = "") -> AccessDenied:
    """Return the error for wrong credentials or missing permissions."""
    return AccessDenied(
        f"{text}. Check the credentials, and grant the connector's Kafka user WRITE on its topics"
        + (f" and DESCRIBE and WRITE on transactional id {transactional_id!r}" if transactional_id else "")
    )


def producer_failed(text: str) -> ProducerFailed:
    """Return the error for a producer that can no longer be used."""
    return ProducerFailed(f"{text}. The producer can no longer be used; a restart resumes from the stored offset")


def severity(error: DeliveryError) -> int:
    """Return the rank of an error: of several errors, the one with the highest rank is raised."""
    ranks = (ProducerFenced, AccessDenied, RecordRejected, TopicReplaced, ProducerFailed)
    return next((len(ranks) - at for at, kind in enumerate(ranks) if isinstance(error, kind)), 0)


def shown_key(key: bytes | None) -> str:
    """Return a key for an error message, without its schema and truncated."""
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
