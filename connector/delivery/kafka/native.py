"""Adapts rowtide's own Kafka producer for the sinks: it sends batches, and its errors become those of delivery."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rowtide.connector.delivery import errors
from rowtide.connector.delivery.kafka.client_log import RepeatFilter
from rowtide.connector.delivery.kafka.refusals import Refusal, access_denied, fenced, producer_failed, refused
from rowtide.connector.delivery.offset_store import OffsetRecord
from rowtide.connector.kafka_producer import errors as producer_errors
from rowtide.connector.kafka_producer.producer import Producer
from rowtide.connector.kafka_producer.records import BY_KEY, Records
from rowtide.connector.kafka_producer.results import log as connection_log
from rowtide.connector.records.batch import Batch

connection_log.addFilter(RepeatFilter())

_MOST_BYTES = 512 << 10
"""Bytes of the messages that are joined. The producer reserves memory for them together, so it must be little."""


class NativeProducer:
    """Sends batches with rowtide's own producer.

    Args:
        producer: the producer.
        show_keys: whether errors may show the keys of messages.
    """

    def __init__(self, producer: Producer, *, show_keys: bool = False) -> None:
        self.transactional_id = producer.transactional_id
        self.transaction_timeout_s = producer.transaction_timeout_s
        self._producer = producer
        self._show_keys = show_keys

    @property
    def producer_id(self) -> int | None:
        """The id that Kafka gave the producer; ``None`` before."""
        return self._producer.producer_id

    @property
    def problem(self) -> str | None:
        """The last error that was retried, until a sink resets it."""
        return self._producer.problem

    @problem.setter
    def problem(self, text: str | None) -> None:
        self._producer.problem = text

    @property
    def waiting(self) -> int:
        """The number of unacknowledged messages."""
        return self._producer.waiting

    def send(self, batches: Sequence[Batch]) -> None:
        """Send all messages, in order, and wait while the memory is full."""
        with self._delivery_errors():
            self._producer.send(list(runs(batches)))

    def put(self, record: OffsetRecord) -> None:
        """Send the record that stores an offset, and wait as :meth:`send` does."""
        topic, key, value, headers = record
        with self._delivery_errors():
            self._producer.send([Records(topic, BY_KEY, [(key, value, headers)])])

    def serve(self, *, idle: bool = False) -> None:
        """Send the messages that are due; ``idle`` if no other message is ready to be sent."""
        with self._delivery_errors():
            self._producer.serve(idle=idle)

    def call_when_due(self, call: Callable[[], None]) -> bool:
        """Have ``call`` called when :meth:`serve` has something to do, and return True."""
        return self._producer.call_when_due(call)

    def drain(self, timeout: float | None = None) -> bool:
        """Wait until all messages are acknowledged, and return False if the timeout expired first."""
        with self._delivery_errors():
            return self._producer.drain(timeout)

    def init_transactions(self, timeout: float) -> None:
        """Fence older instances and end their transactions."""
        with self._delivery_errors():
            self._producer.init_transactions(timeout)

    def begin_transaction(self) -> None:
        """Open a transaction."""
        with self._delivery_errors():
            self._producer.begin_transaction()

    def commit_transaction(self) -> None:
        """Commit the open transaction."""
        with self._delivery_errors():
            self._producer.commit_transaction()

    def abort_transaction(self, timeout: float | None = None) -> None:
        """Drop all messages, and abort the open transaction, if there is one."""
        with self._delivery_errors():
            self._producer.abort_transaction(timeout)

    def forget(self) -> None:
        """Do nothing: the abort of a transaction forgets the errors of its messages."""

    def interrupt(self) -> None:
        """Make all blocked calls raise ``DeliveryInterrupted``; may be called from any thread."""
        self._producer.interrupt()

    def close(self) -> None:
        """Drop all messages."""
        self._producer.close()

    @contextmanager
    def _delivery_errors(self) -> Iterator[None]:
        try:
            yield
        except producer_errors.KafkaProducerError as error:
            raise delivery_error(error, self.transactional_id, show_key=self._show_keys) from error


def delivery_error(
    error: producer_errors.KafkaProducerError, transactional_id: str, *, show_key: bool
) -> errors.DeliveryError:
    """Return the error of delivery for an error of the producer, with the solution for operators."""
    text = str(error)
    match error:
        case producer_errors.RecordRejected():
            refusal = _REFUSALS[error.rejection]
            return refused(refusal, error.reason, error.topic, error.key, error.size, show_key=show_key)
        case producer_errors.TopicMissing():
            return errors.TopicMissing(f"{text}. {Refusal.NO_TOPIC.value}", error.topic)
        case producer_errors.TopicRejected():
            return errors.RecordRejected(text)
        case producer_errors.TopicReplaced():
            return errors.TopicReplaced(error.topic, error.what)
        case producer_errors.AccessDenied():
            return access_denied(text, transactional_id)
        case producer_errors.ProducerFenced():
            return fenced(text, transactional_id)
        case producer_errors.BrokerNotSupported():
            return errors.DeliveryError(f"{text}. Set rowtide.producer=librdkafka")
        case producer_errors.BrokerUnavailable():
            return errors.BrokerUnavailable(text)
        case producer_errors.TransactionAborted():
            return errors.TransactionAborted(text)
        case producer_errors.ProducerInterrupted():
            return errors.DeliveryInterrupted(text)
        case _:
            return producer_failed(text)


_REFUSALS = {
    producer_errors.Rejection.TOO_LARGE: Refusal.TOO_LARGE,
    producer_errors.Rejection.DENIED: Refusal.DENIED,
    producer_errors.Rejection.INVALID: Refusal.INVALID,
    producer_errors.Rejection.OTHER: Refusal.OTHER,
}


def runs(batches: Sequence[Batch]) -> Iterator[Records]:
    """Yield the messages of consecutive batches with one destination together, which costs less to send."""
    run: list[Batch] = []
    size = 0
    for batch in batches:
        size += batch.size
        if run and (size > _MOST_BYTES or _destination(batch) != _destination(run[0])):
            yield _joined(run)
            run, size = [], batch.size
        run.append(batch)
    if run:
        yield _joined(run)


def _destination(batch: Batch) -> tuple[str, int, int]:
    return batch.topic, batch.partition, batch.timestamp


def _joined(run: list[Batch]) -> Records:
    topic, partition, timestamp = _destination(run[0])
    messages = run[0].messages if len(run) == 1 else [message for batch in run for message in batch.messages]
    return Records(topic, partition, messages, timestamp)
