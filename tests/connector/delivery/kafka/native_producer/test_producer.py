"""The producer with its threads: it ends with an error, but never hangs."""

from __future__ import annotations

from typing import Any

import pytest

from rowtide.connector.delivery.errors import ProducerFailed
from rowtide.connector.delivery.kafka.native_producer.producer import NativeProducer
from rowtide.connector.delivery.kafka.native_producer.settings import producer_settings


class OneResult:
    """Brokers with the same result for each request."""

    def __init__(self, result: Any) -> None:
        self.result = result
        self.done: Any = None

    def __call__(self, done: Any) -> Any:
        self.done = done
        return self

    def send(self, outgoing: Any) -> None:
        self.done(outgoing, self.result)

    def close(self) -> None:
        """Do nothing."""


def test_an_unexpected_error_ends_the_producer(caplog: pytest.LogCaptureFixture) -> None:
    producer = NativeProducer(producer_settings({}), OneResult(ZeroDivisionError("no")))
    with pytest.raises(ProducerFailed, match="unexpected error in the Kafka producer: ZeroDivisionError"):
        producer.put(("offsets", b"key", b"value", ()))
    producer.close()
    assert "ZeroDivisionError" in caplog.text
