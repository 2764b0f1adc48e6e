"""Errors of the delivery.

ConnectorError
└── DeliveryError              ``restartable``: a restart from the stored offset may succeed
    ├── RecordRejected         Kafka will never accept this message: too large, not authorized
    │   └── TopicMissing         the topic does not exist: a new start may create it
    ├── TopicReplaced          a topic was deleted or created again while the connector ran
    ├── AccessDenied           authentication or authorization failed
    ├── ProducerFenced         another instance with the same transactional.id has taken over
    ├── TakenOver              another program stores offsets for the same connector
    ├── TransactionExpired     a transaction stayed open for too long: the process was suspended, or Kafka was down
    ├── ProducerFailed         a fatal error of the Kafka client
    ├── BrokerUnavailable      Kafka did not respond in time
    ├── SinkUnavailable        a sink other than Kafka cannot currently write
    ├── ClaimCheckUnavailable  the folder of claim checks cannot be written or read now
    ├── TransactionAborted     this transaction was aborted; its messages must be sent again
    ├── DeliveryInterrupted    stopped before everything was acknowledged
    └── OffsetStoreError       the offsets topic or file cannot be read or written
        └── OffsetStoreUnavailable   no broker responded, a transaction stays open, or the disk is full
"""

from typing import ClassVar

from rowtide.connector.errors import ConnectorError


class DeliveryError(ConnectorError):
    """Messages could not be delivered. The stored offset is before them, so none is lost.

    Attributes:
        restartable: whether a restart from the stored offset may succeed without any other change.
    """

    restartable: ClassVar[bool] = False


class RecordRejected(DeliveryError):
    """Kafka will never accept this message; the text names topic, size and remedy."""


class TopicMissing(RecordRejected):
    """The topic does not exist.

    Attributes:
        topic: its name.
    """

    def __init__(self, message: str, topic: str) -> None:
        super().__init__(message)
        self.topic = topic


class TopicReplaced(DeliveryError):
    """A topic was deleted, created again, or has fewer partitions than before; its earlier records are lost.

    Args:
        topic: its name.
        what: the event, to complete a sentence.
    """

    restartable = True

    def __init__(self, topic: str, what: str) -> None:
        super().__init__(f"topic {topic!r} {what} while the connector ran: its earlier records are lost")


class AccessDenied(DeliveryError):
    """Wrong credentials, or missing permissions."""


class ProducerFenced(DeliveryError):
    """Another instance with the same ``transactional.id`` has started: this one must stop."""


class TakenOver(DeliveryError):
    """Another program stores offsets for the same connector, and this one must not run at the same time."""


class TransactionExpired(DeliveryError):
    """Kafka aborted a transaction that stayed open longer than ``transaction.timeout.ms``, and fenced its producer."""

    restartable = True


class ProducerFailed(DeliveryError):
    """The Kafka client reported an error that ends this producer."""

    restartable = True


class BrokerUnavailable(DeliveryError):
    """Kafka did not respond in time."""

    restartable = True


class SinkUnavailable(DeliveryError):
    """A sink other than Kafka cannot currently write, for example because the disk is full."""

    restartable = True


class ClaimCheckUnavailable(DeliveryError):
    """A value cannot currently be written to the folder of claim checks, or read from it."""

    restartable = True


class TransactionAborted(DeliveryError):
    """The open transaction cannot be committed; abort it and send its messages again."""

    restartable = True


class DeliveryInterrupted(DeliveryError):
    """Delivery was stopped before everything was acknowledged."""

    restartable = True


class OffsetStoreError(DeliveryError):
    """Source offsets cannot be read or written."""


class OffsetStoreUnavailable(OffsetStoreError):
    """Offsets cannot currently be read or written: no broker responds, a transaction is open, or the disk is full."""

    restartable = True
