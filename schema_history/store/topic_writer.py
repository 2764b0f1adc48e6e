"""Writes single records to Kafka and waits for their acknowledgement."""

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

_SETTINGS: dict[str, Any] = {"enable.idempotence": True, "acks": "all"}
_ERRORS_ONLY = 2
"""Level of librdkafka's log on standard error: its relevant errors are raised as exceptions."""
_CHOSEN_BY_KEY = -1
_GRACE_S = 5


class TopicWriteError(Exception):
    """A record was not written, or possibly not; the message has the reason."""


class TopicWriter:
    """An idempotent producer for few records. It connects when the first one is sent.

    Args:
        settings: of librdkafka, the connection's included.
        timeout: seconds to wait for an acknowledgement, unless the settings have ``message.timeout.ms``.
    """

    def __init__(self, settings: Mapping[str, Any], timeout: float) -> None:
        own = {"log_level": _ERRORS_ONLY, "linger.ms": 0, "message.timeout.ms": int(timeout * 1000)}
        self._settings = {**own, **settings, **_SETTINGS}
        self._timeout = int(self._settings["message.timeout.ms"]) / 1000
        self._producer: Producer | None = None
        self._errors: list[KafkaError] = []

    def send(self, topic: str, value: bytes | None, key: bytes | None = None, partition: int = _CHOSEN_BY_KEY) -> None:
        """Send a record without waiting.

        Raises:
            TopicWriteError: the producer rejects it.
        """
        try:
            if self._producer is None:
                self._producer = Producer(self._settings)
            self._producer.produce(topic, value, key, partition, on_delivery=self._delivered)
        except KafkaException as failure:
            raise TopicWriteError(failure.args[0].str()) from failure
        except BufferError as failure:
            raise TopicWriteError(str(failure)) from failure

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._errors.append(error)

    def wait(self) -> None:
        """Wait until all records are acknowledged.

        Raises:
            TopicWriteError: a record is not acknowledged.
        """
        if self._producer is None:
            return
        left = self._producer.flush(self._timeout + _GRACE_S)
        errors, self._errors = self._errors, []
        if errors:
            raise TopicWriteError(errors[0].str())
        if left:
            raise TopicWriteError(f"no acknowledgement within {self._timeout:.0f} s")

    def close(self) -> None:
        """Release the producer."""
        self._producer = None
