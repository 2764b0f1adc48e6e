"""Which producer is made, and why."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import Any

import pytest

from rowtide.connector.check.broker import producer_findings
from rowtide.connector.check.findings import Severity
from rowtide.connector.config.choices import ProducerKind
from rowtide.connector.config.kafka.producer_settings import idempotent_settings
from rowtide.connector.delivery.errors import DeliveryError
from rowtide.connector.delivery.kafka import producers
from rowtide.connector.delivery.kafka.native import NativeProducer
from rowtide.connector.delivery.kafka.producer import RecordProducer
from rowtide.connector.delivery.kafka.producers import new_producer
from rowtide.connector.delivery.kafka.sink import SinkProducer
from rowtide.connector.kafka_producer.batches import compression
from rowtide.connector.kafka_producer.batches.native import implementation

CLIENT = {"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}
NEEDS_LIBRDKAFKA = [
    ({"partitioner": "random"}, "partitioner: "),
    ({"security.protocol": "sasl_plaintext"}, "sasl.mechanism: .*not GSSAPI"),
    ({"ssl.curves.list": "X25519"}, "ssl.curves.list: "),
]


@pytest.fixture(autouse=True)
def compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the compiled code were installed, where it is not."""
    monkeypatch.setattr(implementation, "native", implementation.native or object())


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Levels and messages about the choice; librdkafka reports that no broker runs."""
    return [(record.levelname, record.message) for record in caplog.records if record.name == producers.__name__]


def made(kind: ProducerKind, **more: Any) -> SinkProducer:
    producer = new_producer(kind, idempotent_settings({**CLIENT, **more}), quiet=nullcontext)
    producer.close()
    return producer


def test_the_producer_of_each_name(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert isinstance(made(ProducerKind.LIBRDKAFKA), RecordProducer)
    assert isinstance(made(ProducerKind.NATIVE), NativeProducer)
    assert logged(caplog) == []
    assert isinstance(made(ProducerKind.AUTO), NativeProducer)
    assert logged(caplog) == [("INFO", "Kafka producer: native")]


@pytest.mark.parametrize(("settings", "reason"), NEEDS_LIBRDKAFKA)
def test_settings_that_only_librdkafka_has(
    settings: dict[str, str], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with pytest.raises(DeliveryError, match=f"{reason}.*rowtide.producer=librdkafka"):
        made(ProducerKind.NATIVE, **settings)
    if "security.protocol" not in settings:  # librdkafka itself may be built without Kerberos
        assert isinstance(made(ProducerKind.AUTO, **settings), RecordProducer)
        ((_, text),) = logged(caplog)
        assert text.startswith("Kafka producer: librdkafka, because the native producer cannot be used: ")


def test_without_compiled_code(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(implementation, "native", None)
    caplog.set_level(logging.INFO)
    assert isinstance(made(ProducerKind.NATIVE), NativeProducer)
    assert [(level, "slower" in text) for level, text in logged(caplog)] == [("WARNING", True)]
    caplog.clear()
    assert isinstance(made(ProducerKind.AUTO), RecordProducer)
    assert [(level, "slower" in text) for level, text in logged(caplog)] == [("INFO", True)]


def test_a_codec_whose_library_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(compression.importlib, "import_module", missing)
    with pytest.raises(DeliveryError, match="pip install lz4"):
        made(ProducerKind.NATIVE, **{"compression.type": "lz4"})
    assert isinstance(made(ProducerKind.AUTO, **{"compression.type": "lz4"}), RecordProducer)


def test_a_file_for_tls_that_cannot_be_used() -> None:
    with pytest.raises(DeliveryError, match=r"ssl.ca.location cannot be used"):
        made(ProducerKind.NATIVE, **{"security.protocol": "ssl", "ssl.ca.location": "/none/ca.pem"})


def test_what_check_says(monkeypatch: pytest.MonkeyPatch) -> None:
    def findings(kind: ProducerKind, **more: str) -> list[tuple[Severity, str]]:
        found = list(producer_findings(kind, {**CLIENT, **more}))
        assert {finding.subject for finding in found} <= {"rowtide.producer"}
        return [(finding.severity, finding.message) for finding in found]

    assert findings(ProducerKind.LIBRDKAFKA) == findings(ProducerKind.NATIVE) == findings(ProducerKind.AUTO) == []
    assert findings(ProducerKind.NATIVE, partitioner="random") == [], "a problem of the configuration"
    ((severity, text),) = findings(ProducerKind.AUTO, partitioner="random")
    assert severity is Severity.REMARK
    assert text.startswith("librdkafka sends the records, because the native producer cannot be used: partitioner: ")
    ((severity, text),) = findings(ProducerKind.NATIVE, **{"compression.type": "lz4", "compression.level": "99"})
    assert severity is Severity.ERROR
    assert "compression.level=99" in text
    monkeypatch.setattr(implementation, "native", None)
    ((severity, text),) = findings(ProducerKind.NATIVE)
    assert severity is Severity.WARNING
    assert "slower" in text
