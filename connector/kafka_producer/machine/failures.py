"""Failures of the machine: the error for the caller, and whether aborting the transaction is enough."""

from dataclasses import dataclass

from rowtide.connector.kafka_producer.errors import (
    AccessDenied,
    BrokerUnavailable,
    KafkaProducerError,
    ProducerFailed,
    ProducerFenced,
    RecordRejected,
    Rejection,
    TopicRejected,
    TopicReplaced,
    TransactionAborted,
)
from rowtide.connector.kafka_producer.machine.codes import REJECTIONS, Reaction
from rowtide.connector.kafka_producer.machine.messages import Batch, ProducedBatch, TopicPartition
from rowtide.connector.kafka_producer.wire.error_codes import code_name, code_text


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why nothing more is sent.

    Attributes:
        error: for the caller.
        abortable: whether the producer can be used again once its transaction is aborted.
    """

    error: KafkaProducerError
    abortable: bool


@dataclass(slots=True)
class RetriedProblem:
    """The last error that was retried, for the status of the connector.

    Attributes:
        text: the error; ``None`` if there was none.
    """

    text: str | None = None


def worst(failures: list[Failure]) -> Failure:
    """Return the failure to report, of several at the same time: one that ends the producer comes first."""
    return max(failures, key=lambda failure: (not failure.abortable, failure.error.rank))


def unusable(text: str) -> Failure:
    """Return the failure of a producer that cannot continue, although a new one may."""
    return Failure(ProducerFailed(text), abortable=False)


def malformed_answer(sent: object, why: str) -> Failure:
    """Return the failure for an impossible answer to a request, after which it is unknown what was stored."""
    return unusable(f"the response to {sent} is invalid: {why}")


def by_reaction(what: str, code: int, reaction: Reaction, transactional_id: str, message: str = "") -> Failure:
    """Return the failure for a code that is neither a success nor retried.

    Args:
        what: the action, such as "commit the transaction".
        code: Kafka's code.
        reaction: from a table of ``codes``.
        transactional_id: ``""`` without transactions.
        message: the broker's explanation.
    """
    text = f"cannot {what}: {reason(code, message)}"
    if reaction is Reaction.FENCED and transactional_id:
        return Failure(ProducerFenced(text), abortable=False)
    if reaction is Reaction.DENIED:
        return Failure(AccessDenied(text), abortable=False)
    if reaction is Reaction.ABORTABLE and transactional_id:
        return Failure(TransactionAborted(text), abortable=True)
    return unusable(text)


def batch_rejected(batch: Batch, answer: ProducedBatch) -> Failure:
    """Return the failure for a batch with a record that Kafka rejects; it names the record, or the largest one."""
    named = [index for index in answer.rejected if 0 <= index < batch.count]
    key, size = batch.record(named[0] if named else None)
    rejection = REJECTIONS.get(answer.error, Rejection.OTHER)
    why = reason(answer.error, answer.message)
    return Failure(RecordRejected(batch.topic, key, size, rejection, why), abortable=True)


def topic_rejected(topic: str, why: str) -> Failure:
    """Return the failure for a topic to which nothing can be sent."""
    return Failure(TopicRejected(f"Kafka rejects records for topic {topic!r}: {why}"), abortable=True)


def records_lost(place: TopicPartition, *, abortable: bool = True) -> Failure:
    """Return the failure for a partition without records that were acknowledged.

    Args:
        place: the partition.
        abortable: false while a transaction is being aborted, which forgets such failures.
    """
    what = f"has lost acknowledged records of partition {place.partition}"
    return Failure(TopicReplaced(place.topic, what), abortable)


def expired(batch: Batch, limit_s: float, problem: str | None, transactional_id: str) -> Failure:
    """Return the failure for a batch that was not acknowledged within ``delivery.timeout.ms``."""
    text = (
        f"a batch for topic {batch.topic!r}, partition {batch.partition}, was not acknowledged within "
        f"delivery.timeout.ms={limit_s * 1000:.0f}: {problem or 'no broker has answered'}. Check that "
        "bootstrap.servers can be reached, and that all brokers run"
    )
    return Failure(TransactionAborted(text) if transactional_id else BrokerUnavailable(text), abortable=True)


def reason(code: int, message: str = "") -> str:
    """Return the meaning of a code, with the broker's explanation."""
    return f"{code_name(code)} ({message})" if message else code_text(code)
