"""Errors of the producer.

KafkaProducerError
├── RecordRejected        Kafka will never accept this record: too large, not authorized, invalid
├── TopicRejected         Kafka accepts no record for this topic: its name is invalid
├── TopicMissing          the topic does not exist
├── TopicReplaced         a topic was deleted or created again, or has lost acknowledged records
├── AccessDenied          authentication or authorization failed
├── ProducerFenced        another producer with the same transactional id has started
├── BrokerNotSupported    the broker and the producer have no version of an API in common
├── ProducerFailed        this producer can no longer be used; a new one may succeed
├── BrokerUnavailable     Kafka did not respond in time
├── TransactionAborted    this transaction must be aborted; its records must be sent again
└── ProducerInterrupted   another thread interrupted the producer

A setting that is invalid, or that the producer lacks, is a ``ValueError``.
"""

import enum
from typing import ClassVar


class Rejection(enum.Enum):
    """The reason why Kafka will never accept a record."""

    TOO_LARGE = enum.auto()
    DENIED = enum.auto()
    INVALID = enum.auto()
    OTHER = enum.auto()


class KafkaProducerError(Exception):
    """Records could not be sent.

    Attributes:
        rank: of several errors at the same time, the one with the highest rank is reported.
    """

    rank: ClassVar[int] = 0


class RecordRejected(KafkaProducerError):
    """Kafka will never accept a record.

    Attributes:
        topic: the record's topic.
        key: the record's key. It is not part of the message.
        size: bytes of key and value.
        rejection: the kind of the reason.
        reason: Kafka's message.
    """

    rank = 3

    def __init__(self, topic: str, key: bytes | None, size: int, rejection: Rejection, reason: str) -> None:
        super().__init__(f"Kafka rejects a record for topic {topic!r}, {size} bytes: {reason}")
        self.topic, self.key, self.size, self.rejection, self.reason = topic, key, size, rejection, reason


class TopicRejected(KafkaProducerError):
    """Kafka accepts no record for a topic."""

    rank = 3


class TopicMissing(KafkaProducerError):
    """The topic does not exist.

    Attributes:
        topic: its name.
    """

    rank = 3

    def __init__(self, topic: str) -> None:
        super().__init__(f"topic {topic!r} does not exist")
        self.topic = topic


class TopicReplaced(KafkaProducerError):
    """A topic's earlier records are lost.

    Attributes:
        topic: its name.
        what: the event, to complete a sentence.
    """

    rank = 2

    def __init__(self, topic: str, what: str) -> None:
        super().__init__(f"topic {topic!r} {what}")
        self.topic, self.what = topic, what


class AccessDenied(KafkaProducerError):
    """Wrong credentials, or missing permissions."""

    rank = 4


class ProducerFenced(KafkaProducerError):
    """Another producer with the same transactional id has started: this one must stop."""

    rank = 5


class BrokerNotSupported(KafkaProducerError):
    """The broker and the producer have no version of an API in common."""


class ProducerFailed(KafkaProducerError):
    """This producer can no longer be used; a new one may succeed."""

    rank = 1


class BrokerUnavailable(KafkaProducerError):
    """Kafka did not respond in time."""


class TransactionAborted(KafkaProducerError):
    """The open transaction cannot be committed: abort it and send its records again."""


class ProducerInterrupted(KafkaProducerError):
    """Another thread interrupted a call before it was complete."""
