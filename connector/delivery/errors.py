"""What can go wrong between the event store and Kafka.

ConnectorError
└── DeliveryError              ``restartable`` says whether starting again from the stored offset may help
    ├── RecordRejected         Kafka will never take this message: too large, topic missing, not authorised
    ├── AccessDenied           Kafka does not know us, or does not let us
    ├── ProducerFenced         another instance with the same transactional.id has taken over
    ├── TransactionExpired     a transaction stayed open for too long: the process slept, or Kafka was away
    ├── ProducerFailed         the Kafka client has given up
    ├── BrokerUnavailable      Kafka did not answer in time
    ├── SinkUnavailable        a sink beside Kafka cannot write now
    ├── TransactionAborted     this transaction is lost, its messages are not: send them again
    ├── DeliveryInterrupted    asked to stop before everything was acknowledged
    └── OffsetStoreError       the offsets topic or file cannot be read or written
        └── OffsetStoreUnavailable   no broker answered, or a transaction stays open
"""

from typing import ClassVar

from rowtide.connector.errors import ConnectorError


class DeliveryError(ConnectorError):
    """Messages could not be delivered; the offset was not moved past them, so none is lost.

    Attributes:
        restartable: whether a restart from the stored offset may succeed without anybody changing anything.
    """

    restartable: ClassVar[bool] = False


class RecordRejected(DeliveryError):
    """Kafka will never take this message as things are; the text names topic, key, size and the way out."""


class AccessDenied(DeliveryError):
    """Wrong credentials, or rights that are missing."""


class ProducerFenced(DeliveryError):
    """Another instance with the same ``transactional.id`` has started: this one must stop."""


class TransactionExpired(DeliveryError):
    """Kafka aborted a transaction that stayed open longer than ``transaction.timeout.ms``, and fenced its producer."""

    restartable = True


class ProducerFailed(DeliveryError):
    """The Kafka client reported an error that ends this producer."""

    restartable = True


class BrokerUnavailable(DeliveryError):
    """Kafka did not answer in time."""

    restartable = True


class SinkUnavailable(DeliveryError):
    """A sink beside Kafka cannot write now: the disk is full, or the like."""

    restartable = True


class TransactionAborted(DeliveryError):
    """The open transaction cannot be committed; abort it and send its messages again."""

    restartable = True


class DeliveryInterrupted(DeliveryError):
    """Delivery was asked to stop at once, before everything was acknowledged."""

    restartable = True


class OffsetStoreError(DeliveryError):
    """Source offsets cannot be read or written."""


class OffsetStoreUnavailable(OffsetStoreError):
    """The offsets topic cannot be read now: no broker answered, or a transaction stays open."""

    restartable = True
