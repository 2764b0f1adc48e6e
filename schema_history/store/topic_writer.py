"""Writes single records to Kafka and waits for their acknowledgement."""

from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from rowtide.schema_history.store.client_limits import CLIENT_LIMITS

_DEFAULTS: dict[str, Any] = {
    **CLIENT_LIMITS,
    "linger.ms": 0,
    "batch.size": 32 * 1024,  # as Debezium's; the topic's limit applies to a whole batch
    # The broker limits the size of a record after compression. Statements and structures shrink to a tenth.
    "compression.type": "gzip",
    "message.max.bytes": 64 * 1024 * 1024,  # the topic's limit applies; this is what consumers can read by default
    # With more, records to a new topic can be lost without an error (KAFKA-15591).
    "max.in.flight.requests.per.connection": 1,
}
_REQUIRED: dict[str, Any] = {"enable.idempotence": True, "acks": "all", "allow.auto.create.topics": False}
"""A topic that is missing was deleted: the broker must not create it again with its own settings."""
_ERRORS_ONLY = 2
"""Level of librdkafka's log on standard error: its relevant errors are raised as exceptions."""
_CHOSEN_BY_KEY = -1
_GRACE_S = 5
_TOO_LARGE = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE, KafkaError.INVALID_MSG_SIZE}
_FINAL = {
    *_TOO_LARGE,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.INVALID_RECORD,
    KafkaError.POLICY_VIOLATION,
    KafkaError.TOPIC_EXCEPTION,
    KafkaError._INVALID_ARG,  # noqa: SLF001 - librdkafka's local code
}


class TopicWriteError(Exception):
    """A record was not written, or possibly not; the message has the reason.

    Attributes:
        retriable: whether a later attempt may succeed without any other change.
        too_large: the size of a record that Kafka or the producer's settings do not allow, in bytes; 0 for any other
            reason.
    """

    def __init__(self, message: str, *, retriable: bool = True, too_large: int = 0) -> None:
        super().__init__(message)
        self.retriable = retriable
        self.too_large = too_large


class TopicWriter:
    """An idempotent producer for few records. It connects when the first one is sent.

    Args:
        settings: librdkafka settings, including those of the connection.
        timeout: seconds to wait for an acknowledgement, unless the settings have ``message.timeout.ms``.
    """

    def __init__(self, settings: Mapping[str, Any], timeout: float) -> None:
        own = {"log_level": _ERRORS_ONLY, "message.timeout.ms": int(timeout * 1000)}
        self._settings = {**_DEFAULTS, **own, **settings, **_REQUIRED}
        self._timeout = int(self._settings["message.timeout.ms"]) / 1000
        self._producer: Producer | None = None
        self._failure: TopicWriteError | None = None

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        partition: int = _CHOSEN_BY_KEY,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> None:
        """Send a record without waiting, unless the producer's buffer is full.

        Raises:
            TopicWriteError: the producer rejects it, or an earlier record was not acknowledged.
        """
        record: tuple[Any, ...] = (topic, value, key, partition, self._delivered, None, 0, list(headers))
        try:
            if self._producer is None:
                self._producer = Producer(self._settings)
            try:
                self._producer.produce(*record)
            except BufferError:
                self.wait()
                self._producer.produce(*record)
        except KafkaException as failure:
            raise _failed(failure.args[0], _size(key, value)) from failure
        except BufferError as failure:
            size = _size(key, value)
            raise TopicWriteError("it is larger than buffer.memory", retriable=False, too_large=size) from failure

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failure = _failed(error, _size(message.key(), message.value()))
            if self._failure is None or _rank(failure) > _rank(self._failure):
                self._failure = failure

    def wait(self) -> None:
        """Wait until all records are acknowledged.

        Raises:
            TopicWriteError: a record is not acknowledged.
        """
        if self._producer is None:
            return
        left = self._producer.flush(self._timeout + _GRACE_S)
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        if left:
            raise TopicWriteError(f"no acknowledgement within {self._timeout:.0f} s")

    def close(self) -> None:
        """Release the producer."""
        self._producer = None


def _failed(error: KafkaError, size: int) -> TopicWriteError:
    too_large = size if error.code() in _TOO_LARGE else 0
    return TopicWriteError(error.str(), retriable=error.code() not in _FINAL, too_large=too_large)


def _rank(failure: TopicWriteError) -> tuple[bool, int]:
    """Return the rank of a failure: the one with the highest rank is raised, a final one about the largest record."""
    return not failure.retriable, failure.too_large


def _size(key: bytes | str | None, value: bytes | str | None) -> int:
    return len(key or b"") + len(value or b"")
