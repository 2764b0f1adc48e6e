"""Passes the results of requests to the state machine, and reports calls that its state does not allow."""

import logging

from rowtide.connector.kafka_producer.brokers import Result
from rowtide.connector.kafka_producer.connection.errors import ConnectionFailed
from rowtide.connector.kafka_producer.errors import (
    AccessDenied,
    BrokerNotSupported,
    KafkaProducerError,
    ProducerFailed,
)
from rowtide.connector.kafka_producer.machine import Sender
from rowtide.connector.kafka_producer.machine.messages import Outgoing
from rowtide.connector.kafka_producer.machine.transactions import TransactionStateError
from rowtide.connector.kafka_producer.wire.errors import (
    AuthenticationFailed,
    UnsupportedBroker,
    WireError,
)

log = logging.getLogger(__name__)


def take(sender: Sender, outgoing: Outgoing, result: Result, now: float) -> KafkaProducerError | None:
    """Pass the result of a request to the state machine, and log lost ones.

    Returns:
        The reason why the producer can no longer be used, if the machine does not report it.

    Raises:
        Exception: the result is an unexpected error.
    """
    if not isinstance(result, Exception):
        sender.answered(outgoing.number, result, now)
    elif isinstance(result, ConnectionFailed):
        sender.lost(outgoing.number, str(result), now)
        log.warning("%s", result)
    elif isinstance(result, AuthenticationFailed):
        sender.lost(outgoing.number, str(result), now)
        return AccessDenied(str(result))
    elif isinstance(result, UnsupportedBroker):
        sender.lost(outgoing.number, str(result), now)
        return BrokerNotSupported(str(result))
    elif isinstance(result, WireError):
        sender.malformed(outgoing.number, str(result))
    else:
        raise result
    return None


class StateChecked:
    """Reports a call that the state of the transaction does not allow as a failure of the producer.

    Args:
        what: the operation that is not allowed.
    """

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, TransactionStateError):
            raise ProducerFailed(f"cannot {self._what}: {error}") from error
